-- What became of a row: it is removed and the next one given out, put off, or laid among the dead ones (P5).
-- KEYS      1 the shard's prefix
-- ARGV      1 id  2 the row  3 verdict: done | later | dead  4 ms: how long the next row is held, or this one put off
--           5 of a dead one: what is kept of it, JSON
-- Answers   the next row, or nothing: none is left, it was put off, or somebody else has carried it on
-- Invariant a row goes only if it is the oldest one, byte for byte; the next is given out only after that.
-- Guarded by tests/redis/mutants.txt: test_outbox.py
local DEAD_KEPT = 100
local id, row, verdict, ms = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local outbox = P .. 'outbox:' .. id
if call('LINDEX', outbox, 0) ~= row then return '' end
if verdict == 'later' then
  call('ZADD', P .. 'outboxes', 'XX', now + ms, id)
  return ''
end
if verdict == 'dead' then
  call('RPUSH', P .. 'dead_rows:' .. id, ARGV[5])
  call('LTRIM', P .. 'dead_rows:' .. id, -DEAD_KEPT, -1)
end
call('LPOP', outbox)
local following = call('LINDEX', outbox, 0)
if following then call('ZADD', P .. 'outboxes', now + ms, id)
else call('ZREM', P .. 'outboxes', id) end
return following or ''
