"""Children of a mission: who was spawned, who lives, when a wait for them is over. Pure, a part of the machine.

A child is noted in its parent's course before its outbox row is written. It is *held* there while the bound leaves no
room, *live* once its row went out with a commit, and *ended* once its end was heard of. A wait covers what no earlier
wait has taken; what it takes when it is over counts no more for the next one, so that "any" in a loop is one by one.
"""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from shared.shortened import shortened
from shared.status import Status

MOST: Final = 2_000
"""Children of one mission: all of them stand in its document. Who wants more spawns missions that spawn."""

ROOM: Final = 512 * 1024
"""Bytes of results and errors that a parent keeps of all its children; what comes later is read where any result is."""

TOLD_OF_ERROR: Final = 500
"""Characters of the message of an error that is too large for a parent."""

WANTED, TOLD = 1, 2

_ID, _SIZE, _STATUS = attrgetter("task_id"), attrgetter("size"), attrgetter("status")


class Child(NamedTuple):
    """One child, as its parent knows it.

    Attributes:
        state, visit, n: where it was spawned, and as which one there: its key within its parent.
        run: of the parent, in which it was spawned.
        spec: what its outbox row will be made of, while it is held; None: the row went out.
        status: its end; None: it lives, as far as its parent has heard.
        taken: a wait that is over covered it.
        cancel: 0; 1: its parent wants its end; 2: that was written.
        old: of a run before this one: not to be seen, but met again by who spawns the same once more.
        size: bytes of its result and error, if those are kept.
        freshness: of the observation behind its result.
    """

    task_id: str
    type: str
    name: str | None
    state: str
    visit: int
    n: int
    run: int = 1
    spec: Mapping[str, Any] | None = None
    status: str | None = None
    result: Any = None
    error: Mapping[str, Any] | None = None
    reason: str | None = None
    taken: bool = False
    cancel: int = 0
    old: bool = False
    size: int = 0
    freshness: Mapping[str, Any] | None = None

    @property
    def live(self) -> bool:
        """It was begun, and has not ended as far as its parent knows."""
        return self.status is None and self.spec is None

    @property
    def succeeded(self) -> bool:
        """It ended as it was to."""
        return self.status == Status.SUCCEEDED


class Join(NamedTuple):
    """What a mission that waits for its children waits for.

    Attributes:
        want: so many are to succeed; None: all; 0: nobody is to live any more, whose end was wanted before included.
        fail: it fails once so many cannot succeed any more; else it goes on when nobody is left to wait for.
        event: taken when it is over; None: the handler is called again.
    """

    want: int | None = None
    fail: bool = True
    event: str | None = None


Children = tuple[Child, ...]


def added(known: Children, spawned: Children) -> Children:
    """With those that were spawned; one that an earlier run saw succeed stands for its like."""
    met = {one.task_id for one in spawned}
    return (*(one for one in known if one.task_id not in met), *spawned)


def ended(known: Children, end: Child) -> tuple[Children, Child] | None:
    """With this one's end noted, and the one; None: no live child of this run."""
    place = next((n for n, task_id in enumerate(map(_ID, known)) if task_id == end.task_id), None)
    if place is None or not (one := known[place]).live or one.run != end.run:
        return None
    noted = one._replace(status=end.status, reason=end.reason, freshness=end.freshness)
    size = end.size + (0 if end.error is None else len(to_json(end.error)))
    if sum(map(_SIZE, known)) + size <= ROOM:
        noted = noted._replace(result=end.result, error=end.error, size=size)
    elif end.error is not None:
        noted = noted._replace(error={"code": end.error.get("code")})
    return (*known[:place], noted, *known[place + 1 :]), noted


def brief(error: Mapping[str, Any]) -> dict[str, Any]:
    """An error of a child that is too large for its parent: what it is, and how its message begins."""
    kept = {name: error[name] for name in ("code", "state", "attempts") if name in error}
    return kept | {"message": shortened(str(error.get("message")), TOLD_OF_ERROR)}


def covered(known: Children, join: Join | None = None) -> list[Child]:
    """Those that this wait, or the next one, is about."""
    dying = join is not None and join.want == 0
    return [one for one in known if not one.old and (not one.taken or (dying and one.live))]


def over(known: Children, join: Join) -> bool | None:
    """Whether what is waited for has come (True), or cannot come any more (False); None: it may yet."""
    ends = list(map(_STATUS, covered(known, join)))  # of each end all are looked at, so by what takes least
    open_ = ends.count(None)
    if join.want == 0:
        return None if open_ else True
    want = len(ends) if join.want is None else min(join.want, len(ends))
    succeeded = ends.count(Status.SUCCEEDED)
    if succeeded >= want:
        return True
    if join.fail:
        return False if succeeded + open_ < want else None
    return True if not open_ else None


def failed(known: Children) -> Child:
    """The one that is named where they have failed: the first of those that the wait is about."""
    return next(one for one in covered(known) if one.status is not None and not one.succeeded)


def taken(known: Children, *, rest: bool = False) -> Children:
    """After a wait: those that ended count no more. `rest`: nor do the others, whose end is wanted now."""
    return tuple(
        one
        if one.taken or one.old
        else one._replace(taken=True)
        if one.status is not None
        else one._replace(taken=True, cancel=max(one.cancel, WANTED))
        if rest
        else one
        for one in known
    )


def anew(known: Children) -> Children:
    """For an undo, which may wait for any of them once more."""
    return tuple(one._replace(taken=False) if one.taken else one for one in known)


def of_older_runs(known: Children) -> Children:
    """For a new run: what succeeded is not spawned a second time; the rest is as if it had never been."""
    return tuple(one._replace(old=True, taken=False) for one in known if one.succeeded)


def settled(
    known: Children, bound: int | None, *, leaving: bool
) -> tuple[Children, tuple[Child, ...], tuple[Child, ...]]:
    """What a commit does to them: who is left, whose row goes out now, and who is told to end.

    Args:
        known: as the signals left them.
        bound: how many may live at once.
        leaving: the mission ends, or leaves the way forward: who lives is told to end, who is held never begins.
    """
    left, begin, tell = list[Child](), list[Child](), list[Child]()
    room = MOST if bound is None else bound - sum(one.live for one in known)
    for one in known:
        end = leaving or one.cancel == WANTED
        if one.spec is not None:
            if end:
                continue  # it was never begun
            if room > 0:
                room -= 1
                begin.append(one)
                one = one._replace(spec=None)  # noqa: PLW2901  the same one, begun
        elif one.live and end and one.cancel != TOLD:
            one = one._replace(cancel=TOLD)  # noqa: PLW2901  the same one, told
            tell.append(one)
        left.append(one)
    return tuple(left), tuple(begin), tuple(tell)


def told(end: Child) -> dict[str, Any]:
    """The log's data of a child's end."""
    said = {"event": "child", "task_id": end.task_id, "type": end.type, "status": end.status}
    if end.name is not None:
        said["name"] = end.name
    if end.error is not None:
        said["code"] = end.error.get("code")
    return said if end.reason is None else said | {"reason": end.reason}


def sentence(end: Child) -> str:
    """Of a child that did not succeed."""
    name = end.name if end.name is not None else end.task_id
    why = end.reason or ""
    if end.error is not None:
        why = ": ".join(str(end.error[name]) for name in ("code", "message") if name in end.error)
    return f"its child {name} ({end.type}) ended {end.status}" + (f", {why}" if why else "")


def progress(known: Children, join: Join | None = None) -> tuple[int, int]:
    """How many of those that a wait is about have ended, and how many there are."""
    group = covered(known, join)
    return sum(one.status is not None for one in group), len(group)
