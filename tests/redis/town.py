"""A shard with a mission in every place, and what may be damaged in it."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.redis.audit import faults, read
from tests.redis.scripts_client import FAR, New, Verbs

ROWS = ('{"row":1}',)


def town(verbs: Verbs) -> None:
    """A mission in every place, and some of everything that hangs on one."""
    verbs.accept(
        New("leased", target="a:lamp"),
        New("waiter", target="a:lamp"),
        New("second", target="a:lamp"),
        New("kept", target="a:fan"),
        New("behind", target="a:fan"),
        New("asleep"),
        New("paused"),
        New("held-up", target="a:door"),
        New("ended"),
        New("dead"),
        New("wish", latest="a:lamp:power"),
        New("over", latest="a:fan:power"),
        New("elsewhere", "u"),
    )
    taken = verbs.take(slots=50)
    assert verbs.permit("w1", "leased", taken["leased"].fence, dep=1) == "OK"
    verbs.event("leased", "e1")
    verbs.commit(
        "w1",
        taken["kept"].write("wait", wake_at=FAR, waiting_for="retry"),
        taken["asleep"].write("leave", wake_at=FAR, waiting_for="timer"),
        taken["paused"].write("pause"),
        taken["held-up"].write("leave", waiting_for="event"),
        taken["ended"].write("end", rows=ROWS),
        taken["over"].write("end"),
        taken["dead"].write("bury", waiting_for="NEXT"),
    )
    verbs.accept(New("ready"), New("early", target="a:shed"), New("other", lane="normal:default:b"))
    assert faults(read(verbs.redis)) == []


@dataclass(frozen=True)
class Damage:
    """What is done to the shard, and the repair that has to name it."""

    index: str
    task_id: str
    do: Callable[[Verbs], object]


def _zrem(index: str, member: str) -> Callable[[Verbs], object]:
    return lambda verbs: verbs.redis.zrem(verbs.key(index), member)


def _srem(index: str, member: str) -> Callable[[Verbs], object]:
    return lambda verbs: verbs.redis.srem(verbs.key(index), member)


def _zadd(index: str, member: str, score: float = 1) -> Callable[[Verbs], object]:
    return lambda verbs: verbs.redis.zadd(verbs.key(index), {member: score})


def _sadd(index: str, member: str) -> Callable[[Verbs], object]:
    return lambda verbs: verbs.redis.sadd(verbs.key(index), member)


def _delete(key: str) -> Callable[[Verbs], object]:
    return lambda verbs: verbs.redis.delete(verbs.key(key))


def _hset(key: str, field: str, value: str) -> Callable[[Verbs], object]:
    return lambda verbs: verbs.redis.hset(verbs.key(key), field, value)


LOST = {
    "lane": Damage("lane:normal:default:a", "ready", _zrem("lane:normal:default:a", "ready")),
    "order": Damage("lane:normal:default:a", "ready", _zadd("lane:normal:default:a", "ready", 4711)),
    "ring": Damage("lane:normal:default:b", "other", _delete("ring:normal:default")),
    "timer": Damage("timers", "kept", _zrem("timers", "kept")),
    "wake": Damage("timers", "kept", _zadd("timers", "kept", 4711)),
    "waiters": Damage("waiters:a:lamp", "waiter", _zrem("waiters:a:lamp", "waiter")),
    "parked": Damage("parked:u@1", "elsewhere", _delete("parked:u@1")),
    "parked_types": Damage("parked_types", "elsewhere", _srem("parked_types", "u@1")),
    "paused": Damage("paused", "paused", _zrem("paused", "paused")),
    "held": Damage("held:w1", "leased", _srem("held:w1", "leased")),
    "signals": Damage("signals:w1", "leased", _srem("signals:w1", "leased")),
    "owner": Damage("owners", "w1", _zrem("owners", "w1")),
    "permit": Damage("permits:dep", "leased", _delete("permits:dep")),
    "deadline": Damage("deadlines", "asleep", _zrem("deadlines", "asleep")),
    "deadline of a paused one": Damage("deadlines", "paused", _zrem("deadlines", "paused")),
    "retire": Damage("retire", "ended", _zrem("retire", "ended")),
    "outbox": Damage("outboxes", "ended", _delete("outboxes")),
    "hold of a leased one": Damage("target:a:lamp", "leased", _delete("target:a:lamp")),
    "hold of a ready one": Damage("target:a:shed", "early", _delete("target:a:shed")),
}
"""What an index has lost."""


STRANGE = {
    "lane of what is leased": ("lane:normal:default:a", "leased", _zadd("lane:normal:default:a", "leased")),
    "lane of what is gone": ("lane:normal:default:a", "gone", _zadd("lane:normal:default:a", "gone")),
    "another lane": ("lane:bulk:default:a", "ready", _zadd("lane:bulk:default:a", "ready")),
    "timer of what is gone": ("timers", "gone", _zadd("timers", "gone", FAR)),
    "timer of what is ready": ("timers", "ready", _zadd("timers", "ready", FAR)),
    "timer of what waits for an event": ("timers", "held-up", _zadd("timers", "held-up", FAR)),
    "deadline of what is gone": ("deadlines", "gone", _zadd("deadlines", "gone", FAR)),
    "deadline of what has ended": ("deadlines", "ended", _zadd("deadlines", "ended", FAR)),
    "retire of what runs": ("retire", "ready", _zadd("retire", "ready", FAR)),
    "waiters of what is ready": ("waiters:a:lamp", "ready", _zadd("waiters:a:lamp", "ready")),
    "waiters of another target": ("waiters:a:fan", "waiter", _zadd("waiters:a:fan", "waiter")),
    "parked of what is ready": ("parked:t@1", "ready", _zadd("parked:t@1", "ready")),
    "parked of another type": ("parked:v@1", "elsewhere", _zadd("parked:v@1", "elsewhere")),
    "paused of what is ready": ("paused", "ready", _zadd("paused", "ready")),
    "dead letter of what runs": ("dead_letters", "ready", _zadd("dead_letters", "ready")),
    "dead letter of what did well": ("dead_letters", "ended", _zadd("dead_letters", "ended")),
    "intent of what is gone": ("intents:a:lamp:power", "gone", _zadd("intents:a:lamp:power", "gone", 9e15)),
    "intent of what wants nothing": ("intents:a:lamp:power", "ready", _zadd("intents:a:lamp:power", "ready", 9e15)),
    "intent that never acted": ("intents:a:fan:power", "over", _zadd("intents:a:fan:power", "over", 1)),
    "held of what is ready": ("held:w1", "ready", _sadd("held:w1", "ready")),
    "held of another owner": ("held:w9", "leased", _sadd("held:w9", "leased")),
    "signals of what has read all": ("signals:w1", "wish", _sadd("signals:w1", "wish")),
    "outbox of what has no rows": ("outboxes", "dead", _zadd("outboxes", "dead")),
    "permit of what is gone": ("permits:dep", "gone", _hset("permits:dep", "gone", "1")),
    "permit of an old lease": ("permits:x", "leased", _hset("permits:x", "leased", "999")),
    "queue of what is gone": ("permit_queue:dep", "gone", _zadd("permit_queue:dep", "gone")),
}
"""What an index has and should not."""
