-- How far missions are, as their handlers say while they run: the newest value only, no event and no commit (P18).
-- KEYS      1 the shard's prefix
-- ARGV      1 owner, then per item 4: id fence rev progress(JSON)
-- Answers   epoch ms, then per item OK or FENCED or GONE or {ERROR, why}
-- Invariant told only of what this owner leases under this fence and rev: nobody hears of a run that was taken over, and
--           what a commit said since is newer. Nothing else of the record changes, and no seq is given.
-- Guarded by tests/redis/mutants.txt: test_progress.py
local owner, answers = ARGV[1], {now}

local function item(id, fence, rev, progress)
  local m = call('HMGET', record(id), 'place', 'owner', 'fence', 'rev', 'status', 'state', 'watchers')
  if not m[1] then return 'GONE' end
  if m[1] ~= 'leased' or m[2] ~= owner or m[3] ~= fence or (m[4] or '0') ~= rev then return 'FENCED' end
  call('HSET', record(id), 'progress', progress, 'progress_at', now)
  tell(id, m[7], '\nP' .. passing(m[5], m[6], progress))
  return 'OK'
end

for i = 2, #ARGV, 4 do
  local ok, answer = attempt(item, ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3])
  answers[#answers + 1] = ok and answer or {'ERROR', answer}
end
return answers
