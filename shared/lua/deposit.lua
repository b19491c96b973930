-- Lays down the recording that a command comes with, before the command itself is taken in.
-- KEYS      1 the prefix of the mission's shard
-- ARGV      1 id of the mission  2 ms to keep it  3 share of maxmemory beyond which no recording is taken
--           4 bytes that all recordings here may have  5 recording
-- Answers   OK · DUPLICATE (the mission was taken in already, with its recording) · FULL (no room in the memory)
--           · CROWDED (too many bytes of recordings wait here)
-- Invariant a recording lives for so long at most, whatever becomes of its mission, and none is laid down for a mission
--           that may have ended. Recordings leave the rest of the memory to commands, and have a bound of their own where
--           Redis has none. Not allow-oom: a full Redis takes in nothing new.
-- Guarded by tests/redis/mutants.txt: test_deposit.py
local id, keep, share, most, recording = unpack(ARGV)
local recordings = P .. 'recordings'
local LEAST = 65536 -- bytes that each counts for: so few recordings are counted one by one, and no sum of them can drift

local function audio(one) return P .. 'audio:' .. one end

local function crowded()
  call('ZREMRANGEBYSCORE', recordings, '-inf', now)
  local bytes = math.max(#recording, LEAST)
  for _, one in ipairs(call('ZRANGE', recordings, 0, -1)) do
    local length = one ~= id and call('STRLEN', audio(one)) or 0
    if length > 0 then bytes = bytes + math.max(length, LEAST)
    elseif one ~= id then call('ZREM', recordings, one) end
  end
  return bytes > tonumber(most)
end

if call('EXISTS', record(id), P .. 'used:' .. id) > 0 then return 'DUPLICATE' end
if full(share) then return 'FULL' end
if crowded() then return 'CROWDED' end
call('SET', audio(id), recording, 'PX', keep)
call('ZADD', recordings, now + keep, id)
call('PEXPIRE', recordings, math.max(keep, call('PTTL', recordings)))
return 'OK'
