-- A foreground says which missions it wants to hear of, and for how long (P19); 0 ms: no longer.
-- KEYS      1 the shard's prefix
-- ARGV      1 foreground  2 ms, then ids
-- Answers   per id OK, ENDED or GONE
-- Invariant lapsed watchers leave the record whenever it is written here, so it stays as small as the fleet's front;
--           a mission that ends with its last watcher is looked at again when that one lapses.
-- Guarded by tests/redis/mutants.txt: test_watch.py test_abandon.py
local front, answers = ARGV[1], {}
for i = 3, #ARGV do
  local m = call('HMGET', record(ARGV[i]), 'place', 'watchers')
  if not m[1] then answers[#answers + 1] = 'GONE'
  elseif m[1] == 'ended' then answers[#answers + 1] = 'ENDED'
  else
    local kept, last = {}, now
    for other, till in string.gmatch(m[2] or '', '(%S+) (%d+)') do
      if other ~= front and tonumber(till) > now then
        kept[#kept + 1] = other .. ' ' .. till
        last = math.max(last, tonumber(till))
      end
    end
    if ARGV[2] ~= '0' then
      kept[#kept + 1] = front .. ' ' .. now + ARGV[2]
      last = math.max(last, now + ARGV[2])
    end
    call('HSET', record(ARGV[i]), 'watchers', table.concat(kept, ' '))
    call('ZADD', P .. 'attended', 'XX', last, ARGV[i])
    answers[#answers + 1] = 'OK'
  end
end
return answers
