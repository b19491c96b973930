-- The moves that all verbs share (P1, P10). Not a script: it is put in front of each one.
-- KEYS      1 the shard's prefix, hash tag included
-- ARGV      the verb's
-- Answers   none
-- Invariant the record's `place` is the truth; the index that belongs to the old place is left in the same step as the
--           new one is entered. A target is held by at most one mission; where there are waiters, there is a holder.
-- Guarded by tests/redis/mutants.txt: test_release.py test_accept.py test_targets.py test_commit.py test_control.py
--           test_takeover.py test_lease.py test_sweep.py test_parking.py test_retire.py test_times.py
--
-- Record, hash mission:<id>; what is absent is 0 or empty:
--   envelope type version root(of a child) created_at lane order target deadline    written once by accept
--   place owner fence status ready_at wake_at parked_at watchers deaths started_at  the places
--   state rev seq document waiting_for run                                          the lease holder's, by commit only
--   unread                                                                          entries in the inbox
-- Times are epoch milliseconds of Redis' own TIME, 13 digits: `..` writes 14 digits exactly.
local P, call = KEYS[1], redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local RANK = {urgent = 0, normal = 1, bulk = 2}
local counts, woken = {}, {}

-- A batch writes the same few seconds again and again, so the text of each is kept
local seconds_written = {}
local function to_second(seconds)
  local days, rest = math.floor(seconds / 86400), seconds % 86400
  -- days since 0000-03-01 to a civil date: eras of 400 years, years that begin in March
  local z = days + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d', yoe + era * 400 + (month <= 2 and 1 or 0), month,
    doy - math.floor((153 * mp + 2) / 5) + 1, math.floor(rest / 3600), math.floor(rest % 3600 / 60), rest % 60)
end
local function rfc3339(ms)
  local seconds = math.floor(ms / 1000)
  local text = seconds_written[seconds]
  if not text then
    text = to_second(seconds)
    seconds_written[seconds] = text
  end
  return string.format('%s.%03dZ', text, ms % 1000)
end
local function at() return rfc3339(now) end

local function record(id) return P .. 'mission:' .. id end

local function count(type, status, state, by)
  local key = type .. '|' .. status .. '|' .. state
  counts[key] = (counts[key] or 0) + by
end

local function to_lane(id, lane, order)
  local priority, pool, tenant = string.match(lane, '^(.-):(.-):(.*)$')
  call('ZADD', P .. 'lane:' .. lane, order, id)
  call('ZADD', P .. 'ring:' .. priority .. ':' .. pool, 'NX', now, tenant)
  woken[pool] = true
end

-- Takes the target if it is free or mine, and goes to the lane; else joins its waiters. The caller writes the place.
local function enter(id, lane, order, target)
  if target and target ~= '' then
    local holder = call('GET', P .. 'target:' .. target)
    if holder and holder ~= id then
      call('ZADD', P .. 'waiters:' .. target, RANK[string.match(lane, '^[^:]*')] * 1e13 + order, id)
      return 'waiters'
    end
    if not holder then call('SET', P .. 'target:' .. target, id) end
  end
  to_lane(id, lane, order)
  return 'lane'
end

-- If id holds its target, the hold is assigned to the best waiter, who goes to its lane.
local function free(id, target)
  if not target or target == '' or call('GET', P .. 'target:' .. target) ~= id then return end
  while true do
    local best = call('ZPOPMIN', P .. 'waiters:' .. target)[1]
    if not best then
      call('DEL', P .. 'target:' .. target)
      return
    end
    local w = call('HMGET', record(best), 'place', 'lane', 'order')
    if w[1] == 'waiters' then
      call('SET', P .. 'target:' .. target, best)
      call('HSET', record(best), 'place', 'lane', 'ready_at', now)
      to_lane(best, w[2], w[3])
      return
    end
  end
end

-- A hint to every foreground that watches: the id, then a line per event (E…) and the result (R…).
local function tell(id, watchers, lines)
  for front, till in string.gmatch(watchers or '', '(%S+) (%d+)') do
    if tonumber(till) > now then call('PUBLISH', P .. 'feed:' .. front, id .. lines) end
  end
end

local function event(seq, status, state, data)
  return '{"seq":' .. seq .. ',"at":"' .. at() .. '","status":"' .. status .. '","state":"' .. state .. '","data":' .. data .. '}'
end

local function result(seq, rest, created, started, retention)
  return '{"seq":' .. seq .. ',' .. rest .. ',"created_at":"' .. rfc3339(tonumber(created)) .. '","started_at":'
    .. (started and '"' .. rfc3339(tonumber(started)) .. '"' or 'null') .. ',"finished_at":"' .. at()
    .. '","expires_at":"' .. rfc3339(now + retention) .. '"}'
end

local CONTROLLED = {'place', 'lane', 'order', 'target', 'type', 'version', 'status', 'state', 'rev', 'seq', 'unread',
  'owner', 'watchers', 'root', 'run', 'created_at', 'started_at'}
local function read(id)
  local values, m = call('HMGET', record(id), unpack(CONTROLLED)), {}
  for i, name in ipairs(CONTROLLED) do m[name] = values[i] end
  return m.place and m
end

-- Nothing ran for two polls: Redis was frozen, so no first look at a lease may stand (P7). Claim and renew call it.
local function thaw(poll)
  if now - (call('GET', P .. 'tick') or now) > 2 * poll then call('DEL', P .. 'looks') end
  call('SET', P .. 'tick', now)
end

-- An entry for the lease holder (P3). What waits is moved towards its lane. Answers OK, DUPLICATE or FULL.
local function post(id, m, entry_id, entry, reserved)
  if call('SISMEMBER', P .. 'inbox_ids:' .. id, entry_id) == 1 then return 'DUPLICATE' end
  if not reserved and tonumber(m.unread or 0) >= 64 then return 'FULL' end
  call('SADD', P .. 'inbox_ids:' .. id, entry_id)
  call('RPUSH', P .. 'inbox:' .. id, entry)
  call('HINCRBY', record(id), 'unread', 1)
  if m.place == 'leased' then
    call('SADD', P .. 'signals:' .. m.owner, id)
    call('PUBLISH', P .. 'signal:' .. m.owner, id)
  elseif m.place == 'waiting' then
    call('ZREM', P .. 'timers', id)
    call('HSET', record(id), 'place', enter(id, m.lane, m.order, m.target), 'ready_at', now)
  end
  return 'OK'
end

-- The end of a mission that nobody leases and that never committed: the only end which is not a worker's.
local function cancel(id, m, reason, retention)
  local seq = (m.seq or 0) + 1
  local ev = event(seq, 'CANCELLED', 'CANCELLED', '{"reason":"' .. reason .. '"}')
  call('RPUSH', P .. 'log:' .. id, ev) -- first: the one write that can break
  if m.place == 'lane' then call('ZREM', P .. 'lane:' .. m.lane, id)
  elseif m.place == 'waiters' then call('ZREM', P .. 'waiters:' .. m.target, id)
  elseif m.place == 'parked' then
    local kind = m.type .. '@' .. m.version
    call('ZREM', P .. 'parked:' .. kind, id)
    if call('EXISTS', P .. 'parked:' .. kind) == 0 then call('SREM', P .. 'parked_types', kind) end
  elseif m.place == 'waiting' then call('ZREM', P .. 'timers', id) end
  local doc = result(seq, '"correlation_id":"' .. (m.root or id) .. '","task_id":"' .. id .. '","type":"' .. m.type
    .. '","status":"CANCELLED","state":"CANCELLED","result":null,"error":null,"reason":"' .. reason
    .. '","waiting_for":null,"run":' .. (m.run or 1) .. ',"progress":null,"freshness":null', m.created_at, m.started_at,
    retention)
  call('HSET', record(id), 'place', 'ended', 'status', 'CANCELLED', 'state', 'CANCELLED', 'seq', seq,
    'unread', 0)
  call('SET', P .. 'result:' .. id, doc, 'PX', retention)
  call('DEL', P .. 'inbox:' .. id, P .. 'inbox_ids:' .. id)
  call('ZREM', P .. 'deadlines', id)
  call('ZADD', P .. 'retire', now + retention, id)
  count(m.type, m.status, m.state, -1)
  count(m.type, 'CANCELLED', 'CANCELLED', 1)
  free(id, m.target)
  tell(id, m.watchers, '\nE' .. ev .. '\nR' .. doc)
end

-- One item of many: what breaks in it is answered for it and never fails the others (P4). Answers true and what f
-- answers, or false and the error.
local function attempt(f, ...)
  local ok, answer = pcall(f, ...)
  if ok then return true, answer end
  answer = tostring(type(answer) == 'table' and answer.err or answer)
  redis.log(redis.LOG_WARNING, 'dualloop: ' .. answer)
  return false, answer
end

-- Last thing in every script that moved something: sums and hints that no later item reads (P4).
local function settle()
  for key, by in pairs(counts) do
    if by ~= 0 and call('HINCRBY', P .. 'counts', key, by) == 0 then call('HDEL', P .. 'counts', key) end
  end
  for pool in pairs(woken) do call('PUBLISH', P .. 'wake:' .. pool, '') end
end

