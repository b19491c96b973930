-- Workers publish the mission types they know (P15); foregrounds see by the counter that something changed.
-- KEYS      1 the prefix of shard 0
-- ARGV      1 ms that a row stays after its last live worker, then per item 2: type@version row
-- Answers   the counter of changes
-- Invariant a row is there as long as a worker that knows it has announced it lately; the counter rises with each change.
-- Guarded by tests/redis/mutants.txt: test_announce.py
local changed = false
for i = 2, #ARGV, 2 do
  if call('HGET', P .. 'catalogue', ARGV[i]) ~= ARGV[i + 1] then
    call('HSET', P .. 'catalogue', ARGV[i], ARGV[i + 1])
    changed = true
  end
  call('ZADD', P .. 'catalogue_seen', now, ARGV[i])
end
for _, kind in ipairs(call('ZRANGE', P .. 'catalogue_seen', '-inf', now - ARGV[1], 'BYSCORE', 'LIMIT', 0, 50)) do
  call('HDEL', P .. 'catalogue', kind)
  call('ZREM', P .. 'catalogue_seen', kind)
  changed = true
end
if changed then call('INCR', P .. 'catalogue_rev') end
return tonumber(call('GET', P .. 'catalogue_rev') or 0)
