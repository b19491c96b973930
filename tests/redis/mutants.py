"""Every guard of every script, taken out once, and the test that must fail then.

A mutant is an edit of a script's text in memory. ``python -m tests.redis.mutants`` prints what each script's header
says after *Guarded by*; `test_mutants.py` runs them all, and holds the headers to this list.
"""

import hashlib
import importlib
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final

from shared.scripts import SCRIPTS, Script


@dataclass(frozen=True, slots=True)
class Mutant:
    """A guard taken out of a script (or of `places`, which all share), and the test that notices."""

    script: str
    old: str
    new: str
    test: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def module(self) -> str:
        """Of the test, without `test_`."""
        return self.test.partition(": ")[0]

    @property
    def name(self) -> str:
        """Of the test, without `test_`."""
        return self.test.partition(": ")[2].replace(" ", "_")

    def scripts(self) -> dict[str, Script]:
        """All scripts, with the guard taken out."""
        verbs = SCRIPTS if self.script == "places" else [self.script]
        changed = {verb: self._mutate(SCRIPTS[verb]) for verb in verbs}
        return {**SCRIPTS, **changed}

    def _mutate(self, script: Script) -> Script:
        assert script.text.count(self.old) == 1, f"{self.script} has {script.text.count(self.old)} times: {self.old}"
        text = script.text.replace(self.old, self.new)
        return Script(script.verb, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())

    def find(self) -> Callable[..., None]:
        """The test's function; it takes `verbs` and the arguments."""
        module = importlib.import_module(f"tests.redis.test_{self.module}")
        function: Callable[..., None] = getattr(module, f"test_{self.name}")
        return function


def header(script: str) -> str:
    """What the script's header should say: the tests by file, each named once."""
    names: dict[str, list[str]] = {}
    for mutant in MUTANTS:
        if mutant.script == script:
            found = names.setdefault(mutant.module, [])
            if mutant.name not in found:
                found.append(mutant.name)
    texts = [f"test_{module}.py: {' · '.join(tests)}" for module, tests in names.items()]
    return textwrap.fill(
        " · ".join(texts),
        width=120,
        initial_indent="-- Guarded by tests/redis: ",
        subsequent_indent="--           ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def told(script: str) -> str:
    """What its header does say."""
    lines = (files("shared") / "lua" / f"{script}.lua").read_text().splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith("-- Guarded by")), len(lines))
    end = next((n for n in range(start + 1, len(lines)) if not lines[n].startswith("--           ")), len(lines))
    return "\n".join(lines[start:end])


PLACES: Final = [
    # to_lane, enter, free
    Mutant(
        "places",
        "call('ZADD', P .. 'lane:' .. lane, order, id)",
        "",
        "release: a released mission is claimed again as it was",
    ),
    Mutant(
        "places",
        "'NX', now, tenant)\n  woken",
        "now, tenant)\n  woken",
        "accept: a tenant that waits already keeps its turn",
    ),
    Mutant("places", "woken[pool] = true\nend", "end", "release: a worker of the pool is woken"),
    Mutant(
        "places",
        "if holder and holder ~= id then\n      call('ZADD', P .. 'waiters",
        "if holder then\n      call('ZADD', P .. 'waiters",
        "targets: a mission that kept its hold wakes into its lane",
    ),
    Mutant(
        "places",
        "if holder and holder ~= id then\n      call('ZADD', P .. 'waiters",
        "if false then\n      call('ZADD', P .. 'waiters",
        "accept: a held target is waited for out of the lane",
    ),
    Mutant(
        "places",
        "RANK[string.match(lane, '^[^:]*')] * 1e13 + order",
        "order",
        "commit: a hold given up goes to the best waiter",
        {"move": "end"},
    ),
    Mutant(
        "places",
        "if not holder then call('SET', P .. 'target:' .. target, id) end",
        "",
        "accept: a free target is held from the accept on",
    ),
    Mutant(
        "places",
        "or call('GET', P .. 'target:' .. target) ~= id then return end",
        "then return end",
        "targets: a cancelled waiter leaves the holder alone",
    ),
    Mutant("places", "if w[1] == 'waiters' then", "if true then", "targets: a waiter that is gone is passed over"),
    Mutant(
        "places", "call('SET', P .. 'target:' .. target, best)", "", "targets: a cancelled holder passes the hold on"
    ),
    Mutant(
        "places",
        "call('HSET', record(best), 'place', 'lane', 'ready_at', now)",
        "call('HSET', record(best), 'place', 'lane')",
        "targets: a new holder is ready from then on",
    ),
    Mutant(
        "places",
        "call('DEL', P .. 'target:' .. target)\n      return",
        "return",
        "control: a mission that never began is cancelled here",
    ),
    # tell
    Mutant(
        "places",
        "if tonumber(till) > now then call('PUBLISH'",
        "if true then call('PUBLISH'",
        "commit: lapsed watchers are told nothing",
    ),
    # thaw
    Mutant(
        "places",
        "> 2 * poll then call('DEL', P .. 'looks')",
        "> 2 * poll then call('EXISTS', P .. 'looks')",
        "takeover: a thawed redis forgets all first looks",
    ),
    Mutant("places", "> 2 * poll then", "> 0 * poll then", "takeover: two looks two renewals apart on redis own clock"),
    Mutant("places", "call('SET', P .. 'tick', now)\nend", "end", "takeover: a renewal notices the thaw too"),
    # post
    Mutant(
        "places",
        "if call('SISMEMBER', P .. 'inbox_ids:' .. id, entry_id) == 1 then return 'DUPLICATE' end",
        "",
        "control: an entry id is taken once a run",
    ),
    Mutant(
        "places",
        "if not reserved and tonumber(m.unread or 0) >= 64 then",
        "if tonumber(m.unread or 0) >= 64 then",
        "control: cancel and deadline have room in a full inbox",
    ),
    Mutant(
        "places",
        "if not reserved and tonumber(m.unread or 0) >= 64 then return 'FULL' end",
        "",
        "control: at most sixty four events are unread",
    ),
    Mutant(
        "places", "call('SADD', P .. 'inbox_ids:' .. id, entry_id)\n", "", "control: an entry id is taken once a run"
    ),
    Mutant(
        "places",
        "call('HINCRBY', record(id), 'unread', 1)\n",
        "",
        "commit: an unread entry is signalled to every commit",
        {"move": "stay"},
    ),
    Mutant(
        "places",
        "call('SADD', P .. 'signals:' .. m.owner, id)\n",
        "",
        "lease: unread entries are named until a commit consumes them",
    ),
    Mutant("places", "call('PUBLISH', P .. 'signal:' .. m.owner, id)\n", "", "control: the lease holder is signalled"),
    Mutant(
        "places",
        "elseif m.place == 'waiting' then\n    call('ZREM', P .. 'timers', id)\n",
        "elseif m.place == 'waiting' then\n",
        "control: what waits is moved towards its lane in the same step",
        {"verb": "event"},
    ),
    Mutant(
        "places",
        "call('HSET', record(id), 'place', enter(id, m.lane, m.order, m.target), 'ready_at', now)\n  end\n  return 'OK'",
        "end\n  return 'OK'",
        "control: what waits is moved towards its lane in the same step",
        {"verb": "cancel"},
    ),
    # cancel
    Mutant(
        "places",
        "call('RPUSH', P .. 'log:' .. id, ev) -- first: the one write that can break\n  if m.place == 'lane' then call('ZREM', P .. 'lane:' .. m.lane, id)",
        "if m.place == 'lane' then call('ZREM', P .. 'lane:' .. m.lane, id) call('RPUSH', P .. 'log:' .. id, ev)",
        "sweep: a failed mission never fails the others and is tried again",
    ),
    Mutant(
        "places",
        "if m.place == 'lane' then call('ZREM', P .. 'lane:' .. m.lane, id)",
        "if false then",
        "control: a mission that never began is cancelled here",
    ),
    Mutant(
        "places",
        "elseif m.place == 'waiters' then call('ZREM', P .. 'waiters:' .. m.target, id)",
        "",
        "targets: a cancelled waiter leaves the holder alone",
    ),
    Mutant(
        "places",
        "call('ZREM', P .. 'parked:' .. kind, id)\n",
        "",
        "parking: a parked mission that is cancelled leaves no type behind",
    ),
    Mutant(
        "places",
        "if call('EXISTS', P .. 'parked:' .. kind) == 0 then call('SREM', P .. 'parked_types', kind) end",
        "",
        "parking: a parked mission that is cancelled leaves no type behind",
    ),
    Mutant(
        "places",
        "if call('EXISTS', P .. 'parked:' .. kind) == 0 then call",
        "if true then call",
        "parking: a parked mission that is cancelled leaves no type behind",
    ),
    Mutant("places", "(m.root or id)", "id", "control: a mission that never began is cancelled here"),
    Mutant(
        "places",
        "m.created_at, m.started_at,",
        "m.created_at, nil,",
        "control: the result says when a released mission was started",
    ),
    Mutant(
        "places",
        "'seq', seq,\n    'unread', 0)",
        "'seq', seq)",
        "control: the result says when a released mission was started",
    ),
    Mutant(
        "places",
        "call('SET', P .. 'result:' .. id, doc, 'PX', retention)\n  call('DEL', P .. 'inbox:'",
        "call('SET', P .. 'result:' .. id, doc)\n  call('DEL', P .. 'inbox:'",
        "sweep: the result is kept for the retention",
    ),
    Mutant(
        "places",
        "call('DEL', P .. 'inbox:' .. id, P .. 'inbox_ids:' .. id)\n  call('ZREM', P .. 'deadlines', id)\n  call('ZADD'",
        "call('ZREM', P .. 'deadlines', id)\n  call('ZADD'",
        "control: the result says when a released mission was started",
    ),
    Mutant(
        "places",
        "call('ZREM', P .. 'deadlines', id)\n  call('ZADD', P .. 'retire', now + retention, id)",
        "call('ZREM', P .. 'deadlines', id)",
        "control: a mission that never began is cancelled here",
    ),
    Mutant(
        "places", "count(m.type, m.status, m.state, -1)\n", "", "control: a mission that never began is cancelled here"
    ),
    Mutant("places", "free(id, m.target)\n  tell", "tell", "targets: a cancelled holder passes the hold on"),
    Mutant("places", "tell(id, m.watchers, '\\nE' .. ev .. '\\nR' .. doc)", "", "control: watchers hear of a cancel"),
    # attempt, settle
    Mutant(
        "places",
        "local ok, answer = pcall(f, ...)",
        "local ok, answer = true, f(...)",
        "commit: a failed item changes nothing and never fails its neighbours",
    ),
    Mutant(
        "places",
        "== 0 then call('HDEL', P .. 'counts', key) end",
        "== 0 then call('HGET', P .. 'counts', key) end",
        "retire: the counts of what is left are right",
    ),
    # times
    Mutant("places", "math.floor(doe / 36524)", "0", "times: each day of four centuries"),
    Mutant("places", "month <= 2 and 1 or 0", "0", "times: rfc3339 is python s", {"seed": 0}),
]

ACCEPT: Final = [
    Mutant(
        "accept",
        "if call('EXISTS', record(id)) == 1 then return 'DUPLICATE' end",
        "",
        "accept: a known id is a duplicate and changes nothing",
    ),
    Mutant(
        "accept",
        "if not RANK[string.match(lane, '^(%l+):[^:]+:.+$')] then error('no lane: ' .. lane) end",
        "",
        "accept: a lane that cannot be written takes nothing in",
    ),
    Mutant(
        "accept",
        "if target ~= '' then place = enter(id, lane, order, target)\n",
        "if false then\n",
        "accept: a held target is waited for out of the lane",
    ),
    Mutant(
        "accept", "call('ZADD', P .. 'deadlines', ends, id)", "", "accept: the deadline counts from redis own clock"
    ),
    Mutant("accept", "count(type, 'PENDING', state, 1)", "", "accept: an accepted mission stands in its lane"),
    Mutant("accept", "if watcher ~= '' then", "if false then", "accept: the watcher of an accept hears of the claim"),
    Mutant("accept", "if root ~= '' then", "if false then", "claim: what is claimed is leased to the owner"),
    Mutant(
        "accept",
        "'NX', now, tenant)\n  woken[pool] = true\nend\nsettle()",
        "now, tenant)\n  woken[pool] = true\nend\nsettle()",
        "accept: a tenant that waits already keeps its turn",
    ),
    Mutant("accept", "woken[pool] = true\nend\nsettle()", "end\nsettle()", "accept: a worker of the pool is woken"),
    Mutant(
        "accept",
        "local order, place = call('INCR', P .. 'order'), 'lane'",
        "local order, place = '1', 'lane'",
        "accept: order numbers rise over lanes and batches",
    ),
]

CLAIM: Final = [
    # the lease
    Mutant(
        "claim", "or not lease_end and ARGV[2] ~= '1' then", "then", "claim: an owner that redis does not know is lost"
    ),
    Mutant(
        "claim",
        "if lease_end and tonumber(lease_end) <= 0 or not lease_end",
        "if not lease_end",
        "claim: an owner that is being taken over is lost even if it registers",
    ),
    Mutant(
        "claim",
        "call('ZADD', P .. 'owners', now + ARGV[3], owner)",
        "call('ZADD', P .. 'owners', 'NX', now + ARGV[3], owner)",
        "claim: every claim renews the lease",
    ),
    Mutant("claim", "thaw(poll)\n", "", "takeover: a thawed redis forgets all first looks"),
    # timers
    Mutant(
        "claim",
        "call('ZRANGE', P .. 'timers', '-inf', now, 'BYSCORE'",
        "call('ZRANGE', P .. 'timers', '-inf', '+inf', 'BYSCORE'",
        "claim: a due mission goes to its lane with a new age",
    ),
    Mutant(
        "claim",
        "'timers', '-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH)",
        "'timers', '-inf', now, 'BYSCORE', 'LIMIT', 0, 1000)",
        "claim: timers move fifty at a time and the next claim is due at once",
    ),
    Mutant("claim", "call('ZREM', P .. 'timers', id)\n", "", "claim: a due mission goes to its lane with a new age"),
    Mutant(
        "claim", "if m[1] == 'waiting' then", "if m[1] then", "claim: a timer that disagrees with the record is dropped"
    ),
    Mutant(
        "claim",
        "enter(id, m[2], m[3], m[4]), 'ready_at', now)",
        "enter(id, m[2], m[3], m[4]))",
        "claim: a due mission goes to its lane with a new age",
    ),
    # takeover
    Mutant(
        "claim",
        "if m[1] ~= 'leased' or m[2] ~= other then return end",
        "if m[1] ~= 'leased' then return end",
        "takeover: a mission that others lease by now is left alone",
    ),
    Mutant(
        "claim",
        "if m[1] ~= 'leased' or m[2] ~= other then return end",
        "if m[2] ~= other then return end",
        "takeover: a mission that its owner gave back is left alone",
    ),
    Mutant(
        "claim",
        "call('HINCRBY', record(id), 'deaths', 1)",
        "0",
        "takeover: a takeover counts a death and writes the event",
    ),
    Mutant(
        "claim",
        "if m_status == 'COMPENSATING' then return m_status end",
        "",
        "takeover: a mission that committed waits for a worker",
    ),
    Mutant(
        "claim",
        "return (rev or '0') == '0' and 'PENDING' or 'WAITING'",
        "return 'PENDING'",
        "takeover: a mission that committed waits for a worker",
    ),
    Mutant(
        "claim",
        "call('HSET', record(id), 'place', 'lane', 'status', status, 'seq', seq)\n  to_lane(id, m[3], m[4])",
        "call('HSET', record(id), 'place', 'lane', 'status', status, 'seq', seq, 'ready_at', now + 1)\n  to_lane(id, m[3], m[4])",
        "takeover: a takeover keeps hold order and age",
    ),
    Mutant(
        "claim",
        "call('RPUSH', P .. 'log:' .. id, ev)\n  tell(id, m[10]",
        "tell(id, m[10]",
        "takeover: a takeover counts a death and writes the event",
    ),
    Mutant("claim", "tell(id, m[10], '\\nE' .. ev)", "", "takeover: watchers hear of a takeover"),
    Mutant(
        "claim",
        "'owners', '-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH, 'WITHSCORES')",
        "'owners', '-inf', '+inf', 'BYSCORE', 'LIMIT', 0, BATCH, 'WITHSCORES')",
        "takeover: a live lease is not looked at",
    ),
    Mutant(
        "claim",
        "'owners', '-inf', now, 'BYSCORE', 'LIMIT', 0, BATCH, 'WITHSCORES')",
        "'owners', '-inf', now, 'BYSCORE', 'LIMIT', 0, 5, 'WITHSCORES')",
        "takeover: many owners that die together are taken over together",
    ),
    Mutant(
        "claim",
        "if tonumber(ended) > 0 and seen ~= ended then",
        "if tonumber(ended) > 0 and not seen then",
        "takeover: a lease that was renewed between the looks begins anew",
    ),
    Mutant(
        "claim", "if tonumber(ended) > 0 and seen ~= ended then", "if false then", "takeover: one look is not enough"
    ),
    Mutant(
        "claim",
        "now - first < 2 * renew then",
        "now - first < renew / 2 then",
        "takeover: two looks two renewals apart on redis own clock",
    ),
    Mutant("claim", "now - first < 2 * renew then", "false then", "takeover: one look is not enough"),
    Mutant(
        "claim",
        "soonest = math.min(soonest, 2 * renew)",
        "",
        "takeover: two looks two renewals apart on redis own clock",
    ),
    Mutant(
        "claim",
        "soonest = math.min(soonest, first + 2 * renew - now)",
        "",
        "takeover: a claim says when the second look is due",
    ),
    Mutant(
        "claim", "call('ZADD', P .. 'owners', 0, other)", "", "takeover: fifty missions a claim and the rest at once"
    ),
    Mutant(
        "claim",
        "call('SPOP', P .. 'held:' .. other, room)",
        "call('SPOP', P .. 'held:' .. other, 1000)",
        "takeover: fifty missions a claim and the rest at once",
    ),
    Mutant("claim", "room = room - 1", "", "takeover: fifty missions a claim whoever had them"),
    Mutant(
        "claim",
        "if call('EXISTS', P .. 'held:' .. other) == 0 then",
        "if true then",
        "takeover: fifty missions a claim and the rest at once",
    ),
    Mutant(
        "claim",
        "call('ZREM', P .. 'owners', other)\n",
        "",
        "takeover: many owners that die together are taken over together",
    ),
    Mutant("claim", "call('HDEL', P .. 'looks', other)\n", "", "takeover: the owner of what was taken over is lost"),
    Mutant("claim", "call('DEL', P .. 'signals:' .. other)\n", "", "takeover: signals of the dead go with its lease"),
    Mutant(
        "claim", "else soonest = 0 end\n  end", "end\n  end", "takeover: fifty missions a claim and the rest at once"
    ),
    # lease, park, un-park
    Mutant(
        "claim",
        "fence = fence or call('INCR', P .. 'fence')",
        "fence = call('INCR', P .. 'fence')",
        "claim: the fence is drawn once a script and only rises",
    ),
    Mutant(
        "claim",
        "fence = fence or call('INCR', P .. 'fence')",
        "fence = tonumber(call('GET', P .. 'fence') or 0)",
        "claim: the fence is drawn once a script and only rises",
    ),
    Mutant(
        "claim",
        "local status = m[6] == 'COMPENSATING' and m[6] or 'RUNNING'",
        "local status = 'RUNNING'",
        "claim: a mission that is undoing stays so",
    ),
    Mutant("claim", "if not m[15] then", "if true then", "claim: the first claim ever writes the event and the start"),
    Mutant("claim", "tell(id, m[16], '\\nE' .. ev)", "", "claim: watchers see it run"),
    Mutant(
        "claim",
        "if #unread > 0 then call('SADD', P .. 'signals:' .. owner, id) end",
        "",
        "claim: a claim hands over the unread entries and names them in renewals",
    ),
    Mutant(
        "claim", "local since = m[18] or now", "local since = now", "parking: the limit counts from the first parking"
    ),
    Mutant("claim", "free(id, m[13])\n", "", "parking: parking passes the hold on"),
    Mutant(
        "claim",
        "call('SADD', P .. 'parked_types', kind)",
        "",
        "parking: a worker that knows it claims it where it is parked",
    ),
    Mutant(
        "claim",
        "if m[1] ~= 'lane' then return end",
        "",
        "claim: a lane entry that disagrees with the record is dropped",
    ),
    Mutant(
        "claim",
        "if knows(kind) then lease(id, m) else park(id, m, kind) end",
        "lease(id, m)",
        "parking: an unknown type is parked and uses no slot",
    ),
    Mutant(
        "claim",
        "string.find(ARGV[9], ',' .. kind .. ',', 1, true)",
        "string.find(ARGV[9], kind, 1, true)",
        "parking: another version is another type",
    ),
    Mutant(
        "claim",
        "if m[1] ~= 'parked' then return end",
        "",
        "parking: a parked entry that disagrees with the record is dropped",
    ),
    Mutant(
        "claim",
        "if holder and holder ~= id then\n    local w",
        "if false then\n    local w",
        "parking: an unparked mission whose target is held waits for it",
    ),
    Mutant(
        "claim",
        "if target then call('SET', target, id) end",
        "",
        "parking: a worker that knows it claims it where it is parked",
    ),
    Mutant(
        "claim",
        "call('SREM', P .. 'parked_types', kind)\n      return",
        "return",
        "parking: a worker that knows it claims it where it is parked",
    ),
    Mutant(
        "claim",
        "if knows(kind) then unpark(kind, slots) end",
        "unpark(kind, slots)",
        "parking: a worker that does not know it leaves it parked",
    ),
    Mutant(
        "claim", "unpark(kind, slots)", "unpark(kind, 50)", "parking: no more is unparked than there are free slots"
    ),
    Mutant("claim", "if looked >= LOOKED_AT then soonest = 0 end", "", "parking: one claim looks at a bounded number"),
    Mutant(
        "claim",
        "while #taken < most and looked < LOOKED_AT do\n    local tenant",
        "while #taken < most do\n    local tenant",
        "parking: one claim looks at a bounded number",
    ),
    # shares
    Mutant(
        "claim",
        "share = math.ceil((most - #taken) / left)",
        "share = most",
        "lanes: tenants share a claim",
        {"priority": "normal"},
    ),
    Mutant("claim", "call('ZADD', ring, turn, tenant)\n", "", "lanes: tenants take turns over claims"),
    Mutant(
        "claim",
        "local slots, urgent_slots = math.min(BATCH, tonumber(ARGV[6])),",
        "local slots, urgent_slots = tonumber(ARGV[6]),",
        "claim: never more than fifty a script",
    ),
    Mutant(
        "claim",
        "math.floor(odd(0.4142135623730951) * #pools)",
        "0",
        "lanes: a pool starves no other pool of its worker",
    ),
    Mutant("claim", "math.floor(slots / 8 + odd(0.7320508075688772))", "0", "lanes: urgent without end starves nobody"),
    Mutant("claim", "slots / 8 + odd(0.7320508075688772)", "slots / 8", "lanes: urgent without end starves nobody"),
    Mutant("claim", "local kept = others and", "local kept = true and", "lanes: the reserve is for urgent alone"),
    Mutant(
        "claim",
        "take('urgent', pool, urgent_slots - kept)",
        "take('urgent', pool, slots - kept)",
        "lanes: the reserve is for urgent alone",
    ),
    Mutant(
        "claim",
        "/ 4 + odd(0.6180339887498949)) or 0",
        "/ 4) or 0",
        "lanes: bulk is served where slots come free one at a time",
    ),
    Mutant(
        "claim",
        "take('normal', pool, slots - bulk)",
        "take('normal', pool, slots)",
        "lanes: bulk keeps a quarter of what is free",
    ),
    Mutant(
        "claim",
        "take('bulk', pool, slots)\n    take('normal', pool, slots)",
        "take('bulk', pool, slots)",
        "lanes: what is kept for bulk and not used is normals",
    ),
    Mutant(
        "claim",
        "if #held > 0 then call('SADD', P .. 'held:' .. owner, unpack(held)) end",
        "",
        "claim: what is claimed is leased to the owner",
    ),
    # what is due next
    Mutant(
        "claim",
        "if next_timer then soonest = math.min(soonest, next_timer - now) end",
        "",
        "claim: a due mission goes to its lane with a new age",
    ),
    Mutant(
        "claim",
        "if next_lapse then soonest = math.min(soonest, next_lapse - now + 1) end",
        "",
        "claim: a claim says when the next lease ends",
    ),
]

COMMIT: Final = [
    Mutant("commit", "if not m[1] then return 'GONE' end", "", "commit: a late copy after retirement is gone"),
    Mutant(
        "commit",
        "if m[3] == fence and tonumber(m[4] or 0) == rev + 1 then return 'DUPLICATE' end",
        "",
        "commit: the same commit again is a duplicate",
        {"move": "stay"},
    ),
    Mutant(
        "commit",
        "if m[3] == fence and tonumber(m[4] or 0) == rev + 1",
        "if tonumber(m[4] or 0) == rev + 1",
        "commit: a late copy is fenced once somebody has claimed",
    ),
    Mutant(
        "commit",
        "if m[3] == fence and tonumber(m[4] or 0) == rev + 1",
        "if m[3] == fence and tonumber(m[4] or 0) > tonumber(rev)",
        "commit: a stale rev is fenced",
    ),
    Mutant("commit", "if m[1] ~= 'leased' or m[2]", "if m[2]", "commit: what was released is fenced"),
    Mutant("commit", "or m[2] ~= owner or", "or", "commit: another owner is fenced"),
    Mutant("commit", "or m[3] ~= fence or", "or", "commit: a stale fence is fenced"),
    Mutant(
        "commit",
        "or (m[4] or '0') ~= rev then return 'FENCED' end",
        "then return 'FENCED' end",
        "commit: a stale rev is fenced",
    ),
    Mutant(
        "commit",
        "if (m[6] or '0') ~= consumed then",
        "if (m[6] or '0') == 'never' then",
        "commit: an unread entry is signalled to every commit",
        {"move": "stay"},
    ),
    Mutant(
        "commit",
        "if (m[6] or '0') ~= consumed then",
        "if (m[6] or '0') ~= '0' and consumed == '0' then",
        "commit: an entry that came after the read is signalled",
    ),
    Mutant(
        "commit",
        "if move == 'yield' and status == 'RUNNING' then status = 'WAITING' end",
        "",
        "commit: nobody runs in a lane",
    ),
    Mutant(
        "commit",
        "if wake_at ~= '' and not tonumber(wake_at) then error('wake_at is no time: ' .. wake_at) end",
        "",
        "commit: a failed item changes nothing and never fails its neighbours",
    ),
    Mutant(
        "commit",
        "if #rows > 0 then call('LLEN', P .. 'outbox:' .. id) end",
        "",
        "commit: a failed item changes nothing and never fails its neighbours",
    ),
    Mutant(
        "commit",
        "{'rev', rev + 1, 'seq', seq,",
        "{'seq', seq,",
        "commit: the same commit again is a duplicate",
        {"move": "stay"},
    ),
    Mutant(
        "commit",
        "if document ~= '' then set('document', document) end",
        "set('document', document)",
        "commit: an empty document leaves the old one",
    ),
    Mutant("commit", "if (m[14] or '0') ~= '0' then set('deaths', '0') end", "", "commit: any commit resets deaths"),
    Mutant("commit", "set('unread', '0')\n", "", "commit: consumed entries leave the inbox and the signals"),
    Mutant(
        "commit", "call('DEL', P .. 'inbox:' .. id)\n", "", "commit: consumed entries leave the inbox and the signals"
    ),
    Mutant(
        "commit",
        "call('SREM', P .. 'signals:' .. owner, id)",
        "",
        "commit: consumed entries leave the inbox and the signals",
    ),
    Mutant(
        "commit",
        "if m[8] ~= status or m[9] ~= state then",
        "if m[8] ~= status then",
        "commit: counts follow status and state",
    ),
    Mutant(
        "commit",
        "call('SET', P .. 'result:' .. id, doc, 'PX', retention)\n    call('DEL', P .. 'inbox_ids",
        "call('SET', P .. 'result:' .. id, doc)\n    call('DEL', P .. 'inbox_ids",
        "commit: an end writes log result and expiry together",
    ),
    Mutant(
        "commit",
        "call('DEL', P .. 'inbox_ids:' .. id)\n    call",
        "call",
        "commit: a consumed id stays known to the end of the run",
    ),
    Mutant(
        "commit",
        "call('ZREM', P .. 'deadlines', id)\n    retired",
        "retired",
        "commit: an end writes log result and expiry together",
    ),
    Mutant("commit", "lines[#lines + 1] = '\\nR' .. doc\n", "", "commit: watchers hear events and result in one hint"),
    Mutant(
        "commit",
        "set('place', 'lane')\n    set('ready_at', now)",
        "set('place', 'lane')",
        "commit: a yield goes to the lane with a new age and its hold",
    ),
    Mutant("commit", "set('wake_at', wake_at)\n", "", "commit: a commit is written whole"),
    Mutant(
        "commit",
        "if wake_at ~= '' then call('ZADD', P .. 'timers', wake_at, id) end",
        "",
        "commit: a wait with a wake time stands in the timers",
    ),
    Mutant(
        "commit",
        "call('ZADD', P .. 'outboxes', 'NX', now, id)",
        "call('ZADD', P .. 'outboxes', now, id)",
        "commit: outbox rows are written in order",
    ),
    Mutant(
        "commit",
        "if move ~= 'stay' then left[#left + 1] = id end",
        "left[#left + 1] = id",
        "commit: a commit that goes on stays leased",
    ),
    Mutant("commit", "if move ~= 'stay' then left[#left + 1] = id end", "", "commit: a commit is written whole"),
    Mutant(
        "commit",
        "if move == 'end' or move == 'leave' then free",
        "if move == 'end' then free",
        "commit: a hold given up goes to the best waiter",
        {"move": "leave"},
    ),
    Mutant(
        "commit",
        "if move == 'end' or move == 'leave' then free",
        "if move == 'leave' then free",
        "commit: a hold given up goes to the best waiter",
        {"move": "end"},
    ),
    Mutant(
        "commit",
        "if move == 'end' or move == 'leave' then free",
        "if move ~= 'stay' then free",
        "commit: a kept hold stays through the wait",
    ),
    Mutant(
        "commit",
        "if #retired > 0 then call('ZADD', P .. 'retire', unpack(retired)) end",
        "",
        "commit: an end writes log result and expiry together",
    ),
]

OTHERS: Final = [
    Mutant(
        "control",
        "if not m then return {'GONE', ''} end",
        "if not m then return {'OK', ''} end",
        "control: nothing reaches a mission that is gone",
    ),
    Mutant(
        "control",
        "if m.place == 'ended' then return {'ENDED', m.status} end",
        "",
        "control: nothing reaches an ended mission",
    ),
    Mutant("control", "and m.place ~= 'leased' and", "and", "control: a leased mission is never ended here"),
    Mutant(
        "control", "and (m.rev or '0') == '0' then", "then", "control: a mission that committed is never ended here"
    ),
    Mutant("control", "if verb == 'cancel' and", "if", "control: an event before the first claim is kept"),
    Mutant(
        "control",
        "ARGV[4], verb == 'cancel')",
        "ARGV[4], false)",
        "control: cancel and deadline have room in a full inbox",
    ),
    Mutant("control", "ARGV[4], verb == 'cancel')", "ARGV[4], true)", "control: at most sixty four events are unread"),
    Mutant("release", "if m[1] ~= 'leased' or m[2]", "if m[2]", "release: what is not leased is fenced"),
    Mutant("release", "m[2] ~= owner or ", "", "release: another owner is fenced"),
    Mutant("release", "or m[3] ~= fence then", "then", "release: a stale fence is fenced"),
    Mutant(
        "release",
        "if status == 'RUNNING' then status =",
        "if false then status =",
        "release: the status says that nobody runs it",
        {"status": "RUNNING", "after": "WAITING"},
    ),
    Mutant(
        "release",
        "if status == 'RUNNING' then status =",
        "if true then status =",
        "release: the status says that nobody runs it",
        {"status": "COMPENSATING", "after": "COMPENSATING"},
    ),
    Mutant(
        "release",
        "(m[9] or '0') == '0' and 'PENDING' or 'WAITING'",
        "'WAITING'",
        "release: the status says that nobody runs it",
        {"status": None, "after": "PENDING"},
    ),
    Mutant(
        "release",
        "call('SREM', P .. 'held:' .. owner, id)\n",
        "",
        "release: a released mission is claimed again as it was",
    ),
    Mutant(
        "release",
        "call('SREM', P .. 'signals:' .. owner, id)\n",
        "",
        "release: unread entries stay for the next worker",
    ),
    Mutant("release", "count(m[6], m[7], m[8], -1)\n", "", "release: a released mission is claimed again as it was"),
    Mutant(
        "renew",
        "if not lease_end or tonumber(lease_end) <= 0",
        "if not lease_end",
        "lease: a lease that is being taken over is lost",
    ),
    Mutant(
        "renew",
        "if not lease_end or tonumber(lease_end) <= 0",
        "if lease_end and tonumber(lease_end) <= 0",
        "lease: an unknown owner is lost",
    ),
    Mutant("renew", "thaw(tonumber(ARGV[3]))\n", "", "takeover: a renewal notices the thaw too"),
    Mutant(
        "renew",
        "call('ZADD', P .. 'owners', now + ARGV[2], ARGV[1])",
        "",
        "lease: a renewal moves the end of the lease",
    ),
    Mutant(
        "resign",
        "if call('EXISTS', P .. 'held:' .. ARGV[1]) == 1 then return 'HOLDS' end",
        "",
        "lease: an owner that holds missions cannot resign",
    ),
    Mutant("resign", "call('HDEL', P .. 'looks', ARGV[1])\n", "", "lease: a resigned owner leaves nothing"),
    Mutant(
        "sweep",
        "'deadlines', '-inf', now, 'BYSCORE'",
        "'deadlines', '-inf', '+inf', 'BYSCORE'",
        "sweep: what never began is expired",
    ),
    Mutant("sweep", "if m and m.place ~= 'ended' then", "if m then", "sweep: an ended mission is left alone"),
    Mutant("sweep", "if m.place ~= 'leased' and (m.rev", "if (m.rev", "sweep: a leased mission is told not ended"),
    Mutant("sweep", "and (m.rev or '0') == '0' then", "then", "sweep: a mission that committed is told not ended"),
    Mutant(
        "sweep",
        '\'{"entry":"deadline"}\', true)',
        '\'{"entry":"deadline"}\', false)',
        "control: cancel and deadline have room in a full inbox",
    ),
    Mutant("sweep", "call('ZREM', P .. 'deadlines', id)\nend", "end", "sweep: a deadline is posted once"),
    Mutant("sweep", "'LIMIT', 0, 50)", "'LIMIT', 0, 500)", "sweep: fifty a script"),
    Mutant(
        "sweep",
        "if not attempt(item, id) then call('ZADD', P .. 'deadlines', now + AGAIN, id) end",
        "attempt(item, id)",
        "sweep: a failed mission never fails the others and is tried again",
    ),
    Mutant(
        "retire",
        "'retire', '-inf', now, 'BYSCORE'",
        "'retire', '-inf', '+inf', 'BYSCORE'",
        "retire: a mission is kept for its retention",
    ),
    Mutant(
        "retire",
        "if m[1] and m[1] ~= 'ended' then return call('ZREM', P .. 'retire', id) end",
        "",
        "retire: a mission that has not ended is never removed",
    ),
    Mutant(
        "retire",
        "if call('EXISTS', P .. 'outbox:' .. id) == 1 then return call('ZADD', P .. 'retire', now + ARGV[1], id) end",
        "",
        "retire: no mission goes before its rows are carried out",
    ),
    Mutant("retire", "P .. 'log:' .. id, P", "P", "retire: a retired mission leaves nothing"),
    Mutant("retire", ", P .. 'result:' .. id,", ",", "retire: a retired mission leaves nothing"),
    Mutant(
        "retire", "if m[1] then count(m[2], m[3], m[4], -1) end", "", "retire: the counts of what is left are right"
    ),
    Mutant(
        "retire",
        "if not attempt(item, id) then call('ZADD', P .. 'retire', now + ARGV[1], id) end",
        "attempt(item, id)",
        "retire: a failed mission never fails the others",
    ),
    Mutant("retire", "'LIMIT', 0, 50)", "'LIMIT', 0, 500)", "retire: fifty a script"),
    Mutant(
        "watch",
        "elseif m[1] == 'ended' then answers[#answers + 1] = 'ENDED'\n",
        "",
        "watch: each id has its own answer",
    ),
    Mutant(
        "watch", "if not m[1] then answers[#answers + 1] = 'GONE'\n  elseif", "if", "watch: each id has its own answer"
    ),
    Mutant("watch", "if other ~= front and", "if", "watch: a watcher is renewed not doubled"),
    Mutant("watch", "and tonumber(till) > now then", "then", "watch: others stay and the lapsed leave"),
    Mutant("watch", "if ARGV[2] ~= '0' then", "if true then", "watch: zero unwatches"),
    Mutant(
        "announce",
        "if call('HGET', P .. 'catalogue', ARGV[i]) ~= ARGV[i + 1] then",
        "if true then",
        "announce: nothing new is no change",
    ),
    Mutant(
        "announce",
        "call('ZADD', P .. 'catalogue_seen', now, ARGV[i])",
        "call('ZADD', P .. 'catalogue_seen', 'NX', now, ARGV[i])",
        "announce: a row that is announced stays",
    ),
    Mutant("announce", "call('HDEL', P .. 'catalogue', kind)\n", "", "announce: a row goes after its last live worker"),
    Mutant(
        "announce",
        "if changed then call('INCR', P .. 'catalogue_rev') end",
        "",
        "announce: rows are published and counted",
    ),
]

MUTANTS: Final = [*PLACES, *ACCEPT, *CLAIM, *COMMIT, *OTHERS]


if __name__ == "__main__":
    for script in dict.fromkeys(mutant.script for mutant in MUTANTS):
        print(f"{script}\n{header(script)}\n")
