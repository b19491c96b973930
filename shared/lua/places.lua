-- The moves that all verbs share (P1, P10). Not a script: it is put in front of each one.
-- KEYS      1 the shard's prefix, hash tag included
-- ARGV      the verb's
-- Answers   none
-- Invariant the record's `place` is the truth; the index that belongs to the old place is left in the same step as the
--           new one is entered. A target is held by at most one mission; where there are waiters, there is a holder.
-- Guarded by tests/redis/mutants.txt: test_release.py test_accept.py test_targets.py test_control.py test_commit.py
--           test_takeover.py test_retire.py test_times.py test_permit.py test_inherit.py test_offer.py test_latest.py
--           test_audit.py test_outbox.py test_progress.py test_deposit.py
--
-- Record, hash mission:<id>; what is absent is 0 or empty:
--   envelope type version root(of a child) created_at lane order target deadline    written by accept
--   latest(target and aspect) intent(its order)                                     likewise, where newer replaces older
--   used_until(while the id may be accepted again)                                  likewise, of a reserved or derived id
--   place owner fence leased_at(its rev then) status ready_at wake_at parked_at paused_at watchers started_at  the places
--   parent(id and run, of a child) origin(age of its root's intent) children(1: it has spawned some)
--   base(own priority, while a higher one is inherited) was(COMPENSATING, while paused)
--   deaths solo_deaths toll(of deaths, which checkpoints pay back) permits(scopes, by space) queued(scope it wants a permit of, and since when)
--   state rev seq document waiting_for run key_run acted failed_in                  the lease holder's, by commit only
--   progress(the newest, JSON) progress_at                                          the lease holder's too, by any script
--   unread                                                                          entries in the inbox
-- Times are epoch milliseconds of Redis' own TIME, 13 digits: `..` writes 14 digits exactly.
local P, call = KEYS[1], redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local RANK = {urgent = 0, normal = 1, bulk = 2}
local AGED = 30000 -- ms: a waiter of a lower lane is as good as one of the next higher lane that came so much later
local counts, woken, rows_put = {}, {}, false

-- A batch writes the same few seconds again and again, so the text of each is kept
local seconds_written = {}
local function to_second(seconds)
  local days, rest = math.floor(seconds / 86400), seconds % 86400
  -- days since 0000-03-01 to a civil date: eras of 400 years, years that begin in March
  local z = days + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d', yoe + era * 400 + (month <= 2 and 1 or 0), month,
    doy - math.floor((153 * mp + 2) / 5) + 1, math.floor(rest / 3600), math.floor(rest % 3600 / 60), rest % 60)
end
local function rfc3339(ms)
  local seconds = math.floor(ms / 1000)
  local text = seconds_written[seconds]
  if not text then
    text = to_second(seconds)
    seconds_written[seconds] = text
  end
  return string.format('%s.%03dZ', text, ms % 1000)
end
local function at() return rfc3339(now) end

local function record(id) return P .. 'mission:' .. id end

local function count(type, status, state, by)
  local key = type .. '|' .. status .. '|' .. state
  counts[key] = (counts[key] or 0) + by
end

local function to_lane(id, lane, order)
  local priority, pool, tenant = string.match(lane, '^(.-):(.-):(.*)$')
  call('ZADD', P .. 'lane:' .. lane, order, id)
  call('ZADD', P .. 'ring:' .. priority .. ':' .. pool, 'NX', now, tenant)
  woken[pool] = true
end

-- The holder of a target takes over a higher priority behind it, in its own pool, until it gives the hold up (P10).
local function raise(holder, priority)
  local h = call('HMGET', record(holder), 'place', 'lane', 'order', 'base')
  if not h[1] then return end
  local own, rest = string.match(h[2], '^(%l+)(:.*)$')
  if RANK[priority] >= RANK[own] then return end
  call('HSET', record(holder), 'lane', priority .. rest, 'base', h[4] or own)
  if h[1] == 'lane' then
    call('ZREM', P .. 'lane:' .. h[2], holder)
    to_lane(holder, priority .. rest, h[3])
  end
end

-- Waiters are ranked by when they came, a lower lane counting as later: a stream of urgent ones starves nobody.
local function place_in_line(came, priority, order) return (came + AGED * RANK[priority]) * 4096 + order % 4096 end

-- Takes the target if it is free or mine, and goes to the lane; else joins its waiters. The caller writes the place.
local function enter(id, lane, order, target)
  if target and target ~= '' then
    local holder = call('GET', P .. 'target:' .. target)
    if holder and holder ~= id then
      local priority = string.match(lane, '^[^:]*')
      call('ZADD', P .. 'waiters:' .. target, place_in_line(now, priority, order), id)
      raise(holder, priority)
      return 'waiters'
    end
    if not holder then call('SET', P .. 'target:' .. target, id) end
  end
  to_lane(id, lane, order)
  return 'lane'
end

local LOOK_BACK = 16
local function inherit(holder, target)
  local highest = 'bulk'
  for _, behind in ipairs(call('ZRANGE', P .. 'waiters:' .. target, 0, LOOK_BACK - 1)) do
    local priority = string.match(call('HGET', record(behind), 'lane') or 'bulk', '^[^:]*')
    if RANK[priority] < RANK[highest] then highest = priority end
  end
  if highest ~= 'bulk' then raise(holder, highest) end
end

-- If id holds its target, the hold is assigned to the best waiter, who goes to its lane.
local function free(id, target)
  if not target or target == '' or call('GET', P .. 'target:' .. target) ~= id then return end
  while true do
    local best = call('ZPOPMIN', P .. 'waiters:' .. target)[1]
    if not best then
      call('DEL', P .. 'target:' .. target)
      return
    end
    local w = call('HMGET', record(best), 'place', 'lane', 'order')
    if w[1] == 'waiters' then
      call('SET', P .. 'target:' .. target, best)
      call('HSET', record(best), 'place', 'lane', 'ready_at', now)
      to_lane(best, w[2], w[3])
      inherit(best, target)
      return
    end
  end
end

-- Its own lane again, for one that gives its hold up; answers the lane.
local function lower(id, lane, base)
  if not base then return lane end
  lane = string.gsub(lane, '^[^:]*', base)
  call('HSET', record(id), 'lane', lane)
  call('HDEL', record(id), 'base')
  return lane
end

-- Permits end with every commit, release, takeover and end (P12); who waits best for one is woken.
local function drop_permits(id, permits)
  call('HDEL', record(id), 'permits')
  for scope in string.gmatch(permits, '%S+') do
    call('HDEL', P .. 'permits:' .. scope, id)
    while true do
      local best = call('ZPOPMIN', P .. 'permit_queue:' .. scope)[1]
      if not best then break end
      local w = call('HMGET', record(best), 'place', 'waiting_for', 'lane', 'order', 'target', 'queued')
      if w[1] == 'waiting' and w[2] == 'permit' then
        call('ZREM', P .. 'timers', best)
        call('HSET', record(best), 'place', enter(best, w[3], w[4], w[5]), 'ready_at', now)
        break
      elseif w[1] == 'leased' and string.match(w[6] or '', '^%S+') == scope then break -- it asks, or its wait is a commit away
      end
    end
  end
end

-- The mission of a lane whose turn is next, nearly: a ring keeps a tenant until a claim finds its lane empty.
local function head_of(priority, pool)
  for _, tenant in ipairs(call('ZRANGE', P .. 'ring:' .. priority .. ':' .. pool, 0, 3)) do
    local head = call('ZRANGE', P .. 'lane:' .. priority .. ':' .. pool .. ':' .. tenant, 0, 0)[1]
    if head then return head end
  end
end

-- Whether it has waited there for too long.
local function aged(priority, pool)
  local head = head_of(priority, pool)
  return head and now - (call('HGET', record(head), 'ready_at') or now) > AGED
end

-- Of a mission that ends: its intent stays, as the newest one that acted, or goes if it never did (P11).
local function forget_intent(id, latest, intent, acted)
  if acted then call('ZREMRANGEBYSCORE', P .. 'intents:' .. latest, '-inf', '(' .. intent)
  else call('ZREM', P .. 'intents:' .. latest, id) end
end

-- A hint to every foreground that watches: the id, then a line per event (E…) and the result (R…).
local function tell(id, watchers, lines)
  for front, till in string.gmatch(watchers or '', '(%S+) (%d+)') do
    if tonumber(till) > now then call('PUBLISH', P .. 'feed:' .. front, id .. lines) end
  end
end

local function event(seq, status, state, data)
  return '{"seq":' .. seq .. ',"at":"' .. at() .. '","status":"' .. status .. '","state":"' .. state .. '","data":' .. data .. '}'
end

-- How far it is: the line that watchers hear, which is no event and has no seq (P18)
local function passing(status, state, progress)
  return '{"status":"' .. status .. '","state":"' .. state .. '","at":"' .. at() .. '","progress":' .. progress .. '}'
end

-- The result document; what a damaged record says of its progress would make all of it unreadable, and is left out.
local function result(seq, rest, created, started, retention, progress)
  if not (progress and pcall(cjson.decode, progress)) then progress = 'null' end
  return '{"seq":' .. seq .. ',' .. rest .. ',"progress":' .. progress .. ',"created_at":"' .. rfc3339(tonumber(created)) .. '","started_at":'
    .. (started and '"' .. rfc3339(tonumber(started)) .. '"' or 'null') .. ',"finished_at":"' .. at()
    .. '","expires_at":"' .. rfc3339(now + retention) .. '"}'
end

-- A recording that is not kept any more counts no longer. `recorded` has the bytes of each, and under '' of all.
local function uncount(id)
  local bytes = call('HGET', P .. 'recorded', id)
  if not bytes then return end
  call('HDEL', P .. 'recorded', id)
  call('HINCRBY', P .. 'recorded', '', -bytes)
  call('ZREM', P .. 'recordings', id)
end

-- What is to be done elsewhere, by whoever carries it (P5).
local function put_rows(id, rows)
  call('RPUSH', P .. 'outbox:' .. id, unpack(rows))
  call('ZADD', P .. 'outboxes', 'NX', now, id)
  rows_put = true
end

-- The end of a child, for its parent: it names the run that spawned it (P22).
local function end_row(id, parent, run, doc)
  local mother, its_run = string.match(parent, '^(%S+) (%d+)$')
  return '{"row":"end","parent":"' .. mother .. '","run":' .. its_run .. ',"child":"' .. id .. '","child_run":'
    .. (run or 1) .. ',"document":' .. doc .. '}'
end

-- Nothing ran for two polls: Redis was frozen, so no first look at a lease may stand (P7). Claim and renew call it.
local function thaw(poll)
  if now - (call('GET', P .. 'tick') or now) > 2 * poll then call('DEL', P .. 'looks') end
  call('SET', P .. 'tick', now)
end

-- One item of many: what breaks in it is answered for it and never fails the others (P4). Answers true and what f
-- answers, or false and the error.
local function attempt(f, ...)
  local ok, answer = pcall(f, ...)
  if ok then return true, answer end
  answer = tostring(type(answer) == 'table' and answer.err or answer)
  redis.log(redis.LOG_WARNING, 'dualloop: ' .. answer)
  return false, answer
end

-- Last thing in every script that moved something: sums and hints that no later item reads (P4).
local function settle()
  local recounted = next(counts) and call('EXISTS', P .. 'recount') == 1
  for key, by in pairs(counts) do
    if recounted then call('HDEL', P .. 'recount', key) end -- it moves while the audit counts it
    if by ~= 0 and call('HINCRBY', P .. 'counts', key, by) == 0 then call('HDEL', P .. 'counts', key) end
  end
  for pool in pairs(woken) do call('PUBLISH', P .. 'wake:' .. pool, '') end
  if rows_put then call('PUBLISH', P .. 'carry', '') end
end

