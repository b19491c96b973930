-- The one write of a lease holder: state, document, events, outbox, result and the next place, together or not at all.
-- KEYS      1 the shard's prefix
-- ARGV      1 owner  2 retention_ms, then per item 12: id fence rev consumed move status state document('' = as it was)
--           events(one JSON tail a line: "status":…}) wake_at(epoch ms or '') waiting_for tail
--           move: stay (go on) · wait (hold kept) · leave (wait, hold given up) · yield (to its lane) · end
--           tail: outbox rows, one JSON a line; for `end` the result's middle, then rows, each on a line of its own
-- Answers   epoch ms, then per item the new seq, or FENCED · DUPLICATE · GONE · {SIGNALLED, unread entries} ·
--           {ERROR, why}
-- Invariant written only if leased by this owner under this fence and rev, with no entry unread (P2, P3); a refused or
--           failed item changes nothing and never fails its neighbours (P4).
-- Guarded by tests/redis/mutants.txt: test_commit.py
local owner, retention = ARGV[1], tonumber(ARGV[2])
local answers, left, retired = {now}, {}, {}
local FIELDS = {'place', 'owner', 'fence', 'rev', 'seq', 'unread', 'type', 'status', 'state', 'watchers', 'deaths'}
local LEAVING = {'target', 'lane', 'order', 'created_at', 'started_at'} -- what is asked of those that do not stay
local written_at = at()

local function apply(i, id, m)
  local _, _, rev, consumed, move, status, state, document, events, wake_at, waiting_for, tail = unpack(ARGV, i, i + 11)
  local seq, watched, lines, logged, rows = tonumber(m[5] or 0), (m[10] or '') ~= '', {}, {}, {}
  for line in string.gmatch(events, '[^\n]+') do
    seq = seq + 1
    logged[#logged + 1] = '{"seq":' .. seq .. ',"at":"' .. written_at .. '",' .. line
    if watched then lines[#lines + 1] = '\nE' .. logged[#logged] end
  end
  for line in string.gmatch(tail, '[^\n]+') do rows[#rows + 1] = line end
  if move == 'yield' and status == 'RUNNING' then status = 'WAITING' end -- for a worker: nobody leases it now
  -- all that can break comes before the first write, and the first write is the one that can
  local l = move == 'stay' and {} or call('HMGET', record(id), unpack(LEAVING))
  local doc = move == 'end' and result(seq, table.remove(rows, 1), l[4], l[5], retention)
  if wake_at ~= '' and not tonumber(wake_at) then error('wake_at is no time: ' .. wake_at) end
  if #rows > 0 then call('LLEN', P .. 'outbox:' .. id) end
  if #logged > 0 then call('RPUSH', P .. 'log:' .. id, unpack(logged)) end
  local fields = {'rev', rev + 1, 'seq', seq, 'status', status, 'state', state}
  local function set(name, value) fields[#fields + 1] = name; fields[#fields + 1] = value end
  if document ~= '' then set('document', document) end
  if (m[11] or '0') ~= '0' then set('deaths', '0') end
  if consumed ~= '0' then
    set('unread', '0')
    call('DEL', P .. 'inbox:' .. id)
    call('SREM', P .. 'signals:' .. owner, id)
  end
  if m[8] ~= status or m[9] ~= state then
    count(m[7], m[8], m[9], -1)
    count(m[7], status, state, 1)
  end
  if move == 'end' then
    set('place', 'ended')
    call('SET', P .. 'result:' .. id, doc, 'PX', retention)
    call('DEL', P .. 'inbox_ids:' .. id)
    call('ZREM', P .. 'deadlines', id)
    retired[#retired + 1] = now + retention
    retired[#retired + 1] = id
    if watched then lines[#lines + 1] = '\nR' .. doc end
  elseif move == 'yield' then
    set('place', 'lane')
    set('ready_at', now)
    to_lane(id, l[2], l[3])
  elseif move ~= 'stay' then
    set('place', 'waiting')
    set('waiting_for', waiting_for)
    set('wake_at', wake_at)
    if wake_at ~= '' then call('ZADD', P .. 'timers', wake_at, id) end
  end
  if #rows > 0 then
    call('RPUSH', P .. 'outbox:' .. id, unpack(rows))
    call('ZADD', P .. 'outboxes', 'NX', now, id)
  end
  call('HSET', record(id), unpack(fields))
  if move ~= 'stay' then left[#left + 1] = id end
  if move == 'end' or move == 'leave' then free(id, l[1]) end
  if #lines > 0 then tell(id, m[10], table.concat(lines)) end
  return seq
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
  return apply(i, id, m)
end

for i = 3, #ARGV, 12 do
  local ok, answer = attempt(item, i)
  answers[#answers + 1] = ok and answer or {'ERROR', answer}
end
if #left > 0 then call('SREM', P .. 'held:' .. owner, unpack(left)) end
if #retired > 0 then call('ZADD', P .. 'retire', unpack(retired)) end
settle()
return answers
