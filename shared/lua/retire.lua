-- Removes missions whose retention has passed: keys, index rows and counts together (P18).
-- KEYS      1 the shard's prefix
-- ARGV      1 ms to wait before looking again at one that still has outbox rows
-- Answers   {missions removed, ms until the next one is due or -1}
-- Invariant nothing of a mission is left behind but a bare id that may come again (P17), and none goes while its outbox
--           rows are not carried out (P5).
-- Guarded by tests/redis/mutants.txt: test_retire.py test_reserve.py test_permit.py test_dead_letters.py test_latest.py
--           test_outbox.py
local due, removed = call('ZRANGE', P .. 'retire', '-inf', now, 'BYSCORE', 'LIMIT', 0, 50), 0
local function item(id)
  local m = call('HMGET', record(id), 'place', 'type', 'status', 'state', 'latest', 'used_until', 'created_at',
    'queued')
  if m[1] and m[1] ~= 'ended' then return call('ZREM', P .. 'retire', id) end -- an index that disagrees is dropped (P1)
  if call('EXISTS', P .. 'outbox:' .. id) == 1 then return call('ZADD', P .. 'retire', now + ARGV[1], id) end
  call('DEL', record(id), P .. 'log:' .. id, P .. 'result:' .. id, P .. 'inbox:' .. id, P .. 'inbox_ids:' .. id,
    P .. 'dead_rows:' .. id)
  call('ZREM', P .. 'retire', id)
  call('ZREM', P .. 'dead_letters', id)
  if m[5] then call('ZREM', P .. 'intents:' .. m[5], id) end
  if m[6] then call('SET', P .. 'used:' .. id, m[7], 'PXAT', m[6]) end -- accept knows it by this
  if m[8] then call('ZREM', P .. 'permit_queue:' .. string.match(m[8], '^%S+'), id) end
  if m[1] then count(m[2], m[3], m[4], -1) end
  removed = removed + 1
end
for _, id in ipairs(due) do
  if not attempt(item, id) then call('ZADD', P .. 'retire', now + ARGV[1], id) end
end
settle()
local next_due = call('ZRANGE', P .. 'retire', 0, 0, 'WITHSCORES')[2]
return {removed, next_due and math.max(0, next_due - now) or -1}
