"""The closed word lists of the contract: where a mission's life is, and how it can end."""

from enum import StrEnum


class Status(StrEnum):
    """Where a mission's life is: the same eight words for every type."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    PAUSED = "PAUSED"
    COMPENSATING = "COMPENSATING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def terminal(self) -> bool:
        """True for the three ends."""
        return self in TERMINAL


TERMINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED})


class WaitingFor(StrEnum):
    """What a mission that is not running waits for."""

    RETRY = "retry"
    TIMER = "timer"
    EVENT = "event"
    CHILDREN = "children"
    TARGET = "target"
    PERMIT = "permit"
    WORKER = "worker"


class Reason(StrEnum):
    """Why a mission was CANCELLED."""

    REQUESTED = "requested"
    DISCONNECTED = "disconnected"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"
    OVERRIDDEN = "overridden"


class ErrorCode(StrEnum):
    """Why a mission FAILED: a closed list."""

    PERMANENT = "permanent"
    RETRIES_EXHAUSTED = "retries_exhausted"
    TIMEOUT = "timeout"
    DEADLINE = "deadline"
    WORKER_LOST = "worker_lost"
    UNKNOWN_TYPE = "unknown_type"
    FUTURE_VERSION = "future_version"
    UNDECODABLE = "undecodable"
    TOO_LARGE = "too_large"
    TOO_MANY_TRANSITIONS = "too_many_transitions"
    COMPENSATION_FAILED = "compensation_failed"
    CHILD_FAILED = "child_failed"
    DEVICE_UNREACHABLE = "device_unreachable"
    DEVICE_REFUSED = "device_refused"
    CONTRADICTED = "contradicted"
    UNCONFIRMED = "unconfirmed"


DEAD_LETTERS = frozenset(
    {
        ErrorCode.PERMANENT,
        ErrorCode.RETRIES_EXHAUSTED,
        ErrorCode.TIMEOUT,
        ErrorCode.WORKER_LOST,
        ErrorCode.UNKNOWN_TYPE,
        ErrorCode.FUTURE_VERSION,
        ErrorCode.UNDECODABLE,
        ErrorCode.TOO_LARGE,
        ErrorCode.TOO_MANY_TRANSITIONS,
        ErrorCode.COMPENSATION_FAILED,
        ErrorCode.CHILD_FAILED,
    }
)
"""Ends that an operator may want to look at and replay; the others are plain answers about the outside world."""


class Priority(StrEnum):
    """The three lanes, best first."""

    URGENT = "urgent"
    NORMAL = "normal"
    BULK = "bulk"

    @property
    def rank(self) -> int:
        """0 is served first."""
        return RANK[self]


RANK = {Priority.URGENT: 0, Priority.NORMAL: 1, Priority.BULK: 2}
