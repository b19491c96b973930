-- Moves a suspect to an owner that carries nothing else, so that nobody is lost with it but who kills (P8).
-- KEYS      1 the shard's prefix
-- ARGV      1 owner  2 solo owner  3 lease_ms  4 id  5 fence
-- Answers   OK, also if it was moved before (a lost answer, asked again), or FENCED
-- Invariant only what this owner leases under this fence moves, and only while its lease stands; fence, rev, hold and
--           permits are the same afterwards, so whoever commits for the new owner goes on where the old one stood.
-- Guarded by tests/redis/mutants.txt: test_adopt.py
local owner, solo, id, fence = ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local m = call('HMGET', record(id), 'place', 'owner', 'fence', 'unread')
if m[1] ~= 'leased' or m[3] ~= fence then return 'FENCED' end
if m[2] == solo then return 'OK' end
if m[2] ~= owner or tonumber(call('ZSCORE', P .. 'owners', owner) or 0) <= 0 then return 'FENCED' end
call('ZADD', P .. 'owners', now + ARGV[3], solo)
call('SREM', P .. 'held:' .. owner, id)
call('SADD', P .. 'held:' .. solo, id)
call('SREM', P .. 'signals:' .. owner, id)
if (m[4] or '0') ~= '0' then call('SADD', P .. 'signals:' .. solo, id) end
call('HSET', record(id), 'owner', solo)
return 'OK'
