-- Ends a lease at a clean stop, so that nobody needs to look twice at an owner that holds nothing.
-- KEYS      1 the shard's prefix
-- ARGV      1 owner
-- Answers   OK, or HOLDS while missions are leased to it (then it has to lapse)
-- Invariant an owner that holds missions stays until they are put back.
-- Guarded by tests/redis/mutants.txt: test_lease.py
if call('EXISTS', P .. 'held:' .. ARGV[1]) == 1 then return 'HOLDS' end
call('ZREM', P .. 'owners', ARGV[1])
call('HDEL', P .. 'looks', ARGV[1])
call('DEL', P .. 'signals:' .. ARGV[1])
return 'OK'
