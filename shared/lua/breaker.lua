-- Whether a dependency may be called now, and what came of a call: one truth for all workers, in its home shard (P12).
-- KEYS      1 the shard's prefix
-- ARGV      per item 8: verb dependency call lasts_ms again word after_ms policy
--           call: who calls, one at a time. lasts_ms: the call is over by then, reported or not. again: 1 for a retry.
--           ask: word and after_ms are empty.
--           report: word ok (it answered) · failed · cut (nobody knows) · unused (it was not called after all);
--           after_ms: it asked to be left alone for so long (Retry-After), or 0.
--           policy: failures open_ms probes successes ramp_ms full retry_ratio retry_rate
-- Answers   epoch ms, then per item OK, or {WAIT, ms, why: open retry_after probing ramping retry_budget}, or {ERROR, why}
-- Invariant after `failures` in a row, or as a Retry-After says, nobody calls it until the time is over. Then at most
--           `probes` calls are under way at a time, over all workers; after `successes` of them the number allowed rises
--           from `probes` to `full` over ramp_ms, never at once. Retries are at most retry_ratio of the first tries of
--           late plus retry_rate a second, and a burst of ten.
-- Guarded by tests/redis/mutants.txt: test_breaker.py
local LONGEST_MS, BURST, MOST_EARNED, EARNED_MS = 3600000, 10, 1000, 10000
local FIELDS = {'phase', 'since', 'until', 'fails', 'oks', 'ramp_at', 'why', 'tokens', 'tokens_at', 'turned', 'turned_in',
  'turned_before'}
local NAMES = {'failures', 'open_ms', 'probes', 'successes', 'ramp_ms', 'full', 'ratio', 'rate'}

local function breaker(name)
  local values, b = call('HMGET', P .. 'breaker:' .. name, unpack(FIELDS)), {key = P .. 'breaker:' .. name}
  for i, field in ipairs(FIELDS) do b[field] = i == 1 and values[i] or i == 7 and values[i] or tonumber(values[i]) end
  b.calls = P .. 'calls:' .. name
  return b
end

local function policy(text)
  local p, i = {}, 0
  for part in string.gmatch(text, '%S+') do
    i = i + 1
    p[NAMES[i]] = tonumber(part)
  end
  return p
end

-- Those who are turned away come again after a time that grows with their number: some ten times its root a second.
local function turn(b, why, at_least)
  local second = math.floor(now / 1000)
  local turned, before = (b.turned or 0) + 1, b.turned_before or 0
  if second ~= b.turned_in then turned, before = 1, second - 1 == b.turned_in and b.turned or 0 end
  call('HSET', b.key, 'turned', turned, 'turned_in', second, 'turned_before', before)
  return {'WAIT', math.max(math.ceil(at_least), 100 + 10 * math.max(turned, before)), why}
end

local function open(b, till, why)
  call('HSET', b.key, 'phase', 'open', 'since', now, 'until', till, 'why', why)
  call('HDEL', b.key, 'fails', 'oks', 'ramp_at')
end

-- How many calls may be under way; nil: any number.
local function allowed(b, p)
  if b.phase == 'open' then -- its time is over
    call('HSET', b.key, 'phase', 'probing', 'oks', 0)
    b.phase = 'probing'
  end
  if b.phase == 'probing' then return p.probes end
  if b.phase ~= 'ramping' then return nil end
  local done = (now - b.ramp_at) / p.ramp_ms
  if done < 1 then return math.floor(p.probes * (math.max(p.full, p.probes) / p.probes) ^ done) end
  call('HDEL', b.key, 'phase', 'since', 'until', 'why', 'ramp_at')
  return nil
end

-- A retry takes a token. A first try brings a part of one, which is worth less the older it is; time brings the rest, up
-- to a burst, so that retries without first tries do not stand still. No field: a burst.
local function spend(b, p, again)
  local tokens, passed = b.tokens or BURST, now - (b.tokens_at or now)
  if tokens > BURST then tokens = BURST + (tokens - BURST) * math.exp(-passed / EARNED_MS)
  else tokens = math.min(BURST, tokens + passed / 1000 * p.rate) end
  if again and tokens < 1 then return turn(b, 'retry_budget', p.rate > 0 and (1 - tokens) / p.rate * 1000 or 1000) end
  tokens = again and tokens - 1 or math.min(MOST_EARNED, tokens + p.ratio)
  call('HSET', b.key, 'tokens', tokens, 'tokens_at', now)
end

local function ask(b, p, caller, lasts, again)
  call('ZREMRANGEBYSCORE', b.calls, '-inf', now)
  if b.phase == 'open' and now < b['until'] then return {'WAIT', b['until'] - now, b.why} end
  local most = allowed(b, p)
  if most and call('ZCARD', b.calls) >= most and not call('ZSCORE', b.calls, caller) then return turn(b, b.phase, 0) end
  local wait = spend(b, p, again)
  if wait then return wait end
  call('ZADD', b.calls, now + lasts, caller)
  return 'OK'
end

local function report(b, p, caller, lasts, again, word, after)
  local ends = call('ZSCORE', b.calls, caller)
  call('ZREM', b.calls, caller)
  if after > 0 then
    local till = now + math.min(after, LONGEST_MS)
    if b.phase ~= 'open' or till > b['until'] then open(b, till, 'retry_after') end
    return 'OK'
  end
  if word == 'unused' and again and b.tokens then call('HSET', b.key, 'tokens', b.tokens + 1) end
  -- what began before it was opened, or was counted as over, says nothing of how it is now
  if not ends or ends - lasts <= (b.since or 0) then return 'OK' end
  if word == 'failed' and p.failures > 0 then
    if b.phase == 'probing' or (b.fails or 0) + 1 >= p.failures then open(b, now + p.open_ms, 'open')
    else call('HINCRBY', b.key, 'fails', 1) end
  elseif word == 'ok' then
    if b.phase == 'probing' and b.oks + 1 >= p.successes then
      call('HSET', b.key, 'phase', 'ramping', 'ramp_at', now)
      call('HDEL', b.key, 'oks')
    elseif b.phase == 'probing' then call('HINCRBY', b.key, 'oks', 1)
    elseif b.fails then call('HDEL', b.key, 'fails') end
  end
  return 'OK'
end

local function item(i)
  local verb, name, caller, lasts, again, word, after, text = unpack(ARGV, i, i + 7)
  local b, p = breaker(name), policy(text)
  if verb == 'ask' then return ask(b, p, caller, tonumber(lasts), again == '1') end
  return report(b, p, caller, tonumber(lasts), again == '1', word, tonumber(after))
end

local answers = {now}
for i = 1, #ARGV, 8 do
  local ok, answer = attempt(item, i)
  answers[#answers + 1] = ok and answer or {'ERROR', answer}
end
return answers
