-- Lays down the recording that a command comes with, before the command itself is taken in.
-- KEYS      1 the prefix of the mission's shard
-- ARGV      1 id of the mission  2 ms to keep it  3 share of maxmemory beyond which no recording is taken  4 recording
-- Answers   OK · DUPLICATE (the mission was taken in already, with its recording) · FULL (no room)
-- Invariant a recording lives for so long at most, whatever becomes of its mission, and none is laid down for a mission
--           that may have ended. Recordings leave the rest of the memory to commands. Not allow-oom: a full Redis takes in
--           nothing new.
-- Guarded by tests/redis/mutants.txt: test_deposit.py
local id, keep, share, recording = unpack(ARGV)
if call('EXISTS', record(id), P .. 'used:' .. id) > 0 then return 'DUPLICATE' end
if full(share) then return 'FULL' end
call('SET', P .. 'audio:' .. id, recording, 'PX', keep)
return 'OK'
