-- What the commands of one speaker have in common for a while: where he is, how he speaks, what he said last and of what,
-- and the question that he was asked. And whether two microphones have heard the same.
-- KEYS      1 the prefix of the shard that the session, of hear the utterance, falls to
-- ARGV      1 verb  2 "tenant:session", of hear "tenant:utterance"  3 ms to keep it, and then
--           meet: 4 area 5 language ('': it was not said) 6 id of the command that comes in
--           did:  4 id of a command 5 what it is about, JSON ('': that is not known yet) · undid: 4 id of what may have been one, and is none
--           ask:  4 question, "id:n" 5 ms that it is open 6 what was asked, JSON
--           take: 4 question 5 id of who takes it
--           hear: 4 id of a command 5 its session 6 epoch ms when it was accepted 7 ms within which it is the same
-- Answers   meet: {area, language, ids of commands by blanks, the newest first, question, what was asked, who took it, 1 if
--           it is open, what the command before this one was about}, '' for what there is not · did, undid: OK · ask: {OK | TAKEN, question that it took the place of or ''} ·
--           take: OK | NONE (not open any more, or somebody else was faster) · hear: the id that it is the same as, or its own
-- Invariant what the last command of all is about, and the one before it, so that who asks again is told as before;
--           one question of a session is open at most, the newest; it is taken once, and whoever asks or takes again, since
--           he died before he could say so, is answered as before. Of two that are the same one is the first, for good.
--           Not allow-oom: a full Redis takes in nothing new.
-- Guarded by tests/redis/mutants.txt: test_session.py
local verb, keep = ARGV[1], tonumber(ARGV[3])
local name = P .. (verb == 'hear' and 'heard:' or 'session:') .. ARGV[2]
local MOST = 8 -- commands that are remembered

if verb == 'hear' then
  local id, session, at, within = unpack(ARGV, 4, 7)
  local told = P .. 'heard_by:' .. ARGV[2] .. ':' .. id
  local known = call('GET', told)
  if known then return known end
  local m = call('HMGET', name, 'id', 'session', 'at')
  local answer = id
  if m[1] and m[2] ~= session and math.abs(m[3] - at) <= tonumber(within) then answer = m[1]
  elseif not m[1] or tonumber(m[3]) <= tonumber(at) then call('HSET', name, 'id', id, 'session', session, 'at', at) end
  call('SET', told, answer, 'PX', keep)
  call('PEXPIRE', name, keep)
  return answer
end

local m = call('HMGET', name, 'area', 'language', 'commands', 'question', 'asked', 'by', 'until', 'before', 'last', 'last_of',
  'last_before')
local answer = 'OK'
if verb == 'meet' then
  for n, field in ipairs({'area', 'language'}) do
    if ARGV[3 + n] ~= '' then
      m[n] = ARGV[3 + n]
      call('HSET', name, field, m[n])
    end
  end
  local open = m[4] and not m[6] and tonumber(m[7]) > now
  answer = {m[1] or '', m[2] or '', m[3] or '', m[4] or '', m[5] or '', m[6] or '', open and 1 or 0,
    m[10] == ARGV[6] and m[11] or m[9] or ''}
elseif verb == 'did' then
  local id, about, new = ARGV[4], ARGV[5] or '', true
  local known = {id}
  for one in string.gmatch(m[3] or '', '%S+') do
    if one == id then new = false end
    if #known < MOST then known[#known + 1] = one end
  end
  if new then call('HSET', name, 'commands', table.concat(known, ' ')) end
  if about ~= '' and (new or string.match(m[3], '^%S+') == id) then
    if m[10] ~= id then call('HSET', name, 'last_of', id, 'last_before', m[9] or '') end
    call('HSET', name, 'last', about)
  end
elseif verb == 'undid' then
  local known = {}
  for id in string.gmatch(m[3] or '', '%S+') do
    if id ~= ARGV[4] then known[#known + 1] = id end
  end
  if m[3] then call('HSET', name, 'commands', table.concat(known, ' ')) end
elseif verb == 'ask' then
  local question, open, asked = unpack(ARGV, 4, 6)
  if m[4] == question then answer = {m[6] and 'TAKEN' or 'OK', m[8] or ''}
  else
    local before = m[4] and not m[6] and m[4] or ''
    call('HSET', name, 'question', question, 'asked', asked, 'until', now + open, 'before', before)
    call('HDEL', name, 'by')
    answer = {'OK', before}
  end
elseif verb == 'take' then
  if m[4] ~= ARGV[4] then return 'NONE' end
  if m[6] then return m[6] == ARGV[5] and 'OK' or 'NONE' end
  if tonumber(m[7]) <= now then return 'NONE' end
  call('HSET', name, 'by', ARGV[5])
end
if call('EXISTS', name) == 1 then call('PEXPIRE', name, keep) end
return answer
