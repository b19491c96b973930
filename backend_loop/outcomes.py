"""What a handler answers: values, each of which is exactly one signal of the machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from backend_loop.children import Child
from shared.status import ErrorCode, Reason

LONGEST_S: Final = 31_536_000.0
"""A year: what any wait may last at most."""


def _check(name: str, seconds: object) -> None:
    # raised within the handler that asks for it, so it is a failed try like any other
    if not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_S:
        raise ValueError(f"{name} is {seconds!r}: say seconds from 0 to {LONGEST_S:.0f}")


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 1


@dataclass(frozen=True, slots=True)
class Go:
    """The state is done: take the transition `event` of the table.

    Args:
        event: a word of this state's row.
        result: what the mission's result document carries, if this leads to an end.
        freshness: the observation behind it: ``observed_at age_ms verified source version``.
        detail: for a transition to FAILED, the sentence of the error; for others, data of the event.
        data: of the event that tells of the transition, for who watches; not for one to FAILED.
    """

    event: str
    result: Mapping[str, Any] | None = None
    freshness: Mapping[str, Any] | None = None
    detail: str | None = None
    data: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """It will never work: the mission ends FAILED with this code.

    `at`: where in its author's file what nobody foresaw was raised; said by the engine.
    """

    message: str
    code: ErrorCode = ErrorCode.PERMANENT
    result: Mapping[str, Any] | None = None
    freshness: Mapping[str, Any] | None = None
    errors: tuple[Mapping[str, str], ...] = ()
    at: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Retry:
    """It may work later: tried again within the state's retry policy, then FAILED.

    Args:
        message: what went wrong.
        code: the end's code when no try is left.
        after_s: wait at least so long, as the other side asked (``Retry-After``); a year at most.
        at: where in its author's file what nobody foresaw was raised; said by the engine.
    """

    message: str
    code: ErrorCode = ErrorCode.RETRIES_EXHAUSTED
    after_s: float = 0.0
    at: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Raises ValueError: `after_s` is no time."""
        if self.after_s:
            _check("Retry.after_s", self.after_s)


@dataclass(frozen=True, slots=True)
class Sleep:
    """Run this state again in so many seconds, a year at most; no try is used up."""

    seconds: float

    def __post_init__(self) -> None:
        """Raises ValueError: `seconds` is no time."""
        _check("Sleep.seconds", self.seconds)


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Wait for an outside event that this state's row names; an early one is remembered and taken at once.

    Args:
        event: the word.
        seconds: wait so long at most, then take the row's `timed_out`, or fail with `timeout`; a year at most;
            None: to the deadline.
    """

    event: str
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Raises ValueError: `seconds` is no time."""
        if self.seconds is not None:
            _check("WaitFor.seconds", self.seconds)


_WANT: Final[Mapping[str, int | None]] = {"all": None, "any": 1, "ended": 0}


@dataclass(frozen=True, slots=True)
class WaitForChildren:
    """Wait for the missions that this one has spawned, those that no earlier wait has taken; the target is given up.

    The handler is then called again, with their ends in `tools.children`; or `event` is taken. With nobody to wait for
    `event` is taken at once; without an event that is a mistake, and fails.

    Args:
        policy: how many are to succeed: "all", "any" (one), or so many; more than there are means all. "ended": nobody
            is to live any more, whom an earlier wait has told to end included, and however they end.
        on_failure: "fail": once so many cannot succeed any more the others are told to end, and the row's
            `child_failed` is taken, or the state fails with `child_failed`. "continue": it goes on when so many have
            succeeded, or nobody is left to wait for; who failed stands in `tools.children`.
        bound: so many live at once at most, the others are begun as those end; None: all at once.
        event: of this state's row.
        seconds: wait so long at most, then take the row's `timed_out`, or fail with `timeout`; a year at most;
            None: to the deadline.
    """

    policy: Literal["all", "any", "ended"] | int = "all"
    on_failure: Literal["fail", "continue"] = "fail"
    bound: int | None = None
    event: str | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Raises ValueError: one of them is not what it may be."""
        if self.policy not in _WANT and not _is_count(self.policy):
            raise ValueError(f'WaitForChildren.policy is {self.policy!r}: say "all", "any", "ended" or a number from 1')
        if self.on_failure not in {"fail", "continue"}:
            raise ValueError(f'WaitForChildren.on_failure is {self.on_failure!r}: say "fail" or "continue"')
        if self.bound is not None and not _is_count(self.bound):
            raise ValueError(f"WaitForChildren.bound is {self.bound!r}: say a number from 1, or None")
        if self.seconds is not None:
            _check("WaitForChildren.seconds", self.seconds)

    @property
    def want(self) -> int | None:
        """How many are to succeed; None: all; 0: nobody is to live."""
        return _WANT[self.policy] if isinstance(self.policy, str) else self.policy


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing is to be done any more: the mission ends CANCELLED for this reason."""

    reason: Reason
    result: Mapping[str, Any] | None = None
    freshness: Mapping[str, Any] | None = None


Outcome = Go | Fail | Retry | Sleep | WaitFor | WaitForChildren | Stop

ONE_OF_THEM: Final = "return one of backend_loop.outcomes: Go, Retry, Fail, Sleep, WaitFor, WaitForChildren or Stop"
"""What is said to a handler that answered anything else, such as the Retry that is a policy."""

UNDONE: Final = Go("undone")
"""What an undo that returns nothing has answered."""


@dataclass(frozen=True, slots=True)
class Wake:
    """A worker has the mission now: first claim, due timer, or takeover; all the same."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Somebody does not want it any more; `by` and `note` where they said who and why."""

    reason: Reason = Reason.REQUESTED
    by: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Deadline:
    """Its deadline has come."""


@dataclass(frozen=True, slots=True)
class Happened:
    """An outside event; `data` goes to the handler that waits for it."""

    event: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spawned:
    """A handler has spawned children; comes right before the outcome that it answers."""

    children: tuple[Child, ...]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A handler that goes on has something new in its context, which is kept from here on."""


@dataclass(frozen=True, slots=True)
class ChildEnded:
    """A child has come to its end, as `end` says; its parent may have ended, or begun anew, since it spawned it."""

    end: Child


@dataclass(frozen=True, slots=True)
class Pause:
    """Somebody wants it to rest: takes effect at the next commit, and keeps the wake time (P23)."""

    by: str | None = None


@dataclass(frozen=True, slots=True)
class Resume:
    """Somebody wants it to go on."""

    by: str | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """An operator skips an optional state; `state` is the one that was meant, another one is left alone."""

    state: str
    by: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Complete:
    """An operator has done by hand what was left: the mission succeeds, or the present undo counts as done."""

    result: Mapping[str, Any] | None = None
    by: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Superseded:
    """A newer command on the same aspect of its target came before the act (P11)."""


@dataclass(frozen=True, slots=True)
class NoPermit:
    """The handler may not begin yet: no permit is free, or a breaker is open (P12). No try is used up.

    Args:
        until_ms: ask again then at the latest, epoch ms by Redis.
        why: a sentence for the log.
    """

    until_ms: int
    why: str = ""


Signal = (
    Outcome
    | Wake
    | Cancel
    | Deadline
    | Happened
    | Spawned
    | Checkpoint
    | ChildEnded
    | Pause
    | Resume
    | Skip
    | Complete
    | Superseded
    | NoPermit
)
