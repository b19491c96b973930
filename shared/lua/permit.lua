-- Permits for one run of a handler: every scope that it needs, or none (P12).
-- KEYS      1 the shard's prefix
-- ARGV      1 owner  2 id  3 fence, then per scope 2: its name, how many may hold it in this shard
-- Answers   OK, or FENCED, or {BUSY, the scope that is full, how many wait for it in front of this one}
-- Invariant a scope is never held by more than its limit. A permit belongs to (mission, fence): only the lease holder gets
--           one, `drop_permits` ends it with the lease or the commit. Whoever gets none stands in the queue of one scope,
--           by its priority and by when it first asked; a freed permit wakes the best there.
-- Guarded by tests/redis/mutants.txt: test_permit.py test_permit_leaks.py
local id, fence = ARGV[2], ARGV[3]
local LOOKED_AT = 20

local function key(scope) return P .. 'permits:' .. scope end

-- Whoever is not leased under the fence that took the permit has lost it, whatever was forgotten (B12).
local function purge(scope)
  local entries = call('HRANDFIELD', key(scope), LOOKED_AT, 'WITHVALUES')
  for i = 1, #entries, 2 do
    local m = call('HMGET', record(entries[i]), 'place', 'fence')
    if m[1] ~= 'leased' or m[2] ~= entries[i + 1] then call('HDEL', key(scope), entries[i]) end
  end
end

local function full(scope, limit)
  if call('HGET', key(scope), id) == fence then return false end -- asked again: the answer was lost
  if call('HLEN', key(scope)) < limit then return false end
  purge(scope)
  return call('HLEN', key(scope)) >= limit
end

local m = call('HMGET', record(id), 'place', 'owner', 'fence', 'lane', 'order', 'queued', 'permits')
if m[1] ~= 'leased' or m[2] ~= ARGV[1] or m[3] ~= fence then return 'FENCED' end
local queued, came = string.match(m[6] or '', '^(%S+) (%d+)$')
local function queue(scope) return P .. 'permit_queue:' .. scope end

local scopes, held = {}, ' ' .. (m[7] or '') .. ' '
for i = 4, #ARGV, 2 do
  local scope = ARGV[i]
  if full(scope, tonumber(ARGV[i + 1])) then
    if queued ~= scope then
      if queued then call('ZREM', queue(queued), id) end
      came = now
    end
    call('ZADD', queue(scope), place_in_line(came, string.match(m[4], '^[^:]*'), m[5]), id)
    call('HSET', record(id), 'queued', scope .. ' ' .. came)
    return {'BUSY', scope, call('ZRANK', queue(scope), id)}
  end
  scopes[#scopes + 1] = scope
end
for _, scope in ipairs(scopes) do
  call('HSET', key(scope), id, fence)
  if not string.find(held, ' ' .. scope .. ' ', 1, true) then held = held .. scope .. ' ' end
end
call('HSET', record(id), 'permits', string.match(held, '^%s*(.-)%s*$'))
if queued then
  call('ZREM', queue(queued), id)
  call('HDEL', record(id), 'queued')
end
return 'OK'
