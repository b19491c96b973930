-- A dead letter that nobody wants any more: gone at the next retire.
-- KEYS      1 the shard's prefix
-- ARGV      1 id
-- Answers   OK | RUNNING | ENDED (no dead letter) | GONE
-- Invariant only a dead letter goes, and by `retire` alone, which removes everything of it together.
-- Guarded by tests/redis/mutants.txt: test_replay.py
local place = call('HGET', record(ARGV[1]), 'place')
if not place then return 'GONE' end
if place ~= 'ended' then return 'RUNNING' end
if call('ZREM', P .. 'dead_letters', ARGV[1]) == 0 then return 'ENDED' end
call('ZADD', P .. 'retire', now, ARGV[1])
return 'OK'
