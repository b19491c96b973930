-- Whether there is room for what people say. Not a script: it is put, behind the places, in front of each one that asks.
-- KEYS      1 the shard's prefix
-- ARGV      the verb's
-- Answers   none
-- Invariant what people say leaves the rest of the memory to commands.
-- Guarded by tests/redis/mutants.txt: test_deposit.py test_speak.py

-- What is to be taken in is in memory by now, so it counts. Who may not ask has no limit but Redis' own.
local function full(share)
  local told, memory = pcall(call, 'INFO', 'memory')
  if not told then return false end
  local used, most = string.match(memory, 'used_memory:(%d+)'), string.match(memory, '[\r\n]maxmemory:(%d+)')
  return used and most and tonumber(most) > 0 and used / most > tonumber(share)
end
