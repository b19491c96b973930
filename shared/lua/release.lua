-- Hands missions back before their state is done: drain, a runner that broke, a claim whose answer was lost.
-- KEYS      1 the shard's prefix
-- ARGV      1 owner, then per item 2: id fence
-- Answers   per item OK or FENCED or {ERROR, why}
-- Invariant only what this owner leases under this fence moves; it keeps its target, its order and its age, and neither
--           a death nor an attempt is counted (P8, P9).
-- Guarded by tests/redis/mutants.txt: test_release.py test_permit.py
local owner, answers = ARGV[1], {}

local function item(id, fence)
  local m = call('HMGET', record(id), 'place', 'owner', 'fence', 'lane', 'order', 'type', 'status', 'state', 'rev', 'permits')
  if m[1] ~= 'leased' or m[2] ~= owner or m[3] ~= fence then return 'FENCED' end
  local status = m[7]
  if status == 'RUNNING' then status = (m[9] or '0') == '0' and 'PENDING' or 'WAITING' end
  call('HSET', record(id), 'place', 'lane', 'status', status)
  if m[10] then drop_permits(id, m[10]) end
  call('SREM', P .. 'held:' .. owner, id)
  call('SREM', P .. 'signals:' .. owner, id)
  to_lane(id, m[4], m[5])
  count(m[6], m[7], m[8], -1)
  count(m[6], status, m[8], 1)
  return 'OK'
end

for i = 2, #ARGV, 2 do
  local ok, answer = attempt(item, ARGV[i], ARGV[i + 1])
  answers[#answers + 1] = ok and answer or {'ERROR', answer}
end
settle()
return answers
