"""Everything a shard holds, read back and held against the invariants of the protocol (P1, P3, P10, P18).

`faults` knows nothing of what a test did: it only asks whether records, indexes, logs, results and counts agree.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import redis

from shared import keys
from shared.status import Status

KINDS: Final = {
    "mission": "hash",
    "log": "list",
    "result": "string",
    "inbox": "list",
    "inbox_ids": "set",
    "outbox": "list",
    "outboxes": "zset",
    "dead_rows": "list",
    "lane": "zset",
    "ring": "zset",
    "timers": "zset",
    "deadlines": "zset",
    "attended": "zset",
    "retire": "zset",
    "target": "string",
    "waiters": "zset",
    "parked": "zset",
    "parked_types": "set",
    "parked_known": "hash",
    "paused": "zset",
    "dead_letters": "zset",
    "intents": "zset",
    "permits": "hash",
    "permit_queue": "zset",
    "breaker": "hash",
    "calls": "zset",
    "idem": "hash",
    "used": "string",
    "session": "hash",
    "heard": "hash",
    "heard_by": "string",
    "term": "hash",
    "terms": "hash",
    "recount": "hash",
    "schedules": "zset",
    "schedule_dues": "zset",
    "schedule": "hash",
    "home": "hash",
    "owners": "zset",
    "looks": "hash",
    "held": "set",
    "signals": "set",
    "audio": "string",
    "recordings": "zset",
    "recorded": "hash",
    "stream": "hash",
    "spoken": "list",
    "streams": "zset",
    "tick": "string",
    "order": "string",
    "fence": "string",
    "counts": "hash",
}
"""The table of `shared.keys`: the first word of each key, and its type."""

LASTING: Final = frozenset(
    {
        *("schedules", "schedule_dues", "schedule", "home"),
        *(
            "order",
            "fence",
            "tick",
            "owners",
            "parked_known",
            "idem",
            "used",
            "session",
            *("heard", "heard_by"),
            "breaker",
            "calls",
            "term",
            "terms",
            "recount",
            *("audio", "recordings", "recorded"),
            *("stream", "spoken", "streams"),
        ),
    }
)
"""What stays when every mission is gone: counters and clocks, the leases of live workers, and what is no mission's."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard's keys by first word, then by the rest of the name ("" for keys that are one word)."""

    keys: dict[str, dict[str, Any]]
    strays: list[str]

    def get(self, kind: str, rest: str = "") -> Any:
        """The value of a key; empty if it is not there."""
        return self.keys.get(kind, {}).get(rest, ())

    def all(self, kind: str) -> dict[str, Any]:
        """All keys that begin with this word."""
        return self.keys.get(kind, {})


def read(client: redis.Redis, shard: int = 0) -> Shard:
    """Read it all: for the few missions of a test."""
    prefix = keys.prefix(shard)
    raw_names: Any = client.keys(prefix.replace("{", "[{]").replace("}", "[}]") + "*")
    names = sorted(name.decode().removeprefix(prefix) for name in raw_names)
    known = [name for name in names if name.partition(":")[0] in KINDS]
    with client.pipeline(transaction=False) as pipe:
        for name in known:
            _ask(pipe, KINDS[name.partition(":")[0]], prefix + name)
        values = pipe.execute()
    found: dict[str, dict[str, Any]] = {}
    for name, value in zip(known, values, strict=True):
        kind, _, rest = name.partition(":")
        found.setdefault(kind, {})[rest] = _plain(value)
    return Shard(found, [name for name in names if name not in known])


def _ask(pipe: Any, kind: str, key: str) -> None:
    match kind:
        case "hash":
            pipe.hgetall(key)
        case "list":
            pipe.lrange(key, 0, -1)
        case "set":
            pipe.smembers(key)
        case "zset":
            pipe.zrange(key, 0, -1, withscores=True)
        case _:
            pipe.get(key)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {name.decode(): one.decode() for name, one in value.items()}
        case set():
            return {one.decode() for one in value}
        case list():
            return dict(
                (one[0].decode(), one[1]) if isinstance(one, tuple) else (n, one.decode())
                for n, one in enumerate(value)
            )
        case bytes():
            return value.decode()
    return value


def faults(shard: Shard) -> list[str]:
    """What is wrong, in sentences; empty: nothing."""
    found = [f"stray key {name}" for name in shard.strays]
    for task_id, record in shard.all("mission").items():
        for check in (_place, _priority, _hold, _inbox, _story, _status, _intent, _permits, _death):
            found += (f"{task_id}: {fault}" for fault in check(shard, task_id, record))
    for check_all in (_indexes, _targets, _rings, _orphans, _counts):
        found += check_all(shard)
    return found


def leftovers(shard: Shard) -> list[str]:
    """Keys that nobody owns once every mission is gone."""
    return [f"{kind}:{rest}" for kind, rests in shard.keys.items() if kind not in LASTING for rest in rests]


def _standing(shard: Shard, task_id: str) -> list[str]:
    """The indexes of places that name a mission."""
    found = [name for name in ("timers", "retire", "paused") if task_id in shard.get(name)]
    for kind in ("lane", "waiters", "parked", "held"):
        found += [f"{kind}:{rest}" for rest, members in shard.all(kind).items() if task_id in members]
    return found


def _place(shard: Shard, task_id: str, record: dict[str, str]) -> Iterator[str]:
    wanted = {
        "lane": [f"lane:{record['lane']}"],
        "leased": [f"held:{record.get('owner')}"],
        "waiting": ["timers"] if record.get("wake_at") else [],
        "waiters": [f"waiters:{record.get('target')}"],
        "parked": [f"parked:{record['type']}@{record['version']}"],
        "paused": ["paused"],
        "ended": ["retire"],
    }.get(record["place"])
    standing = _standing(shard, task_id)
    if wanted is None or standing != wanted:
        yield f"place {record['place']}, but it stands in {standing}"
    if record["place"] == "leased" and record.get("owner") not in shard.get("owners"):
        yield f"leased to {record.get('owner')}, who has no lease"
    if record["place"] == "lane" and shard.get("lane", record["lane"]).get(task_id) != float(record["order"]):
        yield "its lane has it under another order number"
    if record["place"] == "waiting" and record.get("wake_at"):
        due = shard.get("timers").get(task_id) if shard.get("timers") else None
        if due != float(record["wake_at"]):
            yield f"wakes at {due}, the record says {record['wake_at']}"

    if record["place"] == "paused" and shard.get("paused").get(task_id) != float(record.get("paused_at", 0)):
        yield "paused since when?"
    for name in ("paused_at", "was"):
        if name in record and record["place"] != "paused":
            yield f"{name} of one that is not paused"


RANK: Final = {"urgent": 0, "normal": 1, "bulk": 2}


def _priority(shard: Shard, task_id: str, record: dict[str, str]) -> Iterator[str]:
    """P10: a holder is as urgent as who waits behind it, until it gives the hold up; nobody else is raised."""
    stands = record["lane"].partition(":")[0]
    holds = "target" in record and shard.get("target", record["target"]) == task_id
    if "base" in record and RANK[record["base"]] <= RANK[stands]:
        yield f"raised from {record['base']} to {stands}"
    if "base" in record and not holds and record["place"] != "ended":
        yield "raised, and holds no target"
    if holds:
        behind = [shard.get("mission", one)["lane"].partition(":")[0] for one in shard.get("waiters", record["target"])]
        if any(RANK[one] < RANK[stands] for one in behind):
            yield f"holds its target as {stands}, behind it wait {behind}"


def _hold(shard: Shard, task_id: str, record: dict[str, str]) -> Iterator[str]:
    holder = shard.get("target", record["target"]) if "target" in record else None
    if "target" in record and record["place"] in ("lane", "leased") and holder != task_id:
        yield f"in {record['place']} without its target, which {holder or 'nobody'} holds"
    if holder == task_id and record["place"] not in ("lane", "leased", "waiting"):
        yield f"holds its target in {record['place']}"


def _inbox(shard: Shard, task_id: str, record: dict[str, str]) -> Iterator[str]:
    unread, ids = len(shard.get("inbox", task_id)), shard.get("inbox_ids", task_id)
    if unread != int(record.get("unread", 0)):
        yield f"{unread} entries in the inbox, the record says {record.get('unread', 0)}"
    if unread > len(ids):
        yield f"{unread} entries unread, only {len(ids)} ids seen"
    if record["place"] == "waiting" and unread:
        yield "sleeps through unread entries"
    if record["place"] == "ended" and (unread or ids):
        yield "an inbox after the end"
    told = task_id in shard.get("signals", record.get("owner", ""))
    if record["place"] == "leased" and bool(unread) != told:
        yield f"{unread} entries unread, named by its owner's signals: {told}"
    if (
        record["place"] != "ended"
        and task_id not in shard.get("deadlines")
        and not any(one.startswith("deadline:") for one in ids)
    ):
        yield "no deadline, and none was posted"
    if record["place"] == "ended" and task_id in shard.get("deadlines"):
        yield "a deadline after the end"


def _story(shard: Shard, task_id: str, record: dict[str, str]) -> Iterator[str]:
    log = [json.loads(one) for one in dict(shard.get("log", task_id)).values()]
    seqs = [one["seq"] for one in log]
    if seqs != list(range(1, len(log) + 1)) or len(log) != int(record.get("seq", 0)):
        yield f"the log has {seqs}, the record says seq {record.get('seq', 0)}"
    result = shard.get("result", task_id)
    if bool(result) != (record["place"] == "ended"):
        yield f"place {record['place']}, result {result!r}"
    if result and json.loads(result)["seq"] != len(log):
        yield f"the result has seq {json.loads(result)['seq']}, the log {len(log)}"


def _status(_: Shard, task_id: str, record: dict[str, str]) -> Iterator[str]:  # noqa: ARG001  one shape for all checks
    status, place = Status(record["status"]), record["place"]
    if place == "ended":
        fits = status.terminal
    elif place == "paused":
        fits = status is Status.PAUSED and record.get("was", "COMPENSATING") == "COMPENSATING"
    elif status is Status.COMPENSATING:
        fits = record.get("rev", "0") != "0"
    elif place == "leased":
        fits = status is Status.RUNNING
    else:
        fits = status is (Status.PENDING if record.get("rev", "0") == "0" else Status.WAITING)
    if not fits:
        yield f"status {status} in {place} at rev {record.get('rev', 0)}"


def _intent(shard: Shard, task_id: str, record: dict[str, str]) -> Iterator[str]:
    """P11: who wants something stands among the intents; when it has ended, only if it acted, as the last that did."""
    if "latest" not in record:
        return
    intents = dict(shard.get("intents", record["latest"]))
    if task_id in intents and f"{intents[task_id]:.0f}" != record["intent"]:
        yield f"its intent is {record['intent']}, the index has {intents[task_id]:.0f}"
    if record["place"] == "ended" and task_id in intents:
        if record.get("acted") != "1":
            yield "an intent that never acted outlives its mission"
        if any(score < intents[task_id] for score in intents.values()):
            yield "it ended after it acted, and older intents are there still"


def _permits(shard: Shard, task_id: str, record: dict[str, str]) -> Iterator[str]:
    """P12: a permit belongs to a mission under a lease."""
    named = record.get("permits", "").split()
    if named and record["place"] != "leased":
        yield f"holds permits {named} in {record['place']}"
    for scope, held in shard.all("permits").items():
        if (task_id in held) != (scope in named):
            yield f"permit {scope}: the record says {named}, the index {held}"
        elif task_id in held and held[task_id] != record["fence"]:
            yield f"permit {scope} of fence {held[task_id]}, the lease has {record['fence']}"
    if missing := set(named) - set(shard.all("permits")):
        yield f"permits that no index knows: {missing}"


def _death(shard: Shard, task_id: str, record: dict[str, str]) -> Iterator[str]:
    """P18: a dead letter is an ended mission that failed, and keeps its record longer."""
    dead = task_id in shard.get("dead_letters")
    if dead and (record["place"], record["status"]) != ("ended", "FAILED"):
        yield f"a dead letter in {record['place']}, {record['status']}"
    if dead and not record.get("failed_in"):
        yield "a dead letter that failed nowhere"
    if "failed_in" in record and record["place"] != "ended":
        yield f"failed in {record['failed_in']}, and runs"


def _indexes(shard: Shard) -> Iterator[str]:
    """Nothing stands in an index without a record."""
    kinds = ("timers", "deadlines", "retire", "lane", "waiters", "parked", "held", "outboxes")
    for kind in (*kinds, "paused", "dead_letters", "intents", "permits"):
        for rest, members in shard.all(kind).items():
            yield from (
                f"{kind}:{rest} names {one}, which is gone" for one in members if one not in shard.all("mission")
            )


def _targets(shard: Shard) -> Iterator[str]:
    for target, holder in shard.all("target").items():
        record = shard.get("mission", holder)
        if not record or record.get("target") != target:
            yield f"target {target} is held by {holder}, who is no mission on it"
    for target in shard.all("waiters"):
        if not shard.get("target", target):
            yield f"waiters for {target}, which nobody holds"


def _rings(shard: Shard) -> Iterator[str]:
    for lane in shard.all("lane"):
        priority, pool, tenant = lane.split(":", 2)
        if tenant not in shard.get("ring", f"{priority}:{pool}"):
            yield f"lane {lane} is not empty, and its tenant is not in the ring"
    for kind in shard.all("parked"):
        if kind not in shard.get("parked_types"):
            yield f"parked {kind}, which no worker is told of"


def _orphans(shard: Shard) -> Iterator[str]:
    for kind in ("log", "inbox", "inbox_ids", "outbox", "dead_rows"):
        yield from (f"{kind}:{one} without a record" for one in shard.all(kind) if one not in shard.all("mission"))
    for kind in ("held", "signals"):
        yield from (f"{kind}:{one} without a lease" for one in shard.all(kind) if one not in shard.get("owners"))
    for owner, named in shard.all("signals").items():
        lost = dict(shard.get("owners")).get(owner) == 0
        for one in named:
            if not lost and one not in shard.get("held", owner):
                yield f"signals of {owner} name {one}, which it does not lease"
    if set(shard.all("outbox")) != set(shard.get("outboxes")):
        yield f"rows of {set(shard.all('outbox'))}, index {set(shard.get('outboxes'))}"


def _counts(shard: Shard) -> Iterator[str]:
    told = {name: int(n) for name, n in dict(shard.get("counts")).items()}
    real = Counter(f"{m['type']}|{m['status']}|{m['state']}" for m in shard.all("mission").values())
    if told != real:
        yield f"counts say {told}, a recount {dict(real)}"
