-- Cancels what was to be cancelled once nobody watches it, when nobody has for the grace time (P19).
-- KEYS      1 the shard's prefix
-- ARGV      1 grace_ms  2 retention_ms
-- Answers   {missions handled, ms until the next look or -1}
-- Invariant decided by the watchers in the record, which lapse if their foreground dies; ends only what no
--           worker ever had, else posts the entry `cancel` (P23).
-- Guarded by tests/redis/mutants.txt: test_abandon.py test_table.py
local AGAIN = 60000 -- a mission that broke is tried again, not at once
local grace, handled = tonumber(ARGV[1]), 0
local function item(id)
  local m, last = read(id), 0
  if m and m.place ~= 'ended' then
    for till in string.gmatch(m.watchers or '', '%S+ (%d+)') do last = math.max(last, tonumber(till)) end
    if last > now - grace then
      call('ZADD', P .. 'attended', last, id)
      return
    end
    handled = handled + 1
    if not m.started_at then cancel(id, m, 'disconnected', tonumber(ARGV[2]))
    else post(id, m, 'cancel', '{"entry":"cancel","reason":"disconnected"}', true, true) end
  end
  call('ZREM', P .. 'attended', id)
end
for _, id in ipairs(call('ZRANGE', P .. 'attended', '-inf', now - grace, 'BYSCORE', 'LIMIT', 0, 50)) do
  if not attempt(item, id) then call('ZADD', P .. 'attended', now + AGAIN, id) end
end
settle()
local next_look = call('ZRANGE', P .. 'attended', 0, 0, 'WITHSCORES')[2]
return {handled, next_look and math.max(0, next_look + grace - now) or -1}
