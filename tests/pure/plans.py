"""Small machines that have everything a big one may have, and all that can happen to them."""

from backend_loop.children import Child
from backend_loop.course import Course, Plan, StatePlan
from backend_loop.outcomes import (
    Cancel,
    Checkpoint,
    ChildEnded,
    Complete,
    Deadline,
    Fail,
    Go,
    Happened,
    NoPermit,
    Outcome,
    Pause,
    Resume,
    Retry,
    Signal,
    Skip,
    Sleep,
    Spawned,
    Stop,
    Superseded,
    WaitFor,
    WaitForChildren,
    Wake,
)
from backend_loop.retry import Retry as Policy
from shared.status import ErrorCode, Reason, Status

NOW = 1_000_000
LIMIT = 12

ORDER = Plan(
    "RESERVE",
    {
        "RESERVE": StatePlan({"reserved": "CHARGE", "none": "FAILED"}, Policy(tries=2), undo=Policy(tries=2, base_s=1)),
        "CHARGE": StatePlan(
            {"charged": "NOTIFY", "declined": "FAILED", "dropped": "CANCELLED", "timed_out": "FAILED"},
            Policy(tries=2, base_s=1, cap_s=8, max_elapsed_s=60),
            acting=True,
            undo=Policy(tries=2, base_s=1, max_elapsed_s=60),
        ),
        "NOTIFY": StatePlan({"told": "SHIP", "skipped": "SHIP"}, Policy(tries=1), acting=True, skip="skipped"),
        "SHIP": StatePlan({"shipped": "SUCCEEDED", "KNOCK": "RESERVE", "again": "RESERVE"}, Policy(tries=1)),
    },
    max_transitions=LIMIT,
)
"""A loop, two undos, an optional state, an event, each kind of end."""


def _single(to: str, *, event: str = "KNOCK", optional: bool = True, undo: bool = False) -> Plan:
    row = {event: to, "timed_out": to, "skipped": to}
    row |= {"child_failed": to} if undo else {}
    policy = Policy(tries=1) if undo else None
    spec = StatePlan(row, Policy(tries=2), acting=True, undo=policy, skip="skipped" if optional else None)
    return Plan("ONLY", {"ONLY": spec, "NEXT": StatePlan({"done": "SUCCEEDED"})}, max_transitions=LIMIT)


PLANS: list[Plan] = [
    ORDER,
    *(_single(to, undo=undo) for to in ("SUCCEEDED", "FAILED", "CANCELLED", "NEXT") for undo in (False, True)),
    *(_single("NEXT", optional=False, undo=undo) for undo in (False, True)),
]

SPEC = {"version": 1, "payload": {}, "lane": "normal:default:default"}
KIDS = tuple(Child(f"k{n}", "test.kid", None, "ONLY", 1, n, spec=SPEC) for n in (1, 2, 3))
"""Three children, held; the third is known from the start where `starts` says so."""


def end(number: int, status: str = "SUCCEEDED", run: int = 1) -> ChildEnded:
    """The end of one of them."""
    error = {"code": "permanent", "message": "no"} if status == "FAILED" else None
    child = Child(f"k{number}", "test.kid", None, "", 0, 0, run, status=status, result={"n": number}, error=error)
    return ChildEnded(child)


SIGNALS: list[Signal] = [
    Wake(),
    *(Go(event) for event in ("reserved", "none", "charged", "declined", "dropped", "told", "shipped", "again")),
    *(Go(event) for event in ("KNOCK", "nonsense")),
    Fail("no", ErrorCode.DEVICE_REFUSED),
    Retry("later"),
    Retry("later", after_s=120),
    Sleep(5),
    WaitFor("KNOCK"),
    WaitFor("KNOCK", 7),
    WaitFor("nonsense", 7),
    Stop(Reason.OVERRIDDEN),
    Spawned(KIDS[:2]),
    Checkpoint(),
    WaitForChildren(),
    WaitForChildren("any", "continue", seconds=7),
    WaitForChildren(2, bound=1, event="KNOCK"),
    WaitForChildren("all", "continue", event="nonsense"),
    end(1),
    end(1, "FAILED"),
    end(2, "CANCELLED"),
    end(2, run=2),
    Cancel(),
    Deadline(),
    Happened("KNOCK", {"who": "me"}),
    Happened("nonsense"),
    Pause("me"),
    Resume("me"),
    *(Skip(state, "me", "why not") for state in ("ONLY", "NOTIFY", "CHARGE")),
    Complete({"by_hand": True}, "me"),
    Superseded(),
    NoPermit(NOW + 3_000, "3 of 3 in use"),
]
"""All kinds of signals."""

FAMILY: list[Signal] = [
    Wake(),
    Go("KNOCK"),
    Fail("no", ErrorCode.DEVICE_REFUSED),
    Cancel(),
    Spawned(tuple(one._replace(spec=None) for one in KIDS[:2])),
    WaitForChildren(),
    WaitForChildren("any", "continue", seconds=7),
    WaitForChildren(2, bound=1, event="KNOCK"),
    end(1),
    end(1, "FAILED"),
    end(2, "CANCELLED"),
    end(2),
]
"""What matters to those with children, who have been begun."""

FAMILIES: list[Plan] = [
    _single(to, optional=False, undo=undo) for to in ("SUCCEEDED", "FAILED", "CANCELLED") for undo in (False, True)
]


def starts(plan: Plan) -> list[Course]:
    """Where a mission of the plan may be met first: fresh, begun by a worker that died, or near its limit."""
    first = plan.initial
    return [
        Course(first),
        Course(first, begun=True),
        Course(first, Status.RUNNING, transitions=plan.max_transitions - 1),
        Course(first, Status.RUNNING, begun=True, transitions=plan.max_transitions - 1),
    ]


def heard(course: Course, signal: Signal) -> Course:
    """What a runner notes before it hands on what a handler answered: that it has begun."""
    return course._replace(begun=True) if isinstance(signal, Outcome) and not isinstance(signal, Go) else course
