-- Takes in a schedule, new or changed; what fires it is told.
-- KEYS      1 the prefix of shard 0
-- ARGV      1 name  2 revision that is changed, '' of a new one  3 plan, JSON  4 '1': a new one is paused, else ''
--           5 next instant, epoch ms, '': none, or as it is  6 when that is due, epoch ms, likewise  7 schedules there may be
-- Answers   {OK, revision} · EXISTS · {FULL, how many there are} · CHANGED (has another revision by now) · GONE
-- Invariant a schedule that is not paused and has a next instant stands among the dues, and no other, unless a run of it
--           is under way. A revision is of one plan only. Not allow-oom: a full Redis takes in nothing new.
-- Guarded by tests/redis/mutants.txt: test_schedule.py
local name, changed, plan, asleep, following, due = unpack(ARGV, 1, 6)
local key = P .. 'schedule:' .. name
local s = call('HMGET', key, 'rev', 'paused', 'firing', 'due')
local paused = s[2]
if changed == '' then
  if s[1] then return 'EXISTS' end
  local there = call('ZCARD', P .. 'schedules')
  if there >= tonumber(ARGV[7]) then return {'FULL', there} end
  call('HSET', key, 'created_at', now)
  call('ZADD', P .. 'schedules', 0, name)
  if asleep == '1' then
    call('HSET', key, 'paused', '1')
    paused = '1'
  end
else
  if not s[1] then return 'GONE' end
  if s[1] ~= changed then return 'CHANGED' end
end
local rev = call('HINCRBY', key, 'rev', 1)
call('HSET', key, 'plan', plan, 'changed_at', now)
call('HDEL', key, 'trouble', 'trouble_at')
if due ~= '' then call('HSET', key, 'next', following, 'due', due) else due = s[4] end
if due and due ~= '' and not paused and not s[3] then call('ZADD', P .. 'schedule_dues', due, name) end
call('PUBLISH', P .. 'planned', name)
return {'OK', rev}
