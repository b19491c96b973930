-- A foreground says, before it has a mission accepted, that it is to be cancelled once nobody watches it (P19).
-- KEYS      1 the shard's prefix
-- ARGV      1 id  2 ms for which its first watcher will be registered
-- Answers   OK
-- Invariant no such mission exists without its row, whatever dies between the two steps; a row without a mission is
--           removed by `abandon`.
-- Guarded by tests/redis/mutants.txt: test_abandon.py
call('ZADD', P .. 'attended', now + ARGV[2], ARGV[1])
return 'OK'
