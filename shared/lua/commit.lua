-- The one write of a lease holder: state, document, events, outbox, result and the next place, together or not at all.
-- KEYS      1 the shard's prefix
-- ARGV      1 owner  2 retention_ms  3 dead_retention_ms, then per item 15: id fence rev consumed move status state
--           document('' = as it was) events(one JSON tail a line: "status":…}) wake_at(epoch ms or '') waiting_for
--           version('' = as it was) act(enters: a state that acts, perhaps anew · begins: likewise, its handler is next ·
--           kept: a checkpoint with something new, its handler goes on · runs: one with nothing new; with these three
--           its permits stay where it stays) tail progress(JSON, '' = as it was)
--           move: stay (go on) · offer (go on, unless others should) · wait (hold kept) · leave (wait, hold given up) ·
--                 yield (to its lane) · pause · end · bury (end as a dead letter; waiting_for: the state it failed in)
--           tail: outbox rows, one JSON a line; for an end the result's middle, then rows, each on a line of its own
-- Answers   epoch ms, then per item the new seq, or {YIELDED, seq} · FENCED · DUPLICATE · GONE · SUPERSEDED ·
--           {SIGNALLED, unread entries} · {ERROR, why}
-- Invariant written only if leased by this owner under this fence and rev, with no entry unread (P2, P3), and an act only
--           if no newer intent exists (P11); a refused or failed item changes nothing and never fails its neighbours (P4).
-- Guarded by tests/redis/mutants.txt: test_parking.py test_commit.py test_permit.py test_latest.py test_dead_letters.py
--           test_deaths.py test_inherit.py test_offer.py test_pause.py test_outbox.py test_checkpoint.py test_toll.py
--           test_progress.py test_deposit.py
local owner, retention, dead_retention = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local answers, left, retired = {now}, {}, {}
local FIELDS = {'place', 'owner', 'fence', 'rev', 'seq', 'unread', 'type', 'status', 'state', 'watchers', 'deaths', 'permits',
  'parked_at', 'toll'}
-- what is asked of those that do not stay
local LEAVING = {'target', 'lane', 'order', 'created_at', 'started_at', 'base', 'latest', 'intent', 'acted', 'deadline',
  'parent', 'run', 'progress'}
local written_at = at()
local ENTERS = {enters = true, begins = true}
local GOES_ON = {begins = true, kept = true, runs = true}

-- A bulk mission gives its slot back if urgent or aged work waits in its pool (P9)
local function wanted(lane)
  local pool = string.match(lane, '^[^:]*:([^:]*):')
  return head_of('urgent', pool) or aged('normal', pool) or aged('bulk', pool)
end

local function ended(id, l, dead, failed_in)
  if call('DEL', P .. 'inbox_ids:' .. id, P .. 'audio:' .. id) > 0 then uncount(id) end
  call('ZREM', P .. 'deadlines', id)
  if dead then
    call('ZADD', P .. 'dead_letters', now, id)
    call('HSET', record(id), 'failed_in', failed_in)
  end
  retired[#retired + 1] = now + (dead and dead_retention or retention)
  retired[#retired + 1] = id
  if l[7] then forget_intent(id, l[7], l[8], l[9]) end
end

-- A permit that came free since it was asked for has taken this one out of its queue: it asks again at once.
local function freed(id)
  local scope = string.match(call('HGET', record(id), 'queued') or '', '^%S+')
  return scope and not call('ZSCORE', P .. 'permit_queue:' .. scope, id)
end

local function apply(i, id, m)
  local _, _, rev, consumed, move, status, state, document, events, wake_at, waiting_for, version, act, tail, progress =
    unpack(ARGV, i, i + 14)
  local seq, watched, lines, logged, rows = tonumber(m[5] or 0), (m[10] or '') ~= '', {}, {}, {}
  for line in string.gmatch(events, '[^\n]+') do
    seq = seq + 1
    logged[#logged + 1] = '{"seq":' .. seq .. ',"at":"' .. written_at .. '",' .. line
    if watched then lines[#lines + 1] = '\nE' .. logged[#logged] end
  end
  for line in string.gmatch(tail, '[^\n]+') do rows[#rows + 1] = line end
  local asked = move
  if move == 'offer' then move = wanted(call('HGET', record(id), 'lane')) and 'yield' or 'stay' end
  local was = move == 'pause' and status == 'COMPENSATING' and status
  if move == 'yield' and status == 'RUNNING' then status = 'WAITING' end -- for a worker: nobody leases it now
  if move == 'pause' then status = 'PAUSED' end
  local ends = move == 'end' or move == 'bury'
  -- all that can break comes before the first write, and the first write is the one that can
  local l = move == 'stay' and {} or call('HMGET', record(id), unpack(LEAVING))
  local doc = ends and result(seq, table.remove(rows, 1), l[4], l[5], retention, progress ~= '' and progress or l[13])
  if ends and l[11] then rows[#rows + 1] = end_row(id, l[11], l[12], doc) end
  if wake_at ~= '' and not tonumber(wake_at) then error('wake_at is no time: ' .. wake_at) end
  if #rows > 0 then call('LLEN', P .. 'outbox:' .. id) end
  if #logged > 0 then call('RPUSH', P .. 'log:' .. id, unpack(logged)) end
  local fields = {'rev', rev + 1, 'seq', seq, 'status', status, 'state', state}
  local function set(name, value) fields[#fields + 1] = name; fields[#fields + 1] = value end
  if document ~= '' then set('document', document) end
  if version ~= '' then set('version', version) end
  if progress ~= '' then
    set('progress', progress)
    set('progress_at', now)
    if watched and not ends then lines[#lines + 1] = '\nP' .. passing(status, state, progress) end
  end
  if ENTERS[act] then set('acted', '1') end
  -- What says nothing of a handler's outcome (P8): an act entered anew, a wait for a permit, a checkpoint with nothing
  -- new; it may kill yet. One with something new pays a part of the toll, an answer all of it
  local got_on = act == 'kept' or events ~= '' and waiting_for ~= 'permit' and act ~= 'runs'
  if got_on and (m[11] or '0') ~= '0' then set('deaths', '0'); set('solo_deaths', '0') end
  if got_on and (m[14] or '0') ~= '0' then set('toll', act == 'kept' and m[14] - 1 or '0') end
  if consumed ~= '0' then
    set('unread', '0')
    call('DEL', P .. 'inbox:' .. id)
    call('SREM', P .. 'signals:' .. owner, id)
  end
  if m[8] ~= status or m[9] ~= state then
    count(m[7], m[8], m[9], -1)
    count(m[7], status, state, 1)
  end
  if ends then
    set('place', 'ended')
    call('SET', P .. 'result:' .. id, doc, 'PX', retention)
    ended(id, l, move == 'bury', waiting_for)
    if watched then lines[#lines + 1] = '\nR' .. doc end
  elseif move == 'yield' then
    set('place', 'lane')
    set('ready_at', now)
    to_lane(id, l[2], l[3])
  elseif move == 'pause' then
    set('place', 'paused')
    set('paused_at', now)
    if was then set('was', was) end
    set('waiting_for', waiting_for)
    set('wake_at', wake_at)
    call('ZADD', P .. 'paused', now, id)
    call('ZADD', P .. 'deadlines', 'NX', l[10], id) -- also if it was told: the pause limit stands there
  elseif move ~= 'stay' then
    if waiting_for == 'permit' and freed(id) then
      wake_at = now
      woken[string.match(l[2], '^[^:]*:([^:]*)')] = true
    end
    set('place', 'waiting')
    set('waiting_for', waiting_for)
    set('wake_at', wake_at)
    if wake_at ~= '' then call('ZADD', P .. 'timers', wake_at, id) end
  end
  if #rows > 0 then
    if string.find(rows[1], '{"row":"accept"', 1, true) == 1 then set('children', '1') end -- those come first
    put_rows(id, rows)
  end
  call('HSET', record(id), unpack(fields))
  if m[12] and not (GOES_ON[act] and move == 'stay') then drop_permits(id, m[12]) end
  if m[13] then call('HDEL', record(id), 'parked_at') end -- it got on: the limit of parking counts anew (P13)
  if move ~= 'stay' then left[#left + 1] = id end
  if ends or move == 'leave' or move == 'pause' then
    free(id, l[1])
    if not ends then lower(id, l[2], l[6]) end
  end
  if #lines > 0 then tell(id, m[10], table.concat(lines)) end
  return asked == 'offer' and move == 'yield' and {'YIELDED', seq} or seq
end

local function superseded(id)
  local l = call('HMGET', record(id), 'latest', 'intent')
  return l[1] and call('ZCOUNT', P .. 'intents:' .. l[1], '(' .. l[2], '+inf') > 0
end

local function item(i)
  local id, fence, rev, consumed = unpack(ARGV, i, i + 3)
  local m = call('HMGET', record(id), unpack(FIELDS))
  if not m[1] then return 'GONE' end
  if m[3] == fence and tonumber(m[4] or 0) == rev + 1 then return 'DUPLICATE' end
  if m[1] ~= 'leased' or m[2] ~= owner or m[3] ~= fence or (m[4] or '0') ~= rev then return 'FENCED' end
  if (m[6] or '0') ~= consumed then
    local unread = call('LRANGE', P .. 'inbox:' .. id, 0, -1)
    table.insert(unread, 1, 'SIGNALLED')
    return unread
  end
  if ENTERS[ARGV[i + 12]] and superseded(id) then return 'SUPERSEDED' end
  return apply(i, id, m)
end

for i = 4, #ARGV, 15 do
  local ok, answer = attempt(item, i)
  answers[#answers + 1] = ok and answer or {'ERROR', answer}
end
if #left > 0 then call('SREM', P .. 'held:' .. owner, unpack(left)) end
if #retired > 0 then call('ZADD', P .. 'retire', unpack(retired)) end
settle()
return answers
