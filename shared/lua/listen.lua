-- What becomes of a voice session: a worker listens to it, its foreground waits for what was understood.
-- KEYS      1 the shard's prefix
-- ARGV      1 verb, and then
--           look: 2 id 3 ms to keep it 4 1: nothing more is said    the foreground's, now and then
--           drop: 2 id                                              likewise, once it is through with it
--           take: 2 owner 3 ms that it holds them 4 how many
--           pull: 2 owner 3 ms that it goes on to hold it 4 id 5 how many pieces it has
--           over: 2 owner 3 id: somebody has said all, though he may send on, as open microphones do
--           say:  2 owner 3 id 4 what was understood, JSON 5 1: that is all
--           quit: 2 owner, ids: it listens to these no more
-- Answers   look: {OK, ms for which nobody has listened, what was understood or ''} or GONE
--           take: id, how to listen, of each · pull: {OK, 1: there will be no more, pieces} or GONE
--           over, say: OK or GONE · drop, quit: OK
-- Invariant one listens at a time: who has taken a session has it as long as he pulls, and for his time after that; then
--           whoever comes takes it, from its first piece on. What is understood once for all stays so.
-- Guarded by tests/redis/mutants.txt: test_speak.py
local verb, streams = ARGV[1], P .. 'streams'
local MOST = 500 -- pieces at a time

local function stream(id) return P .. 'stream:' .. id end
local function spoken(id) return P .. 'spoken:' .. id end

if verb == 'look' then
  local id, keep, ended = unpack(ARGV, 2, 4)
  local m = call('HMGET', stream(id), 'front', 'owner', 'final')
  if not m[1] then return 'GONE' end
  for _, key in ipairs({stream(id), spoken(id), streams}) do call('PEXPIRE', key, keep) end
  if ended == '1' and call('HSETNX', stream(id), 'ended', 1) == 1 and m[2] then call('PUBLISH', P .. 'ears:' .. m[2], id) end
  if m[3] then return {'OK', 0, m[3]} end
  local alone = math.max(0, now - (call('ZSCORE', streams, id) or now))
  if alone > 0 then call('PUBLISH', P .. 'speaking', id) end
  return {'OK', alone, ''}
elseif verb == 'drop' then
  local owner = call('HGET', stream(ARGV[2]), 'owner')
  call('DEL', stream(ARGV[2]), spoken(ARGV[2]))
  call('ZREM', streams, ARGV[2])
  if owner then call('PUBLISH', P .. 'ears:' .. owner, ARGV[2]) end
  return 'OK'
elseif verb == 'take' then
  local owner, hold, most = unpack(ARGV, 2, 4)
  local taken = {}
  for _, id in ipairs(call('ZRANGEBYSCORE', streams, '-inf', now, 'LIMIT', 0, most)) do
    local head = call('HGET', stream(id), 'head')
    if head then
      call('HSET', stream(id), 'owner', owner)
      call('ZADD', streams, now + hold, id)
      taken[#taken + 1] = id
      taken[#taken + 1] = head
    else call('ZREM', streams, id) end
  end
  return taken
elseif verb == 'quit' then
  for n = 3, #ARGV do
    if call('HGET', stream(ARGV[n]), 'owner') == ARGV[2] then
      call('ZADD', streams, 'XX', now, ARGV[n])
      call('PUBLISH', P .. 'speaking', ARGV[n])
    end
  end
  return 'OK'
end

local id = ARGV[verb == 'pull' and 4 or 3]
local m = call('HMGET', stream(id), 'owner', 'front', 'ended', 'final')
if m[1] ~= ARGV[2] or m[4] then return 'GONE' end
if verb == 'pull' then
  call('ZADD', streams, 'XX', now + ARGV[3], id)
  local pieces = call('LRANGE', spoken(id), ARGV[5], ARGV[5] + MOST - 1)
  return {'OK', #pieces < MOST and m[3] or '', pieces}
end
if verb == 'over' then
  call('HSET', stream(id), 'ended', 1)
  return 'OK'
end
if ARGV[5] == '1' then
  call('HSET', stream(id), 'final', ARGV[4])
  call('DEL', spoken(id))
  call('ZREM', streams, id)
end
call('PUBLISH', P .. 'feed:' .. m[2], id .. '\n' .. ARGV[4])
return 'OK'
