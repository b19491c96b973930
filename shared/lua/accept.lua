-- Takes new missions in; with the 202 that follows, the promise that nothing accepted is lost begins here.
-- KEYS      1 the shard's prefix
-- ARGV      per item 13: id type version lane target root deadline_ms(from now) state watcher watch_ms
--           latest("tenant:target:aspect" where newer replaces older, or '')
--           used_until(epoch ms up to which an id that was reserved or derived may come again, or '') envelope
--           root: '' of a root; of a child "root parent run origin": the parent's run, and the age of the root's intent;
--           a child's deadline is epoch ms, so that it is never later than its parent's
-- Answers   epoch ms, then per item OK or DUPLICATE (the id is known: nothing changes) or TOO_OLD or {ERROR, why}
-- Invariant an accepted mission stands in its lane and holds its target (if it has one), or is among the target's waiters;
--           it has a deadline. Not allow-oom: a full Redis takes in nothing new.
-- Guarded by tests/redis/mutants.txt: test_accept.py test_claim.py test_reserve.py test_latest.py test_outbox.py
local answers, lanes, deadlines = {now}, {}, {}

local function item(i)
  local id, type, version, lane, target, root, deadline, state, watcher, watch, latest, used_until = unpack(ARGV, i, i + 11)
  if call('EXISTS', record(id)) == 1 then return 'DUPLICATE' end
  if used_until ~= '' then
    if call('EXISTS', P .. 'used:' .. id) == 1 then return 'DUPLICATE' end
    if now >= tonumber(used_until) then return 'TOO_OLD' end
  end
  if not RANK[string.match(lane, '^(%l+):[^:]+:.+$')] then error('no lane: ' .. lane) end
  local top, parent, origin
  if root ~= '' then top, parent, origin = string.match(root, '^(%S+) (%S+ %d+) (%d+)$') end
  local ends, watched = top and tonumber(deadline) or now + deadline, now + watch
  local order, place = call('INCR', P .. 'order'), 'lane'
  if target ~= '' then place = enter(id, lane, order, target)
  else
    local adds = lanes[lane]
    if not adds then adds = {}; lanes[lane] = adds end
    adds[#adds + 1] = order
    adds[#adds + 1] = id
  end
  local fields = {'envelope', ARGV[i + 12], 'type', type, 'version', version, 'status', 'PENDING', 'state', state,
    'place', place, 'lane', lane, 'order', order, 'created_at', now, 'ready_at', now, 'deadline', ends}
  if target ~= '' then fields[#fields + 1] = 'target'; fields[#fields + 1] = target end
  if top then for _, part in ipairs({'root', top, 'parent', parent, 'origin', origin}) do fields[#fields + 1] = part end end
  if used_until ~= '' then fields[#fields + 1] = 'used_until'; fields[#fields + 1] = used_until end
  if watcher ~= '' then fields[#fields + 1] = 'watchers'; fields[#fields + 1] = watcher .. ' ' .. watched end
  call('HSET', record(id), unpack(fields))
  if latest ~= '' then
    local intent = origin or now * 4096 + order % 4096 -- as old as its root, and its siblings (P11)
    call('ZADD', P .. 'intents:' .. latest, intent, id)
    call('HSET', record(id), 'latest', latest, 'intent', intent)
  end
  deadlines[#deadlines + 1] = ends
  deadlines[#deadlines + 1] = id
  count(type, 'PENDING', state, 1)
  return 'OK'
end

for i = 1, #ARGV, 13 do
  local ok, answer = attempt(item, i)
  answers[#answers + 1] = ok and answer or {'ERROR', answer}
end
if #deadlines > 0 then call('ZADD', P .. 'deadlines', unpack(deadlines)) end
for lane, adds in pairs(lanes) do
  local priority, pool, tenant = string.match(lane, '^(.-):(.-):(.*)$')
  call('ZADD', P .. 'lane:' .. lane, unpack(adds))
  call('ZADD', P .. 'ring:' .. priority .. ':' .. pool, 'NX', now, tenant)
  woken[pool] = true
end
settle()
return answers
