-- Keeps a lease alive; its answer is the control channel that needs no message to arrive (P6).
-- KEYS      1 the shard's prefix
-- ARGV      1 owner  2 lease_ms  3 poll_ms
-- Answers   LOST, or {OK, epoch ms, ids of its missions with unread entries}
-- Invariant a lease that was taken over never comes back to life.
-- Guarded by tests/redis/mutants.txt: test_lease.py test_takeover.py
local lease_end = call('ZSCORE', P .. 'owners', ARGV[1])
thaw(tonumber(ARGV[3]))
if not lease_end or tonumber(lease_end) <= 0 then return 'LOST' end
call('ZADD', P .. 'owners', now + ARGV[2], ARGV[1])
return {'OK', now, call('SMEMBERS', P .. 'signals:' .. ARGV[1])}
