-- Deadlines that have come (P14), wherever the mission stands, and parking that has lasted too long (P13).
-- KEYS      1 the shard's prefix
-- ARGV      1 retention_ms  2 dead_retention_ms  3 pause_limit_ms  4 park_limit_ms  5 types the asker knows, as
--           ",type@version,…,"  6 lease_ms
-- Answers   {missions handled, ms until the next deadline or -1}
-- Invariant ends only what no worker ever had, or what no live worker has known for the limit; else posts
--           the entry `deadline` and moves it towards a lane. A pause outlasts the deadline, by the pause limit at most.
-- Guarded by tests/redis/mutants.txt: test_sweep.py test_control.py test_pause.py test_dead_letters.py
local AGAIN = 60000 -- a mission that broke is tried again, not at once
local retention, dead_retention = tonumber(ARGV[1]), tonumber(ARGV[2])
local due = call('ZRANGE', P .. 'deadlines', '-inf', now, 'BYSCORE', 'LIMIT', 0, 50)
local handled = 0
local function item(id)
  local m = read(id)
  if m and m.place == 'paused' and now < m.paused_at + ARGV[3] then
    return call('ZADD', P .. 'deadlines', m.paused_at + ARGV[3], id)
  end
  handled = handled + 1
  if m and m.place ~= 'ended' then
    if not m.started_at then cancel(id, m, 'expired', retention)
    else
      post(id, m, 'deadline:' .. (m.run or 1), '{"entry":"deadline"}', true, true)
      if m.place == 'paused' then stir(id, m) end -- it was told before it was paused
    end
  end
  call('ZREM', P .. 'deadlines', id)
end
for _, id in ipairs(due) do
  if not attempt(item, id) then call('ZADD', P .. 'deadlines', now + AGAIN, id) end
end

-- The limit counts from the first parking, and only while no live worker knows the type
local function give_up(id, kind)
  local m = read(id)
  if not m or m.place ~= 'parked' then return call('ZREM', P .. 'parked:' .. kind, id) end
  local older = string.find(ARGV[5], ',' .. m.type .. '@', 1, true)
  local code = older and 'future_version' or 'unknown_type'
  fail(id, m, code, 'no worker has known ' .. kind .. ' since ' .. rfc3339(tonumber(m.parked_at or now)), retention,
    dead_retention)
  handled = handled + 1
end
for _, kind in ipairs(call('SMEMBERS', P .. 'parked_types')) do
  local known = call('HGET', P .. 'parked_known', kind)
  if not known or now - known > 2 * ARGV[6] then
    for _, id in ipairs(call('ZRANGE', P .. 'parked:' .. kind, '-inf', now - ARGV[4], 'BYSCORE', 'LIMIT', 0, 50)) do
      if not attempt(give_up, id, kind) then call('ZADD', P .. 'parked:' .. kind, now, id) end
    end
    if call('EXISTS', P .. 'parked:' .. kind) == 0 then
      call('SREM', P .. 'parked_types', kind)
      call('HDEL', P .. 'parked_known', kind)
    end
  end
end
settle()
local next_due = call('ZRANGE', P .. 'deadlines', 0, 0, 'WITHSCORES')[2]
return {handled, next_due and math.max(0, next_due - now) or -1}
