-- Deadlines that have come (P14), wherever the mission stands.
-- KEYS      1 the shard's prefix
-- ARGV      1 retention_ms
-- Answers   {missions handled, ms until the next deadline or -1}
-- Invariant ends only what never committed and is not leased; else posts the entry `deadline` and moves it towards a lane.
-- Guarded by tests/redis/mutants.txt: test_sweep.py test_control.py
local AGAIN = 60000 -- a mission that broke is tried again, not at once
local due = call('ZRANGE', P .. 'deadlines', '-inf', now, 'BYSCORE', 'LIMIT', 0, 50)
local function item(id)
  local m = read(id)
  if m and m.place ~= 'ended' then
    if m.place ~= 'leased' and (m.rev or '0') == '0' then cancel(id, m, 'expired', tonumber(ARGV[1]))
    else post(id, m, 'deadline:' .. (m.run or 1), '{"entry":"deadline"}', true) end
  end
  call('ZREM', P .. 'deadlines', id)
end
for _, id in ipairs(due) do
  if not attempt(item, id) then call('ZADD', P .. 'deadlines', now + AGAIN, id) end
end
settle()
local next_due = call('ZRANGE', P .. 'deadlines', 0, 0, 'WITHSCORES')[2]
return {#due, next_due and math.max(0, next_due - now) or -1}
