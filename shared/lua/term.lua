-- One leader a fleet for a named office, by terms (B38, B39): who leads, under which token, until when.
-- KEYS      1 the prefix of shard 0
-- ARGV      1 office  2 verb: campaign | resign  3 holder, random per process start  4 ms a term lasts unless renewed
-- Answers   {LEADS, term, ms}: a term of this holder, good for so long from now; {HELD, term, ms}: another's, which may
--           end then; resign: OK, or HELD where another holds the office
-- Invariant a term has one holder and no gap; each later one has a greater number, which is its fencing token.
--           Numbers begin at the time of their first campaign, so that none comes twice even if the record was lost.
-- Guarded by tests/redis/mutants.txt: test_term.py
local key, holder, lasts = P .. 'term:' .. ARGV[1], ARGV[3], tonumber(ARGV[4])
local m = call('HMGET', key, 'holder', 'term', 'until')
local term, left = tonumber(m[2] or 0), (m[3] or 0) - now
if ARGV[2] == 'resign' then
  if m[1] ~= holder then return 'HELD' end
  call('HSET', key, 'until', 0)
  call('PUBLISH', P .. 'vacant:' .. ARGV[1], term)
  return 'OK'
end
if left > 0 and m[1] ~= holder then return {'HELD', term, left} end
if left <= 0 then term = math.max(term + 1, now) end
call('HSET', key, 'holder', holder, 'term', term, 'until', now + lasts)
return {'LEADS', term, lasts}
