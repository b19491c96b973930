-- Deadlines that have come (P14), wherever the mission stands.
-- KEYS      1 the shard's prefix
-- ARGV      1 retention_ms
-- Answers   {missions handled, ms until the next deadline or -1}
-- Invariant ends only what never committed and is not leased; else posts the entry `deadline` and moves it towards a lane.
local due = call('ZRANGE', P .. 'deadlines', '-inf', now, 'BYSCORE', 'LIMIT', 0, 50)
for _, id in ipairs(due) do
  local m = read(id)
  call('ZREM', P .. 'deadlines', id)
  if m and m.place ~= 'ended' then
    if m.place ~= 'leased' and (m.rev or '0') == '0' then cancel(id, m, 'expired', tonumber(ARGV[1]))
    else post(id, m, 'deadline:' .. (m.run or 1), '{"entry":"deadline"}', true) end
  end
end
settle()
local next_due = call('ZRANGE', P .. 'deadlines', 0, 0, 'WITHSCORES')[2]
return {#due, next_due and math.max(0, next_due - now) or -1}
