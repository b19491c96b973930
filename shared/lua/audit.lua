-- Holds records, indexes and counts against each other, a bounded piece a call, and repairs what disagrees (P1).
-- KEYS      1 the shard's prefix
-- ARGV      1 term of the leader  2 retention_ms, then one of
--           records, ids: their indexes have them, and they have what their place needs
--           index, its name, members: each is what its record says; `target`: the members are targets
--           mark, type|status|state…: these are about to be counted again
--           counted, then pairs type|status|state number: that was found of those marked
-- Answers   {FENCED, term} where a later leader has been here, else {OK, {index id what was done}*, more}; more: of
--           records {id type|status|state}*, of counted the counts {type|status|state number}*
-- Invariant a shard that agrees with itself is not changed. The record is the truth: an index that lacks it gets it
--           back, one that disagrees loses it. A count is put right only if nothing of its kind moved since it was marked.
-- Guarded by tests/redis/mutants.txt: test_audit.py
local term, retention, what = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local latest = tonumber(call('HGET', P .. 'terms', 'audit') or 0)
if term < latest then return {'FENCED', latest} end
if term > latest then call('HSET', P .. 'terms', 'audit', term) end

local repairs, more = {}, {}
local function did(index, id, done)
  repairs[#repairs + 1] = index
  repairs[#repairs + 1] = id
  repairs[#repairs + 1] = done
end
local function has(index, id) return call('ZSCORE', P .. index, id) end
local function put(index, score, id)
  call('ZADD', P .. index, score, id)
  did(index, id, 'put back')
end

-- Where a holder stands: it holds rightly in a lane, under a lease, or waiting with its hold kept (P10).
local function stands(holder, target)
  local h = call('HMGET', record(holder), 'place', 'target')
  return h[2] == target and (h[1] == 'lane' or h[1] == 'leased' or h[1] == 'waiting') and h[1]
end
local function to_waiters(id, m)
  leave(id, m)
  m.place = enter(id, lower(id, m.lane, m.base), m.order, m.target)
  call('HSET', record(id), 'place', m.place, 'ready_at', now)
end
-- What is ready or leased holds its target. Answers false where it had to join the waiters.
local function hold(id, m)
  local target = m.target
  local holder = target and call('GET', P .. 'target:' .. target)
  if not target or holder == id then return true end
  local place = holder and stands(holder, target)
  if place == 'leased' and m.place == 'leased' then did('target:' .. target, id, 'nothing: another is at work on it')
  elseif place and m.place == 'lane' then
    to_waiters(id, m)
    did('target:' .. target, id, 'sent to the waiters: another holds it')
    return false
  else
    call('SET', P .. 'target:' .. target, id)
    if place then to_waiters(holder, read(holder)) end
    call('ZREM', P .. 'waiters:' .. target, id)
    inherit(id, target)
    did('target:' .. target, id, 'given the hold')
  end
  return true
end
local function pass_on(holder, target)
  if not holder then
    holder = '-'
    call('SET', P .. 'target:' .. target, holder)
  end
  free(holder, target)
  did('target:' .. target, holder, 'passed on')
end

local AT = {}
function AT.lane(id, m)
  if not hold(id, m) then return end
  local priority, pool, tenant = string.match(m.lane, '^(.-):(.-):(.*)$')
  local order = tonumber(has('lane:' .. m.lane, id) or -1)
  if order ~= tonumber(m.order) or not has('ring:' .. priority .. ':' .. pool, tenant) then
    to_lane(id, m.lane, m.order)
    did('lane:' .. m.lane, id, 'put back')
  end
end
function AT.leased(id, m)
  hold(id, m)
  -- a lease that nobody has any more: as one that has lapsed it is taken over by the rules of P7
  if not has('owners', m.owner) then put('owners', 1, m.owner) end
  if call('SADD', P .. 'held:' .. m.owner, id) == 1 then did('held:' .. m.owner, id, 'put back') end
  if m.unread ~= '0' and call('SADD', P .. 'signals:' .. m.owner, id) == 1 then
    call('PUBLISH', P .. 'signal:' .. m.owner, id)
    did('signals:' .. m.owner, id, 'put back')
  end
  for scope in string.gmatch(m.permits or '', '%S+') do
    local fence = call('HGET', record(id), 'fence')
    if call('HGET', P .. 'permits:' .. scope, id) ~= fence then
      call('HSET', P .. 'permits:' .. scope, id, fence)
      did('permits:' .. scope, id, 'put back')
    end
  end
end
function AT.waiting(id, m)
  local wake = tonumber(m.wake_at or '')
  if m.unread ~= '0' then
    stir(id, m)
    did('inbox', id, 'woken: it slept through entries')
  elseif wake and tonumber(has('timers', id) or -1) ~= wake then put('timers', wake, id) end
end
function AT.waiters(id, m)
  if not m.target then
    call('HSET', record(id), 'place', enter(id, m.lane, m.order), 'ready_at', now)
    return did('lane:' .. m.lane, id, 'put back: it waits for no target')
  end
  local holder = call('GET', P .. 'target:' .. m.target)
  if not has('waiters:' .. m.target, id) then
    local priority = string.match(m.lane, '^[^:]*')
    put('waiters:' .. m.target, place_in_line(call('HGET', record(id), 'ready_at') or now, priority, m.order), id)
    if holder then raise(holder, priority) end
  end
  if not holder or not stands(holder, m.target) then pass_on(holder, m.target) end
end
function AT.parked(id, m)
  local kind = m.type .. '@' .. m.version
  if not has('parked:' .. kind, id) then
    put('parked:' .. kind, call('HGET', record(id), 'parked_at') or now, id)
  end
  if call('SADD', P .. 'parked_types', kind) == 1 then did('parked_types', id, 'put back') end
end
function AT.paused(id, m)
  local since = tonumber(m.paused_at) or now
  if tonumber(has('paused', id) or -1) == since then return end
  call('HSET', record(id), 'paused_at', since)
  put('paused', since, id)
end
function AT.ended(id, m)
  if not has('retire', id) then put('retire', now + retention, id) end
end
local HOLDS = {lane = true, leased = true, waiting = true, waiters = true}

local function check(id)
  local m = read(id)
  if not m then return call('EXISTS', record(id)) == 1 and error('a record without a place') end
  more[#more + 1] = id
  more[#more + 1] = m.type .. '|' .. m.status .. '|' .. m.state
  m.unread = m.unread or '0'
  local unread = call('LLEN', P .. 'inbox:' .. id)
  if unread ~= tonumber(m.unread) then
    call('HSET', record(id), 'unread', unread)
    m.unread = tostring(unread)
    did('inbox', id, 'counted again')
  end
  if m.place ~= 'ended' then
    if not has('deadlines', id) and call('SISMEMBER', P .. 'inbox_ids:' .. id, 'deadline:' .. (m.run or 1)) == 0 then
      put('deadlines', m.deadline, id)
    end
  end
  if call('EXISTS', P .. 'outbox:' .. id) == 1 and call('ZADD', P .. 'outboxes', 'NX', now, id) == 1 then
    did('outboxes', id, 'put back')
  end
  if not HOLDS[m.place] and m.target and call('GET', P .. 'target:' .. m.target) == id then pass_on(id, m.target) end
  if not AT[m.place] then error('no place: ' .. m.place) end
  AT[m.place](id, m)
end

-- Whether a record agrees with an index that names it
local FIELDS = {'place', 'lane', 'wake_at', 'target', 'type', 'version', 'owner', 'unread', 'latest', 'acted', 'fence',
  'queued', 'failed_in'}
local AGREES = {
  lane = function(m, name) return m.place == 'lane' and m.lane == name end,
  timers = function(m) return m.place == 'waiting' and (m.wake_at or '') ~= '' end,
  deadlines = function(m) return m.place and m.place ~= 'ended' end,
  retire = function(m) return not m.place or m.place == 'ended' end, -- what is left of one that is gone, retire removes
  waiters = function(m, name) return m.place == 'waiters' and m.target == name end,
  parked = function(m, name) return m.place == 'parked' and m.type .. '@' .. m.version == name end,
  paused = function(m) return m.place == 'paused' end,
  dead_letters = function(m) return m.place == 'ended' and m.failed_in end,
  intents = function(m, name) return m.latest == name and (m.place ~= 'ended' or m.acted) end,
  held = function(m, name) return m.place == 'leased' and m.owner == name end,
  signals = function(m, name) -- those of a lost owner go together with it
    return m.place == 'leased' and m.owner == name and (m.unread or '0') ~= '0' or tonumber(has('owners', name)) == 0
  end,
  outboxes = function(_, _, id) return call('EXISTS', P .. 'outbox:' .. id) == 1 end,
  permits = function(m, name, id)
    return m.place == 'leased' and m.fence == call('HGET', P .. 'permits:' .. name, id)
  end,
  permit_queue = function(m, name) return string.match(m.queued or '', '^%S+') == name end,
}
local DROP = {held = 'SREM', signals = 'SREM', permits = 'HDEL'}

local function look(id, index, kind, name)
  local values, m = call('HMGET', record(id), unpack(FIELDS)), {}
  for i, field in ipairs(FIELDS) do m[field] = values[i] end
  if AGREES[kind](m, name, id) then return end
  if call(DROP[kind] or 'ZREM', P .. index, id) == 0 then return end -- it went by itself since it was seen
  did(index, id, 'dropped')
  if kind == 'permits' then drop_permits('-', name) end -- that it is free is news for whoever waits
end
local function held(target)
  local holder = call('GET', P .. 'target:' .. target)
  if holder and not stands(holder, target) then pass_on(holder, target) end
end

local function each(from, f, ...)
  for i = from, #ARGV do
    local ok, why = attempt(f, ARGV[i], ...)
    if not ok then did('', ARGV[i], why) end
  end
end

if what == 'records' then each(4, check)
elseif what == 'index' and ARGV[4] == 'target' then each(5, held)
elseif what == 'index' then
  local kind, name = string.match(ARGV[4], '^([^:]*):?(.*)$')
  each(5, look, ARGV[4], kind, name)
elseif what == 'mark' then
  call('DEL', P .. 'recount')
  for i = 4, #ARGV do call('HSET', P .. 'recount', ARGV[i], 1) end
  call('PEXPIRE', P .. 'recount', 86400000)
elseif what == 'counted' then
  for i = 4, #ARGV, 2 do
    local key, real = ARGV[i], tonumber(ARGV[i + 1])
    local told = tonumber(call('HGET', P .. 'counts', key) or 0)
    if told ~= real and call('HEXISTS', P .. 'recount', key) == 1 then -- its mark is off once it has moved
      if real > 0 then call('HSET', P .. 'counts', key, real) else call('HDEL', P .. 'counts', key) end
      did('counts', key, told .. ' put right to ' .. real)
    end
  end
  call('DEL', P .. 'recount')
  more = call('HGETALL', P .. 'counts')
end
settle()
return {'OK', repairs, more}
