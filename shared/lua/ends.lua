-- What is done to a mission that its lease holder does not do itself: entries for its inbox, a pause, an end. Not a
-- script: it is put, behind the places, in front of each one that needs it.
-- KEYS      1 the shard's prefix
-- ARGV      the verb's
-- Answers   none
-- Invariant what is leased is never moved, only told (P3); whatever leaves a place gives its hold and permits on.
-- Guarded by tests/redis/mutants.txt: test_permit.py test_control.py test_commit.py test_lease.py test_targets.py
--           test_parking.py test_progress.py test_dead_letters.py test_sweep.py test_pause.py test_prioritize.py
--           test_latest.py test_outbox.py test_deposit.py
local CONTROLLED = {'place', 'lane', 'order', 'target', 'type', 'version', 'status', 'state', 'rev', 'seq', 'unread',
  'owner', 'watchers', 'root', 'run', 'created_at', 'started_at', 'base', 'was', 'permits', 'latest', 'intent', 'acted',
  'wake_at', 'waiting_for', 'deadline', 'paused_at', 'parked_at', 'parent', 'children', 'progress'}
local function read(id)
  local values, m = call('HMGET', record(id), unpack(CONTROLLED)), {}
  for i, name in ipairs(CONTROLLED) do m[name] = values[i] end
  return m.place and m
end

-- Out of the index of its place; the caller says where to.
local function leave(id, m)
  if m.place == 'lane' then call('ZREM', P .. 'lane:' .. m.lane, id)
  elseif m.place == 'waiters' then call('ZREM', P .. 'waiters:' .. m.target, id)
  elseif m.place == 'waiting' then call('ZREM', P .. 'timers', id)
  elseif m.place == 'paused' then
    call('ZREM', P .. 'paused', id)
    call('HDEL', record(id), 'paused_at', 'was')
  elseif m.place == 'parked' then
    local kind = m.type .. '@' .. m.version
    call('ZREM', P .. 'parked:' .. kind, id)
    if call('EXISTS', P .. 'parked:' .. kind) == 0 then call('SREM', P .. 'parked_types', kind) end
  end
end

local function status_to(id, m, status)
  if status == m.status then return end
  call('HSET', record(id), 'status', status)
  count(m.type, m.status, m.state, -1)
  count(m.type, status, m.state, 1)
  m.status = status
end

local function log_event(id, m, status, data)
  local seq = (m.seq or 0) + 1
  local ev = event(seq, status, m.state, data)
  call('RPUSH', P .. 'log:' .. id, ev) -- first: the one write that can break
  call('HSET', record(id), 'seq', seq)
  m.seq = seq
  tell(id, m.watchers, '\nE' .. ev)
end

-- What waits, or is paused, towards its lane.
local function stir(id, m)
  local was = m.was
  leave(id, m)
  if m.place == 'paused' then
    call('ZADD', P .. 'deadlines', 'XX', m.deadline, id)
    status_to(id, m, was or ((m.rev or '0') == '0' and 'PENDING' or 'WAITING'))
  end
  m.place = enter(id, m.lane, m.order, m.target)
  call('HSET', record(id), 'place', m.place, 'ready_at', now)
end

-- An entry for the lease holder (P3). What waits is moved towards its lane; what is paused, where the entry is one that
-- no pause holds back. Answers OK, DUPLICATE or FULL.
local function post(id, m, entry_id, entry, reserved, rouses)
  if call('SISMEMBER', P .. 'inbox_ids:' .. id, entry_id) == 1 then return 'DUPLICATE' end
  if not reserved and tonumber(m.unread or 0) >= 64 then return 'FULL' end
  call('SADD', P .. 'inbox_ids:' .. id, entry_id)
  call('RPUSH', P .. 'inbox:' .. id, entry)
  call('HINCRBY', record(id), 'unread', 1)
  if m.place == 'leased' then
    call('SADD', P .. 'signals:' .. m.owner, id)
    call('PUBLISH', P .. 'signal:' .. m.owner, id)
  elseif m.place == 'waiting' or m.place == 'paused' and rouses then stir(id, m) end
  return 'OK'
end

-- The end of a mission that nobody leases: the only end which is not a worker's. `middle` is the result's reason and
-- error; `dead_ms` how long it is kept as a dead letter, or nil.
local function finish(id, m, status, data, middle, retention, dead_ms)
  local seq = (m.seq or 0) + 1
  local ev = event(seq, status, status, data)
  if m.parent or m.children then call('LLEN', P .. 'outbox:' .. id) end
  call('RPUSH', P .. 'log:' .. id, ev) -- first: with rows the one write that can break
  leave(id, m)
  local doc = result(seq, '"correlation_id":"' .. (m.root or id) .. '","task_id":"' .. id .. '","type":"' .. m.type
    .. '","status":"' .. status .. '","state":"' .. status .. '","result":null,' .. middle
    .. ',"waiting_for":null,"run":' .. (m.run or 1) .. ',"freshness":null', m.created_at, m.started_at,
    retention, m.progress)
  call('HSET', record(id), 'place', 'ended', 'status', status, 'state', status, 'seq', seq, 'unread', 0)
  call('SET', P .. 'result:' .. id, doc, 'PX', retention)
  if call('DEL', P .. 'inbox:' .. id, P .. 'inbox_ids:' .. id, P .. 'audio:' .. id) > 0 then uncount(id) end
  call('ZREM', P .. 'deadlines', id)
  call('ZADD', P .. 'retire', now + (dead_ms or retention), id)
  if dead_ms then
    call('ZADD', P .. 'dead_letters', now, id)
    call('HSET', record(id), 'failed_in', m.state)
  end
  local rows = {}
  if m.children then rows[1] = '{"row":"cancel_all"}' end
  if m.parent then rows[#rows + 1] = end_row(id, m.parent, m.run, doc) end
  if #rows > 0 then put_rows(id, rows) end
  if m.latest then forget_intent(id, m.latest, m.intent, m.acted) end
  count(m.type, m.status, m.state, -1)
  count(m.type, status, status, 1)
  if m.permits then drop_permits(id, m.permits) end
  free(id, m.target)
  tell(id, m.watchers, '\nE' .. ev .. '\nR' .. doc)
end

local function cancel(id, m, reason, retention, data)
  finish(id, m, 'CANCELLED', data or '{"reason":"' .. reason .. '"}', '"error":null,"reason":"' .. reason .. '"', retention)
end

-- What of it is not undone, the newest state first, as its error says it: no undo of it will run. Nothing, where nobody
-- can read that.
local function behind(id)
  local ok, document = pcall(cjson.decode, call('HGET', record(id), 'document') or '')
  local names = {}
  for _, one in ipairs(ok and type(document) == 'table' and type(document.done) == 'table' and document.done or {}) do
    table.insert(names, 1, cjson.encode(type(one) == 'table' and one[1] or '?'))
  end
  return #names > 0 and ',"not_undone":[' .. table.concat(names, ',') .. ']' or ''
end

-- A failure that no handler is behind: a dead letter.
local function fail(id, m, code, message, retention, dead_ms)
  local why, left = '{"code":"' .. code .. '","error":"' .. message .. '"', behind(id)
  finish(id, m, 'FAILED', why .. left .. '}', '"error":{"code":"' .. code .. '","message":"' .. message .. '","state":"'
    .. m.state .. '","attempts":1' .. left .. '},"reason":null', retention, dead_ms)
end
