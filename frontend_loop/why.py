"""Why a mission is where it is: one sentence for somebody who was woken by it. Pure.

It says what the mission waits for, held by whom, until when, and what is left of its deadline.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from shared.status import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """All that the sentence is made of. Times are epoch ms by Redis' clock, `now` among them; None: unknown, or none.

    Args:
        place: where the record says the mission stands (P1).
        entered_at: when it came into its present state.
        ahead: how many stand before it, in its lane or among the waiters of its target.
        workers: live leases on its shard.
        tries: what its state allows.
        trouble: what went wrong the last time.
    """

    now: int
    place: str
    status: str
    state: str
    kind: str
    entered_at: int | None = None
    ready_at: int | None = None
    wake_at: int | None = None
    parked_at: int | None = None
    deadline: int | None = None
    finished_at: int | None = None
    waiting_for: str | None = None
    awaited: str | None = None
    attempt: int = 1
    tries: int | None = None
    deaths: int = 0
    unread: int = 0
    owner: str | None = None
    lease_ends_at: int | None = None
    workers: int = 0
    lane: str = "normal"
    ahead: int | None = None
    target: str | None = None
    holder: str | None = None
    holds: bool = False
    trouble: str | None = None
    reason: str | None = None


def why(mission: Standing) -> str:
    """The sentence."""
    told = _PLACES.get(mission.place, _elsewhere)(mission)
    return "; ".join(part for part in told if part) + "."


def _lane(m: Standing) -> list[str]:
    head = f"{_where(m)}: ready{_since(m, m.ready_at)}, "
    if not m.workers:
        return [head + f"but {NO_WORKER}", *_burden(m), _deadline(m)]
    queue = f"; {_count(m.ahead, 'mission')} in front of it in the {m.lane} lane" if m.ahead else ""
    return [f"{head}waits for a free worker{queue}", *_burden(m), _deadline(m)]


def _leased(m: Standing) -> list[str]:
    worker = f"on worker {m.owner[:8]}" if m.owner else "on a worker"
    head = f"{_where(m)} {worker}{_since(m, m.entered_at)}{_attempt(m)}"
    return [head, _lease(m), *_burden(m), _deadline(m)]


def _lease(m: Standing) -> str:
    left = None if m.lease_ends_at is None else m.lease_ends_at - m.now
    if left is not None and left > 0:
        return f"its lease ends in {lasting(left)} unless the worker renews it"
    lapsed = "that worker is gone" if left is None else f"that worker's lease ran out {lasting(-left)} ago"
    return f"{lapsed}, " + ("another one takes over soon" if m.workers else f"and {NO_WORKER}")


def _waiting(m: Standing) -> list[str]:
    names = {
        "retry": f"its retry{_attempt(m)}",
        "timer": "its timer",
        "event": f"the event {m.awaited or 'it asked for'}",
        "children": "its child missions",
        "permit": "a permit",
    }
    what = names.get(m.waiting_for or "", m.waiting_for or "something that its record does not name")
    trouble = f"what went wrong: {_short(m.trouble)}" if m.waiting_for == "retry" and m.trouble else ""
    held = f"it keeps {_target(m)} meanwhile" if m.holds else ""
    return [f"{_where(m)} for {what}{_until(m)}", _late(m), trouble, held, *_burden(m), _deadline(m)]


def _until(m: Standing) -> str:
    if m.wake_at is None:
        return ", with no time limit but the deadline"
    if m.wake_at > m.now:
        return f" until {clock(m.wake_at, m.now)} (in {lasting(m.wake_at - m.now)})"
    return f" until {clock(m.wake_at, m.now)}, which was {lasting(m.now - m.wake_at)} ago"


def _late(m: Standing) -> str:
    if m.wake_at is None or m.wake_at > m.now:
        return "" if m.workers else NO_WORKER
    return "a worker takes it at its next look" if m.workers else NO_WORKER


def _waiters(m: Standing) -> list[str]:
    by = f"held by {m.holder}" if m.holder else "which has just been let go"
    turn = "" if m.ahead is None else (f"{_ordinal(m.ahead + 1)} in line" if m.ahead else "next in line")
    return [f"{_where(m)}: waits for {_target(m)}, {by}", turn, *_burden(m), _deadline(m)]


def _parked(m: Standing) -> list[str]:
    since = f" (parked since {clock(m.parked_at, m.now)})" if m.parked_at is not None else ""
    return [f"{_where(m)}: no live worker knows {m.kind}{since}", "start one that does", *_burden(m), _deadline(m)]


def _paused(m: Standing) -> list[str]:
    return [f"{_where(m)}{_since(m, m.entered_at)}: somebody said pause", "resume lets it go on", _deadline(m)]


def _ended(m: Standing) -> list[str]:
    at = "" if m.finished_at is None else f" at {clock(m.finished_at, m.now)}"
    match m.status:
        case Status.FAILED:
            return [f"FAILED{at}: {_short(m.trouble) or 'its result, which said why, is no longer kept'}"]
        case Status.CANCELLED:
            return [f"CANCELLED{at}: {_REASONS.get(m.reason or '', m.reason or 'nobody kept why')}"]
        case status:
            return [f"{status}{at}"]


def _elsewhere(m: Standing) -> list[str]:
    return [f"{_where(m)}: it stands in {m.place!r}, which this release does not know", _deadline(m)]


LONGEST: Final = 200
NO_WORKER: Final = "no worker is alive (start one: dualloop background)"

_PLACES: Final[Mapping[str, Callable[[Standing], list[str]]]] = {
    "lane": _lane,
    "leased": _leased,
    "waiting": _waiting,
    "waiters": _waiters,
    "parked": _parked,
    "paused": _paused,
    "ended": _ended,
}

_REASONS: Final = {
    "requested": "somebody asked for it",
    "disconnected": "the socket that submitted it went away",
    "superseded": "a newer command replaced it",
    "expired": "its deadline came before a worker took it",
    "overridden": "a person changed by hand what it was to change",
}


def _where(m: Standing) -> str:
    """PENDING has not come to a state yet."""
    return m.status if m.status == Status.PENDING else f"{m.status} in {m.state}"


def _target(m: Standing) -> str:
    return "its target" if m.target is None else f"the target {m.target}"


def _since(m: Standing, at: int | None) -> str:
    return "" if at is None else f" for {lasting(m.now - at)}"


def _attempt(m: Standing) -> str:
    """Worth a word from the second try on."""
    if m.attempt < 2:
        return ""
    return f" (attempt {m.attempt} of {m.tries})" if m.tries else f" (attempt {m.attempt})"


def _burden(m: Standing) -> list[str]:
    """What makes a mission suspect."""
    died = f"{_count(m.deaths, 'worker')} died under it" if m.deaths else ""
    unread = f"{_count(m.unread, 'entry', 'entries')} of its inbox {'is' if m.unread == 1 else 'are'} unread"
    return [died, unread if m.unread else ""]


def _deadline(m: Standing) -> str:
    if m.deadline is None:
        return ""
    left = m.deadline - m.now
    if left > 0:
        return f"{lasting(left)} of its deadline are left"
    return f"its deadline passed {lasting(-left)} ago"


def _short(text: str | None) -> str:
    """One line of a message, of a length that one reads; its full stop would be a second one."""
    line = " ".join((text or "").split()).rstrip(".")
    return line if len(line) <= LONGEST else line[:LONGEST] + "…"


def _count(number: int | None, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def lasting(ms: int) -> str:
    """A time span as one would say it: ``420 ms``, ``4.2 s``, ``42 s``, ``2 min 10 s``, ``3 h 5 min``, ``4 d 2 h``."""
    ms = max(0, ms)
    if ms < 1000:
        return f"{ms} ms"
    if ms < 10_000:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    spans = ((days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s"))
    first = next(place for place, (number, _) in enumerate(spans) if number)
    return " ".join(f"{number} {unit}" for number, unit in spans[first : first + 2] if number)


def clock(ms: int, now: int) -> str:
    """A point in time, UTC; with its date where that is not today's."""
    at, today = datetime.fromtimestamp(ms / 1000, UTC), datetime.fromtimestamp(now / 1000, UTC)
    date = "" if at.date() == today.date() else f"{at:%Y-%m-%d} "
    return f"{date}{at:%H:%M:%S}.{ms % 1000:03d} UTC"
