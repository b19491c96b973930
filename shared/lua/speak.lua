-- What somebody is saying, as it comes: a voice session begins, and grows until it is understood.
-- KEYS      1 the shard's prefix
-- ARGV      1 verb  2 id of the session  3 ms to keep it  4 share of maxmemory beyond which nothing is taken, and then
--           open: 5 foreground 6 how to listen, JSON
--           push: 5 bytes that all of it may have 6 samples
-- Answers   OK · FULL (no room) · push: GONE (there is no such session), LONG (it has too many bytes), OVER (all was said)
-- Invariant a session, and all that was said in it, lives for so long at most after its foreground's last word. It has one
--           who listens, or stands open to all. Not allow-oom: a full Redis takes in nothing new.
-- Guarded by tests/redis/mutants.txt: test_speak.py
local verb, id, keep, share = unpack(ARGV)
local name, said = P .. 'stream:' .. id, P .. 'spoken:' .. id
if full(share) then return 'FULL' end
if verb == 'open' then
  call('HSET', name, 'front', ARGV[5], 'head', ARGV[6])
  call('ZADD', P .. 'streams', now, id)
  call('PEXPIRE', P .. 'streams', keep)
  call('PUBLISH', P .. 'speaking', id)
else
  local m = call('HMGET', name, 'front', 'owner', 'final', 'ended')
  if not m[1] then return 'GONE' end
  if m[3] or m[4] then return 'OVER' end
  if call('HINCRBY', name, 'bytes', #ARGV[6]) > tonumber(ARGV[5]) then return 'LONG' end
  call('RPUSH', said, ARGV[6])
  call('PEXPIRE', said, keep)
  if m[2] then call('PUBLISH', P .. 'ears:' .. m[2], id) end
end
call('PEXPIRE', name, keep)
return 'OK'
