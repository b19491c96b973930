"""Why a mission is where it is: one sentence for somebody who was woken by it. Pure.

It says what the mission waits for, held by whom, until when, and what is left of its deadline.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from frontend_loop.naming import counted, ordinal
from shared.shortened import shortened
from shared.status import Reason, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """All that the sentence is made of. Times are epoch ms by Redis' clock, `now` among them; None: unknown, or none.

    Args:
        place: where the record says the mission stands (P1).
        entered_at: when it came into its present state.
        paused_by, paused_for: who said pause, and why. pause_limit: ms that a pause may outlast the deadline.
        park_limit: ms that it stays parked. known: a live worker knows its type. future: workers know the type in
            another version only.
        kept_until: of a dead letter, when it is removed; None: it is none.
        ahead: how many stand before it: in its lane, among the waiters of its target, or for its permit.
        workers: live leases on its shard. unserved: its pool, where none of them serves it.
        base: its own priority, while those behind it lend it the one of its lane.
        tries: what its state allows.
        children: of how many children the end is waited for, and how many they are in all.
        trouble: what went wrong the last time. begun: a worker took it. asked_by, asked_for: who cancelled it, and why.
        blocked: what keeps a permit from it.
        aspect, newer: of what it sets on its target, and how many newer commands set it too.
        entries: what the unread entries of its inbox are, oldest first.
        undone, left: states that have been undone, and that are still to be, the present one first.
        ending: the end that comes when all is undone, or would have come. amid: it was given up amid its undos.
        progress: how far it says it is, or had come.
    """

    now: int
    place: str
    status: str
    state: str
    kind: str
    task_id: str = "ID"
    entered_at: int | None = None
    ready_at: int | None = None
    wake_at: int | None = None
    parked_at: int | None = None
    paused_at: int | None = None
    deadline: int | None = None
    finished_at: int | None = None
    kept_until: int | None = None
    pause_limit: int = 0
    park_limit: int = 0
    paused_by: str | None = None
    paused_for: str | None = None
    asked_by: str | None = None
    asked_for: str | None = None
    waiting_for: str | None = None
    awaited: str | None = None
    children: tuple[int, int] | None = None
    blocked: str | None = None
    attempt: int = 1
    tries: int | None = None
    run: int = 1
    deaths: int = 0
    solo_deaths: int = 0
    unread: int = 0
    entries: tuple[str, ...] = ()
    owner: str | None = None
    lease_ends_at: int | None = None
    workers: int = 0
    unserved: str | None = None
    known: bool = False
    future: bool = False
    lane: str = "normal"
    base: str | None = None
    ahead: int | None = None
    target: str | None = None
    holder: str | None = None
    holds: bool = False
    aspect: str | None = None
    newer: int = 0
    trouble: str | None = None
    reason: str | None = None
    begun: bool = False
    undone: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    ending: str | None = None
    amid: bool = False
    progress: str | None = None


def why(mission: Standing) -> str:
    """The sentence."""
    told = "; ".join(part for part in _PLACES.get(mission.place, _elsewhere)(mission) if part)
    return told if told.endswith("?") else f"{told}."


def _lane(m: Standing) -> list[str]:
    head = f"{_where(m)}: ready{_since(m, m.ready_at)}, "
    if not m.workers:
        return [head + f"but {NO_WORKER}", *_burden(m), _deadline(m)]
    if m.unserved is not None:
        remedy = f"start one with {m.unserved} in its DUALLOOP_POOLS, or with none"
        return [f"{head}but no live worker serves its pool {m.unserved}", remedy, *_burden(m), _deadline(m)]
    queue = f"; {counted(m.ahead, 'mission')} in front of it in the {m.lane} lane" if m.ahead else ""
    return [f"{head}waits for a free worker{queue}", _lent(m), *_burden(m), _deadline(m)]


def _leased(m: Standing) -> list[str]:
    if m.owner is not None and m.owner.startswith(ALONE):
        since = f"since {counted(m.deaths, 'worker')} died" if m.deaths else "since workers died again and again"
        worker = f"alone in a process of its own, {since} under it"
        died = f"{m.solo_deaths} of {SOLO_DEATHS} such processes died too" if m.solo_deaths else ""
        head = f"{_where(m)} {worker}{_attempt(m)}"
        return [head, died, _lease(m), *_burden(replace(m, deaths=0)), _deadline(m)]
    worker = f"on worker {m.owner[:8]}" if m.owner else "on a worker"
    head = f"{_where(m)} {worker}{_since(m, m.entered_at)}{_attempt(m)}"
    return [head, _lease(m), _lent(m), *_burden(m), _deadline(m)]


def _lease(m: Standing) -> str:
    left = None if m.lease_ends_at is None else m.lease_ends_at - m.now
    if left is not None and left > 0:
        return f"its lease ends in {lasting(left)} unless the worker renews it"
    lapsed = "that worker is gone" if left is None else f"that worker's lease ran out {lasting(-left)} ago"
    return f"{lapsed}, " + ("another one takes over soon" if m.workers else f"and {NO_WORKER}")


def _waiting(m: Standing) -> list[str]:
    trouble = f"what went wrong: {one_line(m.trouble)}" if m.waiting_for == "retry" and m.trouble else ""
    held = f"it keeps {_target(m)} meanwhile" if m.holds else ""
    head = f"{_where(m)} for {_awaited(m)}{_until(m)}"
    return [head, _blocked(m), _late(m), trouble, held, _lent(m) if m.holds else "", *_burden(m), _deadline(m)]


def _awaited(m: Standing) -> str:
    names = {
        "retry": f"its retry{_attempt(m)}",
        "timer": "its timer",
        "event": f"the event {m.awaited or 'it asked for'}",
        "children": _children(m),
        "permit": "a permit",
    }
    return names.get(m.waiting_for or "", m.waiting_for or "something that its record does not name")


def _children(m: Standing) -> str:
    if m.children is None:
        return "its child missions"
    left, all_ = m.children
    return f"{left} of {counted(all_, 'child', 'children')}"


def _until(m: Standing) -> str:
    if m.wake_at is None:
        return ", with no time limit but the deadline"
    if m.wake_at > m.now:
        early = m.deadline is not None and m.deadline < m.wake_at and m.ending is None  # no deadline ends undos
        sooner = ", but its deadline comes first" if early else ""
        return f" until {clock(m.wake_at, m.now)} (in {lasting(m.wake_at - m.now)}){sooner}"
    return f" until {clock(m.wake_at, m.now)}, which was {lasting(m.now - m.wake_at)} ago"


def _blocked(m: Standing) -> str:
    """Which permit, or which breaker; it asks again when it wakes."""
    if m.waiting_for != "permit" or not m.blocked:
        return ""
    if scope := _NO_PERMIT.fullmatch(m.blocked):
        queue = f", {counted(m.ahead, 'mission')} in front of it" if m.ahead else ""
        return f"all that {_scope(scope[1])} may have are taken{queue}; one that comes free wakes it earlier"
    if alone := _LEFT_ALONE.fullmatch(m.blocked):
        return f"{_BREAKERS.get(alone[2], f'{{0}} is left alone, {alone[2]}').format(alone[1])}; then it asks again"
    return one_line(m.blocked)


def _scope(scope: str) -> str:
    kind, _, name = scope.partition(":")
    dependency, _, target = name.partition(":")
    match kind:
        case "dep":
            return f"the dependency {dependency}" + (f" on {target.partition(':')[2] or target}" if target else "")
        case "type" | "tenant":
            return f"the {kind} {name}"
        case _:
            return scope


def _late(m: Standing) -> str:
    if m.wake_at is None or m.wake_at > m.now:
        return "" if m.workers else NO_WORKER
    return "a worker takes it at its next look" if m.workers else NO_WORKER


def _waiters(m: Standing) -> list[str]:
    by = f"held by {m.holder}" if m.holder else "which has just been let go"
    turn = "" if m.ahead is None else (f"{ordinal(m.ahead + 1)} in line" if m.ahead else "next in line")
    return [f"{_where(m)}: waits for {_target(m)}, {by}", turn, *_burden(m), _deadline(m)]


def _parked(m: Standing) -> list[str]:
    since = f" (parked since {clock(m.parked_at, m.now)})" if m.parked_at is not None else ""
    if m.known:
        return [
            f"{_where(m)}: a worker that knows {m.kind} has come{since}, and takes it soon",
            *_burden(m),
            _deadline(m),
        ]
    remedy = "start one that does"
    if m.parked_at is not None and m.park_limit:
        limit, code = m.parked_at + m.park_limit, "future_version" if m.future else "unknown_type"
        remedy += f", or it fails with {code} at {clock(limit, m.now)} (in {lasting(limit - m.now)})"
    return [f"{_where(m)}: no live worker knows {m.kind}{since}", remedy, *_burden(m), _deadline(m)]


def _paused(m: Standing) -> list[str]:
    head = f"{_where(m)}{_since(m, m.paused_at or m.entered_at)}: {_said(m.paused_by, 'said pause', m.paused_for)}"
    then = f"; it goes on waiting for {_awaited(m)}{_until(m)}" if m.waiting_for and m.wake_at else ""
    remedy = f"let it go on with: dualloop missions resume {m.task_id}{then}"
    return [head, remedy, *_burden(m), _outlasted(m)]


def _outlasted(m: Standing) -> str:
    """What a deadline does to a pause: it waits for the limit of pauses, and comes at once after a resume."""
    if m.deadline is None or m.paused_at is None:
        return _deadline(m)
    last = m.paused_at + m.pause_limit
    if last <= m.deadline:
        return _deadline(m)
    at = f"{clock(last, m.now)} (in {lasting(last - m.now)})"
    if m.deadline > m.now:
        return (
            f"{lasting(m.deadline - m.now)} of its deadline are left; while it is paused it ends no earlier than {at}"
        )
    passed = f"its deadline passed {lasting(m.now - m.deadline)} ago"
    return f"{passed}: it ends as soon as it is resumed, and in any case at {at}"


def _ended(m: Standing) -> list[str]:
    at = "" if m.finished_at is None else f" at {clock(m.finished_at, m.now)}"
    undone = f"undone: {', '.join(m.undone)}" if m.undone else ""
    match m.status:
        case Status.FAILED:
            trouble = one_line(m.trouble) or "its result, which said why, is no longer kept"
            left = f"not undone: {', '.join(m.left)}" if m.left else ""
            first = f"it was to end {one_line(m.ending)}" if m.ending else ""
            return [f"FAILED{at}: {trouble}", m.progress or "", first, undone, left, *_dead_letter(m)]
        case Status.CANCELLED:
            reason = _REASONS.get(m.reason or "", m.reason or "nobody kept why")
            if m.reason == Reason.EXPIRED and m.begun:
                reason = "what it waited for did not come in time"
            if m.reason == Reason.REQUESTED:
                reason = _said(_ASKERS.get(m.asked_by or "", m.asked_by), "asked for it", m.asked_for)
            return [f"CANCELLED{at}: {reason}", m.progress or "", undone]
        case status:
            return [f"{status}{at}"]


def _dead_letter(m: Standing) -> list[str]:
    if m.kept_until is None:
        return []
    kept = f"kept as a dead letter until {clock(m.kept_until, m.now)}"
    begin = " --from start" if m.undone and not m.amid else ""
    return [kept, f"run it again with: dualloop dead-letters replay {m.task_id}{begin}"]


def _elsewhere(m: Standing) -> list[str]:
    return [f"{_where(m)}: it stands in {m.place!r}, which this release does not know", _deadline(m)]


LONGEST: Final = 200
NO_WORKER: Final = "no worker is alive (start one: dualloop background)"
ALONE: Final = "solo-"
"""What the id of an owner begins with that carries nothing else (P8)."""
SOLO_DEATHS: Final = 3
"""After so many of them the mission is the one that kills."""

_NO_PERMIT: Final = re.compile(r"no permit of (\S+) is free.*", re.DOTALL)
_LEFT_ALONE: Final = re.compile(r"(\S+) is left alone: (\w+)")
_BREAKERS: Final = {
    "open": "the breaker of {0} is open",
    "retry_after": "{0} has asked to be left alone until then",
    "probing": "others are finding out whether {0} is back",
    "ramping": "{0} is let back in step by step",
    "retry_budget": "too many of the calls of {0} are retries already",
}

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
    "disconnected": "the socket that submitted it went away",
    "superseded": "a newer command replaced it",
    "expired": "its deadline came before a worker took it",
    "overridden": "a person changed by hand what it was to change",
}


_ASKERS: Final = {"parent": "its parent", "speaker": "the speaker"}


def _said(who: str | None, what: str, note: str | None) -> str:
    return f"{one_line(who) or 'somebody'} {what}" + (f" ({one_line(note)})" if note else "")


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


def _lent(m: Standing) -> str:
    """Priority inheritance (P10)."""
    if m.base is None:
        return ""
    return f"it goes before others as {m.lane}, which those lend it that wait for {_target(m)}; its own is {m.base}"


def _burden(m: Standing) -> list[str]:
    """How far it is, what is to be undone, what will end it, and what makes it suspect."""
    died = f"{counted(m.deaths, 'worker')} died under it" if m.deaths else ""
    names = f" ({', '.join(dict.fromkeys(m.entries))})" if m.entries else ""
    unread = f"{counted(m.unread, 'entry', 'entries')} of its inbox {'is' if m.unread == 1 else 'are'} unread{names}"
    newer = (
        f"a newer command sets the {m.aspect} of {_target(m)}, so it ends before it acts"
        if m.newer and m.aspect
        else ""
    )
    again = f"this is its run {m.run}" if m.run > 1 else ""
    return [m.progress or "", _undoing(m), newer, died, unread if m.unread else "", again]


def _undoing(m: Standing) -> str:
    if m.ending is None:
        return ""
    now, *later = m.left or ("nothing",)
    done = f"after {', '.join(m.undone)}" if m.undone else "first"
    rest = f", then {', '.join(later)}" if later else ""
    return f"it undoes {now} {done}{rest}, and ends {one_line(m.ending)}"


def _deadline(m: Standing) -> str:
    if m.deadline is None or m.ending is not None:  # no deadline ends undos
        return ""
    left = m.deadline - m.now
    if left > 0:
        return f"{lasting(left)} of its deadline are left"
    return f"its deadline passed {lasting(-left)} ago"


def one_line(text: str | None) -> str:
    """A message as part of a sentence: in one line, of a length that one reads; its full stop would be a second one."""
    return shortened(" ".join((text or "").split()).rstrip("."), LONGEST)


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
