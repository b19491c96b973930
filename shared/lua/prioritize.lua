-- Another priority for a mission, wherever it stands (P9, P10).
-- KEYS      1 the shard's prefix
-- ARGV      1 id  2 priority: urgent | normal | bulk  3 data of the event, JSON
-- Answers   {OK | ENDED | GONE, status, place}
-- Invariant it stands in the one lane that its record names, or in its target's line by its own priority; a higher
--           priority that it has from those behind it stays with it.
-- Guarded by tests/redis/mutants.txt: test_prioritize.py
local id, priority = ARGV[1], ARGV[2]
local m = read(id)
if not m then return {'GONE', '', ''} end
if m.place == 'ended' then return {'ENDED', m.status, m.place} end
local stands = string.match(m.lane, '^[^:]*')
local own = m.base or stands
if own ~= priority then
  log_event(id, m, m.status, ARGV[3])
  local lane = string.gsub(m.lane, '^[^:]*', priority)
  if m.base and RANK[stands] < RANK[priority] then
    call('HSET', record(id), 'base', priority)
  else
    call('HSET', record(id), 'lane', lane)
    call('HDEL', record(id), 'base')
    if m.place == 'waiters' then
      local line = P .. 'waiters:' .. m.target
      local came = math.floor(call('ZSCORE', line, id) / 4096) - AGED * RANK[own]
      call('ZADD', line, place_in_line(came, priority, m.order), id)
      raise(call('GET', P .. 'target:' .. m.target), priority)
    else
      if m.place == 'lane' then
        call('ZREM', P .. 'lane:' .. m.lane, id)
        to_lane(id, lane, m.order)
      end
      if m.target and call('GET', P .. 'target:' .. m.target) == id then inherit(id, m.target) end
    end
  end
end
settle()
return {'OK', m.status, m.place}
