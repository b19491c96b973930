-- A home's inventory takes the place of the one that the writer knows; all processes see it.
-- KEYS      1 the prefix of shard 0
-- ARGV      1 the revisions one of which it may replace, a comma before and after each; '': any
--           2 revision that stands for none  3 revision  4 document, JSON
-- Answers   {OK, since when, epoch ms} · {SAME (was there already), since when} · {CHANGED, revision that is there}
-- Invariant document and revision are of one inventory, and changed_at is when it came. What was wrong with the file is
--           past once an inventory is taken. Not allow-oom: a full Redis takes in nothing new.
-- Guarded by tests/redis/mutants.txt: test_furnish.py
local known, none, revision, document = unpack(ARGV)
local key = P .. 'home'
local home = call('HMGET', key, 'revision', 'changed_at')
local there = home[1] or none
if known ~= '' and not string.find(known, ',' .. there .. ',', 1, true) then return {'CHANGED', there} end
call('HDEL', key, 'trouble')
if home[1] == revision then return {'SAME', home[2]} end
call('HSET', key, 'revision', revision, 'document', document, 'changed_at', now)
call('PUBLISH', P .. 'furnished', revision)
return {'OK', tostring(now)}
