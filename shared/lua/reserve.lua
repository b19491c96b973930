-- One key, one command (P16): reserves a mission id under an idempotency key, or answers the one that was.
-- KEYS      1 the prefix of the shard that the key falls to
-- ARGV      1 tenant:key  2 hash of the command as sent  3 id  4 what it acts on ('' or "tenant:target")  5 ms to keep it,
--           0: only look
-- Answers   {OK | REPEATED, id, target, epoch ms until which the reservation holds} · MISMATCH (of another command) ·
--           NONE (looked, and there is none)
-- Invariant while a reservation holds, its key stands for one command and one id, whoever asks and however often.
--           Not allow-oom: a full Redis takes in nothing new.
-- Guarded by tests/redis/mutants.txt: test_reserve.py
local name, hash, keep = P .. 'idem:' .. ARGV[1], ARGV[2], tonumber(ARGV[5])
local m = call('HMGET', name, 'hash', 'id', 'target')
if m[1] then
  if m[1] ~= hash then return 'MISMATCH' end
  return {'REPEATED', m[2], m[3], call('PEXPIRETIME', name)}
end
if keep == 0 then return 'NONE' end
call('HSET', name, 'hash', hash, 'id', ARGV[3], 'target', ARGV[4])
call('PEXPIREAT', name, now + keep)
return {'OK', ARGV[3], ARGV[4], now + keep}
