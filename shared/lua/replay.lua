-- A dead letter runs again: a new run of the same mission (P22).
-- KEYS      1 the shard's prefix
-- ARGV      1 id  2 from: failed_state | start  3 key: same | new  4 deadline_ms(from now)  5 initial state of its type
--           6 envelope with a corrected payload, or ''  7 data of the event, JSON
-- Answers   {OK | RUNNING | ENDED (no dead letter) | ROWS (its outbox is not empty yet) | GONE, run}
-- Invariant only a dead letter that nothing is left to be carried out for runs again; its log goes on, its effects keep
--           their keys unless new ones are asked for or the payload is another.
-- Guarded by tests/redis/mutants.txt: test_replay.py test_progress.py test_latest.py test_outbox.py
local ANEW = '{"anew":true,'
local id, from, key, initial, envelope = ARGV[1], ARGV[2], ARGV[3], ARGV[5], ARGV[6]
local m = read(id)
if not m then return {'GONE', 0} end
local more = call('HMGET', record(id), 'failed_in', 'key_run', 'document')
local run = tonumber(m.run or 1)
if m.place ~= 'ended' then return {'RUNNING', run} end
if not call('ZSCORE', P .. 'dead_letters', id) then return {'ENDED', run} end
if call('EXISTS', P .. 'outbox:' .. id) == 1 then return {'ROWS', run} end

local state = from == 'failed_state' and more[1] or initial
local status = (m.rev or '0') == '0' and 'PENDING' or 'WAITING'
local order, deadline = call('INCR', P .. 'order'), now + ARGV[4]
local ended = m.state
m.state = state
log_event(id, m, status, ARGV[7])
if envelope ~= '' then call('HSET', record(id), 'envelope', envelope) end
-- its worker reads there that of the run before no more than the visits count, wherever that one failed
if from == 'start' and string.find(more[3] or '', '^{"') and string.find(more[3], ANEW, 1, true) ~= 1 then
  call('HSET', record(id), 'document', ANEW .. string.sub(more[3], 2))
end
call('HSET', record(id), 'state', state, 'status', status, 'run', run + 1, 'order', order, 'deadline', deadline,
  'deaths', 0, 'solo_deaths', 0, 'toll', 0, 'waiting_for', '', 'wake_at', '', 'ready_at', now,
  'origin', string.format('%.0f', now * 4096 + order % 4096),
  'key_run', (key == 'new' or envelope ~= '') and run + 1 or more[2] or run)
call('HDEL', record(id), 'failed_in', 'acted', 'parked_at', 'base', 'progress', 'progress_at')
count(m.type, m.status, ended, -1)
count(m.type, status, state, 1)
call('ZREM', P .. 'dead_letters', id)
call('ZREM', P .. 'retire', id)
call('DEL', P .. 'result:' .. id)
call('ZADD', P .. 'deadlines', deadline, id)
if m.latest then
  local intent = now * 4096 + order % 4096
  call('ZADD', P .. 'intents:' .. m.latest, intent, id)
  call('HSET', record(id), 'intent', intent)
end
local lane = string.gsub(m.lane, '^[^:]*', m.base or '%0')
call('HSET', record(id), 'lane', lane, 'place', enter(id, lane, order, m.target))
settle()
return {'OK', run + 1}
