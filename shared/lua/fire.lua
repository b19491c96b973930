-- Fires schedules, for the one process that leads in it: which are due, a run begins, it is done, or it cannot be.
-- KEYS      1 the prefix of shard 0
-- ARGV      1 term of the leader, then one of
--           due, how many at most
--           begin, name, revision, next instant as read, task id, row (JSON, what is to be accepted under that id), the next
--           instant after this run ('': none), when that is due (likewise): ids '' and rows '' run nothing, and go on
--           done, name, task id, instant (epoch ms) that was run
--           drop, name, task id: of a run that comes too late, and was not sent
--           trouble, name, sentence, ms until it is looked at again
--           mend, name after which to go on ('' from the first one), how many at most
-- Answers   {FENCED, term} where a later leader has been here; due: {OK, now, ms until the next one or -1, record*}, a record
--           being {name, {field value*}} or {name, why it cannot be read}; mend: {OK, name to go on after or '', those that
--           were missing among the dues*}; else OK · CHANGED (not as read, or a run is
--           under way) · GONE
-- Invariant a run begins once for an instant, under one id, and is under way until it is done, whoever leads. With its
--           beginning the next instant is stored, so nothing is run a second time.
-- Guarded by tests/redis/mutants.txt: test_fire.py
local term, what, name = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local latest = tonumber(call('HGET', P .. 'terms', 'schedules') or 0)
if term < latest then return {'FENCED', latest} end
if term > latest then call('HSET', P .. 'terms', 'schedules', term) end
local dues = P .. 'schedule_dues'

local function look(one)
  local s = call('HMGET', P .. 'schedule:' .. one, 'rev', 'firing', 'paused', 'due')
  if not s[1] then call('ZREM', P .. 'schedules', one) end
  if s[1] and (s[2] or not s[3] and s[4] and s[4] ~= '') then return call('HGETALL', P .. 'schedule:' .. one) end
  call('ZREM', dues, one) -- an index that disagrees is dropped (P1)
  return false
end

if what == 'due' then
  local answer = {'OK', now, -1}
  for _, one in ipairs(call('ZRANGE', dues, '-inf', now, 'BYSCORE', 'LIMIT', 0, name)) do
    local _, found = attempt(look, one)
    if found then answer[#answer + 1] = {one, found} end
  end
  local following = call('ZRANGE', dues, '(' .. now, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]
  if following then answer[3] = math.ceil(following - now) end
  return answer
end

if what == 'mend' then
  local start = name == '' and '-' or '(' .. name
  local names = call('ZRANGE', P .. 'schedules', start, '+', 'BYLEX', 'LIMIT', 0, ARGV[4])
  local answer = {'OK', #names == tonumber(ARGV[4]) and names[#names] or ''}
  for _, one in ipairs(names) do
    attempt(function()
      local s = call('HMGET', P .. 'schedule:' .. one, 'due', 'paused', 'firing')
      local due = s[3] and now or not s[2] and s[1]
      if due and due ~= '' and call('ZADD', dues, 'NX', due, one) == 1 then answer[#answer + 1] = one end
    end)
  end
  return answer
end

local key = P .. 'schedule:' .. name
if what == 'trouble' then
  call('ZADD', dues, 'XX', now + ARGV[5], name)
  attempt(function() if call('EXISTS', key) == 1 then call('HSET', key, 'trouble', ARGV[4], 'trouble_at', now) end end)
  return 'OK'
end

local s = call('HMGET', key, 'rev', 'next', 'paused', 'firing', 'firing_task', 'due')
if not s[1] then return 'GONE' end
local function rest(due)
  if s[3] or due == '' then call('ZREM', dues, name) else call('ZADD', dues, due, name) end
end
if what == 'begin' then
  local task, row, following, due = unpack(ARGV, 6, 9)
  if s[1] ~= ARGV[4] or s[2] ~= ARGV[5] or s[4] then return 'CHANGED' end
  call('HSET', key, 'next', following, 'due', due)
  if task == '' then rest(due) else call('HSET', key, 'firing', row, 'firing_task', task) end
else
  if s[5] ~= ARGV[4] then return 'CHANGED' end
  call('HDEL', key, 'firing', 'firing_task', 'trouble', 'trouble_at')
  if what == 'done' then
    call('HSET', key, 'last', ARGV[5], 'last_at', now, 'last_task', ARGV[4])
    call('HINCRBY', key, 'fired', 1)
  end
  rest(s[6] or '')
end
return 'OK'
