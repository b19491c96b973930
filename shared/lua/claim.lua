-- One round trip for all that a worker needs: its lease, due timers, takeover of the dead, and work.
-- KEYS      1 the shard's prefix
-- ARGV      1 owner  2 register: 1 for the owner's first claim  3 lease_ms  4 renew_ms  5 poll_ms  6 free slots
--           7 free slots for urgent  8 pools, by comma  9 types known, as ",type@version,…,"
--           10 retention_ms  11 dead_retention_ms
-- Answers   LOST, or {epoch ms, ms until something is due, {id fence rev seq type version state document envelope
--           deadline deaths run key_run target started_at root lane intent again(1: it was leased before, with
--           nothing committed since) toll {unread entries}}*}
-- Invariant what is answered is leased by this owner under a raised fence (P2); nothing that is not due, not ready or
--           alive is moved (P6, P7, P9, P13). At most 50 missions, and never more than the free slots.
-- Guarded by tests/redis/mutants.txt: test_claim.py test_takeover.py test_toll.py test_parking.py test_lanes.py
--           test_fairness.py test_permit.py test_dead_letters.py test_inherit.py test_replay.py
local owner, renew, poll = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5])
local BATCH, LOOKED_AT = 50, 200

local lease_end = call('ZSCORE', P .. 'owners', owner)
if lease_end and tonumber(lease_end) <= 0 or not lease_end and ARGV[2] ~= '1' then return 'LOST' end
call('ZADD', P .. 'owners', now + ARGV[3], owner)
thaw(poll)

local function status_in_lane(m_status, rev)
  if m_status == 'COMPENSATING' then return m_status end
  return (rev or '0') == '0' and 'PENDING' or 'WAITING'
end

-- Timers that are due
local function wake(id)
  call('ZREM', P .. 'timers', id)
  local m = call('HMGET', record(id), 'place', 'lane', 'order', 'target')
  if m[1] == 'waiting' then
    call('HSET', record(id), 'place', enter(id, m[2], m[3], m[4]), 'ready_at', now)
  end
end
for _, id in ipairs(call('ZRANGE', P .. 'timers', '-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH)) do attempt(wake, id) end

-- Lapsed owners, seen so at two looks two renewals apart: their missions go back to their lanes, deaths counted (P7, P8)
-- An owner "solo-…" carried nothing else: after three of them it is the mission that kills. The toll is what checkpoints
-- pay back, one each: it is bounded, so that who has had bad luck for long gets clear of it.
local SOLO_DEATHS = 3
local A_DEATH, MOST_TOLL = 10, 60
local function reclaim(id, other)
  local m = call('HMGET', record(id), 'place', 'owner', 'lane', 'order', 'type', 'status', 'state', 'rev', 'seq',
    'watchers', 'permits', 'toll')
  if m[1] ~= 'leased' or m[2] ~= other then return end
  if string.sub(other, 1, 5) == 'solo-' and call('HINCRBY', record(id), 'solo_deaths', 1) >= SOLO_DEATHS then
    return fail(id, read(id), 'worker_lost', 'three workers that ran nothing else were lost with it',
      tonumber(ARGV[10]), tonumber(ARGV[11]))
  end
  if m[11] then drop_permits(id, m[11]) end
  local seq, status = (m[9] or 0) + 1, status_in_lane(m[6], m[8])
  local deaths = call('HINCRBY', record(id), 'deaths', 1)
  local toll = math.min((m[12] or 0) + A_DEATH, MOST_TOLL)
  call('HSET', record(id), 'place', 'lane', 'status', status, 'seq', seq, 'toll', toll)
  to_lane(id, m[3], m[4])
  count(m[5], m[6], m[7], -1)
  count(m[5], status, m[7], 1)
  local ev = event(seq, status, m[7], '{"event":"reclaimed","deaths":' .. deaths .. '}')
  call('RPUSH', P .. 'log:' .. id, ev)
  tell(id, m[10], '\nE' .. ev)
end
local soonest, room = poll, BATCH
local lapsed = call('ZRANGE', P .. 'owners', '-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH, 'WITHSCORES')
for i = 1, #lapsed, 2 do
  local other, ended = lapsed[i], lapsed[i + 1]
  local seen, first = string.match(call('HGET', P .. 'looks', other) or '', '^(.-)@(.*)$')
  if tonumber(ended) > 0 and seen ~= ended then
    call('HSET', P .. 'looks', other, ended .. '@' .. now)
    soonest = math.min(soonest, 2 * renew)
  elseif tonumber(ended) > 0 and now - first < 2 * renew then
    soonest = math.min(soonest, first + 2 * renew - now)
  else
    -- score 0: the owner is lost from here on, though its missions may take several claims to put back
    call('ZADD', P .. 'owners', 0, other)
    local ids = call('SPOP', P .. 'held:' .. other, room)
    table.sort(ids) -- so that what becomes of a permit's queue is no matter of chance
    for _, id in ipairs(ids) do
      attempt(reclaim, id, other)
      room = room - 1
    end
    if call('EXISTS', P .. 'held:' .. other) == 0 then
      call('ZREM', P .. 'owners', other)
      call('HDEL', P .. 'looks', other)
      call('DEL', P .. 'signals:' .. other)
    else soonest = 0 end
  end
end

-- Work
local taken, looked, fence, held, turn = {}, 0, nil, {}, now
local function knows(kind) return string.find(ARGV[9], ',' .. kind .. ',', 1, true) end
local FIELDS = {'place', 'type', 'version', 'rev', 'seq', 'status', 'state', 'document', 'envelope', 'deadline', 'deaths',
  'run', 'target', 'unread', 'started_at', 'watchers', 'root', 'parked_at', 'key_run', 'lane', 'intent', 'leased_at',
  'toll'}
local function lease(id, m)
  local unread = (m[14] or '0') ~= '0' and call('LRANGE', P .. 'inbox:' .. id, 0, -1) or {}
  fence = fence or call('INCR', P .. 'fence')
  local status = m[6] == 'COMPENSATING' and m[6] or 'RUNNING'
  local rev = m[4] or '0'
  local fields = {'place', 'leased', 'owner', owner, 'fence', fence, 'status', status, 'leased_at', rev}
  local seq, started = m[5] or '0', m[15] or now
  if not m[15] then
    -- the first claim ever: from here on the watchers see it run
    seq = seq + 1
    local ev = event(seq, status, m[7], 'null')
    call('RPUSH', P .. 'log:' .. id, ev)
    tell(id, m[16], '\nE' .. ev)
    fields[#fields + 1] = 'started_at'; fields[#fields + 1] = now
    fields[#fields + 1] = 'seq'; fields[#fields + 1] = seq
  end
  call('HSET', record(id), unpack(fields))
  count(m[2], m[6], m[7], -1)
  count(m[2], status, m[7], 1)
  held[#held + 1] = id
  if #unread > 0 then call('SADD', P .. 'signals:' .. owner, id) end
  taken[#taken + 1] = {id, fence, rev, seq, m[2], m[3], m[7], m[8] or '', m[9], m[10], m[11] or '0', m[12] or '1',
    m[19] or m[12] or '1', m[13] or '', started, m[17] or '', m[20], m[21] or '', m[22] == rev and '1' or '', m[23] or '0',
    unread}
end
local function park(id, m, kind)
  local since = m[18] or now
  free(id, m[13])
  if m[13] then lower(id, m[20], call('HGET', record(id), 'base')) end
  call('HSET', record(id), 'place', 'parked', 'parked_at', since)
  call('ZADD', P .. 'parked:' .. kind, since, id)
  call('SADD', P .. 'parked_types', kind)
end
local function ready(id)
  local m = call('HMGET', record(id), unpack(FIELDS))
  if m[1] ~= 'lane' then return end
  local kind = m[2] .. '@' .. m[3]
  if knows(kind) then lease(id, m) else park(id, m, kind) end
end
local function take(priority, pool, most)
  local ring, share, left = P .. 'ring:' .. priority .. ':' .. pool, 0, 0
  local last = call('ZRANGE', ring, -1, -1, 'WITHSCORES')[2]
  if not last then return end
  -- turns go on from the last one given, which may lie ahead of the clock where claims come fast
  turn = math.max(turn, tonumber(last))
  while #taken < most and looked < LOOKED_AT do
    local tenant = call('ZRANGE', ring, 0, 0)[1]
    if not tenant then return end
    if left == 0 then
      left = call('ZCARD', ring)
      share = math.ceil((most - #taken) / left)
    end
    local wanted = math.min(share, most - #taken)
    local ids = call('ZPOPMIN', P .. 'lane:' .. priority .. ':' .. pool .. ':' .. tenant, wanted)
    if #ids < 2 * wanted then call('ZREM', ring, tenant)
    else
      turn = turn + 1
      call('ZADD', ring, turn, tenant)
    end
    left = left - 1
    for i = 1, #ids, 2 do attempt(ready, ids[i]) end
    looked = looked + #ids / 2
  end
end
local function parked(id)
  local m = call('HMGET', record(id), unpack(FIELDS))
  if m[1] ~= 'parked' then return end
  local target = m[13] and m[13] ~= '' and P .. 'target:' .. m[13]
  local holder = target and call('GET', target)
  if holder and holder ~= id then
    local w = call('HMGET', record(id), 'lane', 'order')
    call('HSET', record(id), 'place', enter(id, w[1], w[2], m[13]), 'ready_at', now)
  else
    if target then call('SET', target, id) end
    lease(id, m)
  end
end
local function unpark(kind, most)
  for _, id in ipairs(call('ZRANGE', P .. 'parked:' .. kind, 0, BATCH - 1)) do
    if #taken >= most or looked >= LOOKED_AT then return end
    local ok, lane = attempt(call, 'HGET', record(id), 'lane')
    local pool = ok and string.match(lane or '', '^[^:]*:([^:]*)')
    if not pool or string.find(',' .. ARGV[8] .. ',', ',' .. pool .. ',', 1, true) then
      call('ZREM', P .. 'parked:' .. kind, id)
      attempt(parked, id)
      looked = looked + 1
    end
  end
  if call('EXISTS', P .. 'parked:' .. kind) == 0 then
    call('SREM', P .. 'parked_types', kind)
    call('HDEL', P .. 'parked_known', kind)
  end
end
for _, kind in ipairs(call('SMEMBERS', P .. 'parked_types')) do
  if knows(kind) then call('HSET', P .. 'parked_known', kind, now) end
end
-- Every lane has a share (P9): an eighth is kept from urgent, half of the rest from what is parked, a quarter of the rest
-- from normal, and what is kept and not used goes back; where somebody has waited too long, half is kept. Where slots come
-- free one at a time, the odd one falls to one side as the multiples of an irrational number fall within 0 and 1: evenly
-- over any run of fences, without any state.
local slots, urgent_slots = math.min(BATCH, tonumber(ARGV[6])), math.min(BATCH, tonumber(ARGV[7]))
local fences = tonumber(call('GET', P .. 'fence') or 0)
local function odd(irrational) return fences * irrational % 1 end
if urgent_slots > 0 then
  -- a pool where nobody waits costs one command: workers serve many, most of which are empty most of the time
  local pools, rings = {}, P .. 'ring:'
  for pool in string.gmatch(ARGV[8], '[^,]+') do
    if call('EXISTS', rings .. 'urgent:' .. pool, rings .. 'normal:' .. pool, rings .. 'bulk:' .. pool) > 0 then
      pools[#pools + 1] = pool
    end
  end
  for _ = 1, math.floor(odd(0.4142135623730951) * #pools) do table.insert(pools, table.remove(pools, 1)) end
  local function part(usual, priority, pool, than)
    if call('EXISTS', P .. 'ring:' .. than .. ':' .. pool) == 0 then return usual end
    return (aged(priority, pool) or priority == 'normal' and aged('bulk', pool)) and 2 or usual
  end
  for _, pool in ipairs(pools) do
    take('urgent', pool, slots - math.floor(slots / part(8, 'normal', pool, 'urgent') + odd(0.7320508075688772)))
  end
  local kinds = call('SMEMBERS', P .. 'parked_types')
  local function unpark_known(most)
    for _, kind in ipairs(kinds) do
      if knows(kind) then unpark(kind, most) end
    end
  end
  unpark_known(slots - math.floor((slots - #taken) / 2 + odd(0.3027756377319946)))
  for _, pool in ipairs(pools) do
    take('normal', pool,
      slots - math.floor((slots - #taken) / part(4, 'bulk', pool, 'normal') + odd(0.6180339887498949)))
    take('bulk', pool, slots)
    take('normal', pool, slots)
  end
  unpark_known(slots)
  for _, pool in ipairs(pools) do take('urgent', pool, urgent_slots) end
end
if #held > 0 then call('SADD', P .. 'held:' .. owner, unpack(held)) end
settle()

local next_timer = call('ZRANGE', P .. 'timers', 0, 0, 'WITHSCORES')[2]
local next_lapse = call('ZRANGE', P .. 'owners', now, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]
if looked >= LOOKED_AT then soonest = 0 end
if next_timer then soonest = math.min(soonest, next_timer - now) end
if next_lapse then soonest = math.min(soonest, next_lapse - now + 1) end
return {now, math.max(0, soonest), taken}
