-- What clients and operators want of a mission: an end if it never began, a pause where nobody is at work on it, else an
-- entry for its lease holder (P3, P23).
-- KEYS      1 the shard's prefix
-- ARGV      1 id  2 verb: cancel | pause | resume | event | skip | complete | child  3 entry id  4 entry, JSON that begins with
--           {"entry":"VERB"  5 reason of a cancel  6 retention_ms  7 data of the event of a pause or resume, JSON;
--           of a cancel too, where it is more than {"reason":…}  8 run that it is about, of a message between missions
--           (P22), or nothing
-- Answers   {OK | DUPLICATE | FULL | ENDED | GONE, status as of now, place as of now}
-- Invariant control ends a mission itself only if no worker ever had it: else it may have begun (P21, P23); what waits
--           is moved towards its lane in the same step, so no entry is slept through; a pause with unread entries is an
--           entry, not a move.
-- Guarded by tests/redis/mutants.txt: test_control.py test_pause.py test_table.py test_inherit.py test_outbox.py
local id, verb = ARGV[1], ARGV[2]
local m = read(id)
if not m then return {'GONE', '', ''} end
if m.place == 'ended' then return {'ENDED', m.status, m.place} end
if (ARGV[8] or '') ~= '' and ARGV[8] ~= (m.run or '1') then return {'ENDED', m.status, m.place} end
local unread = (m.unread or '0') ~= '0'

local function pause()
  if m.status == 'COMPENSATING' then call('HSET', record(id), 'was', m.status) end
  log_event(id, m, 'PAUSED', ARGV[7])
  if m.place ~= 'waiting' then call('HSET', record(id), 'waiting_for', '', 'wake_at', '') end
  leave(id, m)
  status_to(id, m, 'PAUSED')
  call('HSET', record(id), 'place', 'paused', 'paused_at', now)
  call('ZADD', P .. 'paused', now, id)
  call('ZADD', P .. 'deadlines', 'NX', m.deadline, id) -- also if it was told: the pause limit stands there
  free(id, m.target)
  lower(id, m.lane, m.base)
  m.place = 'paused'
end

local function resume()
  local wake = tonumber(m.wake_at or '')
  if unread or wake and wake <= now or not wake and (m.waiting_for or '') == '' then
    stir(id, m)
  else
    local status = m.was or 'WAITING'
    leave(id, m)
    call('ZADD', P .. 'deadlines', 'XX', m.deadline, id)
    status_to(id, m, status)
    call('HSET', record(id), 'place', 'waiting')
    if wake then call('ZADD', P .. 'timers', wake, id) end
    m.place = 'waiting'
  end
  log_event(id, m, m.status, ARGV[7])
end

local function pause_unread()
  for _, entry in ipairs(unread and call('LRANGE', P .. 'inbox:' .. id, 0, -1) or {}) do
    if string.find(entry, '{"entry":"pause"', 1, true) == 1 then return true end
  end
  return false
end

local answer = 'OK'
if verb == 'cancel' and not m.started_at then
  cancel(id, m, ARGV[5], tonumber(ARGV[6]), string.match(ARGV[7], '^{"reason".*'))
  m.status, m.place = 'CANCELLED', 'ended'
elseif verb == 'pause' and m.place ~= 'leased' and not unread then
  if m.place ~= 'paused' then pause() end
elseif verb == 'pause' and m.place == 'paused' then answer = 'OK'
elseif verb == 'resume' and m.place == 'paused' then resume()
elseif verb == 'resume' and not pause_unread() then answer = 'OK'
else answer = post(id, m, ARGV[3], ARGV[4], verb ~= 'event' and verb ~= 'pause', verb == 'cancel') end
settle()
return {answer, m.status, m.place}
