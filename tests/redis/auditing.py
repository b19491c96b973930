"""A whole audit of a shard in blocking calls: what its leader does in many steps, done at once.

`undisturbed` is for whoever has a shard that agrees with itself, and wants to know that the audit leaves it alone.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from tests.redis.audit import read
from tests.redis.scripts_client import HOUR_MS, Verbs

WALKED: Final = (
    *("lane", "timers", "deadlines", "retire", "waiters", "parked", "paused", "dead_letters", "intents"),
    *("held", "signals", "outboxes", "permits", "permit_queue", "target"),
)
BATCH: Final = 50


class Repair(NamedTuple):
    """What was found, and what was done about it."""

    where: str
    task_id: str
    done: str


class Answer(NamedTuple):
    """Of one call; `fenced`: the term of a later leader."""

    repairs: list[Repair]
    more: list[str]
    fenced: int | None = None


def call(verbs: Verbs, what: str, *args: str, term: int = 1) -> Answer:
    """One call of the script."""
    word, *rest = verbs.run("audit", term, HOUR_MS, what, *args)
    if word == b"FENCED":
        return Answer([], [], rest[0])
    texts = [one.decode() for one in rest[0]]
    repairs = [Repair(*texts[n : n + 3]) for n in range(0, len(texts), 3)]
    return Answer(repairs, [one.decode() for one in rest[1]])


def records(verbs: Verbs, *task_ids: str, term: int = 1) -> list[Repair]:
    """Look at these missions; all that there are, if none is named."""
    found = task_ids or tuple(read(verbs.redis, verbs.shard).all("mission"))
    return [one for part in _parts(found) for one in call(verbs, "records", *part, term=term).repairs]


def indexes(verbs: Verbs, *, term: int = 1) -> list[Repair]:
    """Look at all that is in an index."""
    shard, repairs = read(verbs.redis, verbs.shard), list[Repair]()
    for kind in WALKED:
        for rest, members in shard.all(kind).items():
            name = f"{kind}:{rest}" if rest else kind
            index, found = ("target", [rest]) if kind == "target" else (name, list(members))
            for part in _parts(found):
                repairs += call(verbs, "index", index, *part, term=term).repairs
    return repairs


def recount(verbs: Verbs, *, term: int = 1) -> list[Repair]:
    """Count everything again."""
    shard = read(verbs.redis, verbs.shard)
    real = Counter(f"{m['type']}|{m['status']}|{m['state']}" for m in shard.all("mission").values())
    kinds = {*real, *dict(shard.get("counts"))}
    call(verbs, "mark", *kinds, term=term)
    pairs = (part for kind in kinds for part in (kind, str(real[kind])))
    return call(verbs, "counted", *pairs, term=term).repairs


def audit(verbs: Verbs) -> list[Repair]:
    """Everything; the repairs."""
    return records(verbs) + indexes(verbs) + recount(verbs)


def undisturbed(verbs: Verbs) -> None:
    """Fail if an audit finds or changes anything on this shard."""
    before = read(verbs.redis, verbs.shard)
    assert audit(verbs) == []
    after = read(verbs.redis, verbs.shard)
    after.keys.pop("terms", None)
    before.keys.pop("terms", None)
    assert after == before, "an audit that finds nothing changes nothing"


def _parts(found: Iterable[str]) -> Iterable[list[str]]:
    every = list(found)
    return [every[n : n + BATCH] for n in range(0, len(every), BATCH)]
