-- Hands outboxes whose turn it is to one deliverer, for so long: to die with one costs that time, and nothing else (P5).
-- KEYS      1 the shard's prefix
-- ARGV      1 hold_ms  2 outboxes at most
-- Answers   {ms until the next one's turn or -1, {id, its oldest row, age of its intent, what its children inherit}*}
-- Invariant nothing is removed here but an index entry without rows; two who carry one row do no harm.
-- Guarded by tests/redis/mutants.txt: test_outbox.py
local AGAIN = 60000 -- an outbox that is damaged is looked at again, not at once
local found = {}
local function item(id)
  local row = call('LINDEX', P .. 'outbox:' .. id, 0)
  if not row then return call('ZREM', P .. 'outboxes', id) end
  local m = call('HMGET', record(id), 'origin', 'intent', 'created_at', 'order')
  call('ZADD', P .. 'outboxes', now + ARGV[1], id)
  found[#found + 1] = {id, row, m[1] or m[2] or string.format('%.0f', (m[3] or 0) * 4096 + (m[4] or 0) % 4096)}
end
for _, id in ipairs(call('ZRANGE', P .. 'outboxes', '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[2])) do
  if not attempt(item, id) then call('ZADD', P .. 'outboxes', now + AGAIN, id) end
end
local next_due = call('ZRANGE', P .. 'outboxes', 0, 0, 'WITHSCORES')[2]
return {next_due and math.max(0, next_due - now) or -1, found}
