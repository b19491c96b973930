-- Pauses, resumes or removes a schedule, or notes a run that somebody asked for.
-- KEYS      1 the prefix of shard 0
-- ARGV      1 name  2 verb: pause | resume | remove | ran, then of
--           resume: 3 revision that was read  4 next instant, epoch ms, '': none  5 when that is due, likewise
--           ran: 3 task id  4 who asked
-- Answers   OK · CHANGED (resume: has another revision by now) · GONE
-- Invariant as of schedule.lua. What is paused begins no run; one that has begun is carried out.
-- Guarded by tests/redis/mutants.txt: test_schedule.py
local name, verb = ARGV[1], ARGV[2]
local key, dues = P .. 'schedule:' .. name, P .. 'schedule_dues'
if verb == 'remove' then -- a damaged one too
  call('ZREM', dues, name)
  call('ZREM', P .. 'schedules', name)
  return call('DEL', key) == 1 and 'OK' or 'GONE'
end
local s = call('HMGET', key, 'rev', 'paused', 'firing')
if not s[1] then return 'GONE' end
if verb == 'ran' then
  call('HSET', key, 'ran_at', now, 'ran_task', ARGV[3], 'ran_by', ARGV[4])
elseif verb == 'pause' then
  if s[2] then return 'OK' end
  call('HSET', key, 'paused', '1', 'rev', s[1] + 1)
  if not s[3] then call('ZREM', dues, name) end
else
  if s[1] ~= ARGV[3] then return 'CHANGED' end
  if not s[2] then return 'OK' end
  call('HDEL', key, 'paused')
  call('HSET', key, 'next', ARGV[4], 'due', ARGV[5], 'rev', s[1] + 1)
  if ARGV[5] ~= '' and not s[3] then call('ZADD', dues, ARGV[5], name) end
  call('PUBLISH', P .. 'planned', name)
end
return 'OK'
