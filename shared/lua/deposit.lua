-- Lays down the recording that a command comes with, before the command itself is taken in.
-- KEYS      1 the prefix of the mission's shard
-- ARGV      1 id of the mission  2 ms to keep it  3 share of maxmemory beyond which no recording is taken
--           4 bytes that all recordings here may have  5 recording
-- Answers   OK · DUPLICATE (the mission was taken in already, with its recording) · FULL (no room in the memory)
--           · CROWDED (too many bytes of recordings wait here)
-- Invariant a recording lives for so long at most, whatever becomes of its mission, and none is laid down for a mission
--           that may have ended. Recordings leave the rest of the memory to commands, and have a bound of their own where
--           Redis has none: the sum of those that are kept, which whatever removes one keeps right. Not allow-oom: a full
--           Redis takes in nothing new.
-- Guarded by tests/redis/mutants.txt: test_deposit.py
local id, keep, share, most, recording = unpack(ARGV)
local recordings, recorded = P .. 'recordings', P .. 'recorded'
local LEAST = 65536 -- bytes that each counts for: what Redis has of it besides its bytes, and an entry here and there

if call('EXISTS', record(id), P .. 'used:' .. id) > 0 then return 'DUPLICATE' end
if full(share) then return 'FULL' end
for _, one in ipairs(call('ZRANGEBYSCORE', recordings, '-inf', now)) do uncount(one) end
local bytes, counted = math.max(#recording, LEAST), call('HMGET', recorded, '', id)
local all = (counted[1] or 0) - (counted[2] or 0) + bytes
if all > tonumber(most) then return 'CROWDED' end
call('SET', P .. 'audio:' .. id, recording, 'PX', keep)
call('ZADD', recordings, now + keep, id)
call('HSET', recorded, '', all, id, bytes)
-- together: what is left of one without the other would count for ever, or never
local till = math.max(keep, call('PTTL', recorded))
call('PEXPIRE', recordings, till)
call('PEXPIRE', recorded, till)
return 'OK'
