-- What clients and operators want of a mission: an end if it never began, else an entry for its lease holder (P3).
-- KEYS      1 the shard's prefix
-- ARGV      1 id  2 verb: cancel | event  3 entry id  4 entry, JSON  5 reason of a cancel  6 retention_ms
-- Answers   {OK | DUPLICATE | FULL | ENDED | GONE, status as of now}
-- Invariant control ends a mission itself only if it never committed and is not leased (P23); what waits is moved
--           towards its lane in the same step, so no entry is slept through.
-- Guarded by tests/redis/mutants.txt: test_control.py
local id, verb = ARGV[1], ARGV[2]
local m = read(id)
if not m then return {'GONE', ''} end
if m.place == 'ended' then return {'ENDED', m.status} end
if verb == 'cancel' and m.place ~= 'leased' and (m.rev or '0') == '0' then
  cancel(id, m, ARGV[5], tonumber(ARGV[6]))
  settle()
  return {'OK', 'CANCELLED'}
end
local answer = post(id, m, ARGV[3], ARGV[4], verb == 'cancel')
settle()
return {answer, m.status}
