"""`firmware.rollout`: bring hundreds of gadgets to a firmware, a few of them first, and stop where too many fail.

Each gadget is a `firmware.update` of its own, so many at once. A few, the canaries, go first; the others follow only if
those are well. Once more have failed than the budget allows, nobody begins any more, and who is under way is told to
end. What is flashed stays flashed, then and after a cancel, unless `rollback` was said: then it is flashed back.

A pause holds back whoever has not begun; who has, ends.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from backend_loop.budget import MayFail
from backend_loop.mission import Mission, state, undo
from backend_loop.missions.firmware_update import ASKING, GADGETS, Gadget, Version
from backend_loop.outcomes import Fail, Go, Outcome, Retry, WaitForChildren
from backend_loop.retry import Retry as Policy
from backend_loop.services import ServiceRefused, ServiceUnavailable
from backend_loop.toolbox import ChildMission, Toolbox
from shared.status import Priority, Reason

MOST: Final = 1_000
"""Gadgets of a rollout; for more of them, one for each model, say."""

PAGE: Final = 200
SHOWN: Final = 50
"""Failures that the result itself tells; all of them are in the report."""

REPORT_TRIES: Final = 4
"""So often it is tried to write the report, less often than a state is tried: the rollout then ends without it, and
does not fail, after which it would be undone."""

DAY_S: Final = 86_400.0
BACK: Final = "back:"
"""What the name of an update begins with that flashes a gadget back."""

BACK_AT_ONCE: Final = 100
"""Updates back that one commit spawns: the document, which it writes too, is as good as full in a large rollout."""

BACK_ROOM: Final = 850_000
"""Bytes that two updates of each gadget may take of that document."""
BACK_EACH, BACK_LETTER, BACK_OLD, BACK_NEW = 665, 7, 3, 2
"""Bytes for those of one gadget: so many, and so many for each letter of its name, its old version and its new one."""

UNTOUCHED: Final = frozenset({"already_done", "device_refused", "device_unreachable", "overridden", "superseded"})
"""Ends of an update after which the gadget surely does not show what we wanted because of us."""


class NoGadgetsError(Exception):
    """Nothing fits what was asked for."""


class NoWayBackError(Exception):
    """What is to be flashed back where it fails could not be: nothing is flashed."""


class FirmwareRollout(Mission):
    """Bring many gadgets to a firmware version: canaries first, then the others, with an error budget."""

    type = "firmware.rollout"
    priority = Priority.BULK
    deadline_s = DAY_S
    permanent = (ServiceRefused, NoGadgetsError, NoWayBackError)
    retryable = (ServiceUnavailable,)
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "LISTING": {"listed": "CANARY", "noting": "NOTING"},
        "NOTING": {"noted": "CANARY"},
        "CANARY": {"well": "ROLLING_OUT", "child_failed": "STOPPING"},
        "ROLLING_OUT": {"rolled_out": "REPORTING", "child_failed": "STOPPING"},
        "STOPPING": {"stopped": "REPORTING"},
        "REPORTING": {"reported": "SUCCEEDED", "child_failed": "FAILED"},
    }

    class Payload(BaseModel):
        """Which firmware for which gadgets, how fast, and how much may fail."""

        class Where(BaseModel):
            """Those that the service lists, in the order of their names."""

            model_config = ConfigDict(extra="forbid")

            prefix: str = Field("", max_length=100, examples=["gadget."])
            model: str | None = Field(None, max_length=100)
            count: int = Field(MOST, ge=1, le=MOST)

        class Budget(MayFail):
            """So many, or such a part of all, may end otherwise than SUCCEEDED; the lower one of both counts."""

        version: Version
        gadgets: Annotated[list[Gadget], Field(min_length=1, max_length=MOST)] | Where = Field(
            description="their names, or where they are to be looked up"
        )
        canaries: int = Field(5, ge=0, le=100, description="so many go first, spread over all of them")
        canaries_may_fail: int = Field(0, ge=0, le=100)
        budget: Budget = Budget(share=0.05)
        at_once: int = Field(20, ge=1, le=500, description="updates under way")
        patience_s: float = Field(10.0, ge=0, le=DAY_S, description="how long one may be offline")
        rollback: bool = Field(False, description="flash back what it flashed, should it fail or be cancelled")

    class Context(BaseModel):
        """Who has not been spawned yet; with `rollback`, what each showed before; whether it was stopped."""

        left: list[str] = []
        total: int = 0
        before: dict[str, str] = {}
        stopped: bool = False

    @state("LISTING", uses=(GADGETS,), retry=ASKING)
    async def list_gadgets(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Which ones are there now, and what do they show?"""
        payload, context = tools.payload, tools.context
        if isinstance(payload.gadgets, list):
            wanted = list(dict.fromkeys(payload.gadgets))
            shown = dict[str, str]()
            for start in range(0, len(wanted), PAGE):
                shown |= await _listed(tools, f"ids={','.join(wanted[start : start + PAGE])}", PAGE)
        else:
            where = payload.gadgets
            model = "" if where.model is None else f"&model={quote(where.model)}"
            shown = await _listed(tools, f"prefix={quote(where.prefix)}{model}", where.count)
            wanted = list(shown)
            if not wanted:
                raise NoGadgetsError(_none_like(where))
        context.left, context.total = wanted, len(wanted)
        if not payload.rollback:
            return Go("listed")
        if not has_way_back({gadget: shown.get(gadget, "") for gadget in wanted}, payload.version):
            which = f"{len(wanted)} gadgets with names and versions as long as these"
            raise NoWayBackError(f"{which} cannot be flashed back from one rollout")
        context.before = shown
        return Go("noting")

    @state("NOTING")
    async def note(self, _tools: Toolbox[Payload, Context]) -> Outcome:
        """From here on there is a way back: what each one shows is written down."""
        return Go("noted")

    @undo("NOTING", retry=Policy(tries=1_000, base_s=0.2, cap_s=30))
    async def flash_back(self, tools: Toolbox[Payload, Context]) -> Outcome | None:
        """To what they showed, unless somebody else has flashed them since; none that we have not touched."""
        there = [one for one in tools.children if not _is_back(one)]
        back = [one for one in tools.children if _is_back(one)]
        if not all(one.ended for one in (*there, *back)):
            return WaitForChildren("ended", bound=tools.payload.at_once)
        version, before = tools.payload.version, tools.context.before
        touched = [gadget for one in there if _said(one) not in UNTOUCHED and (gadget := one.name) in before]
        begun = {one.name for one in back}
        for gadget in (left := [one for one in touched if BACK + one not in begun])[:BACK_AT_ONCE]:
            payload = {"gadget": gadget, "version": before[gadget], "replaces": version, "patience_s": 60}
            tools.spawn("firmware.update", payload, name=BACK + gadget, deadline_s=DAY_S)
        if left:
            return WaitForChildren("ended", bound=tools.payload.at_once)
        stay = [one for one in back if not one.succeeded and _said(one) not in {"overridden", "superseded"}]
        return Fail(f"{len(stay)} of {len(back)} could not be flashed back, {_first(_line(stay[0]))}") if stay else None

    @state("CANARY")
    async def try_out(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """A few, to see whether it is any good."""
        payload, context = tools.payload, tools.context
        if not tools.children and (canaries := spread(context.left, payload.canaries)):
            _spawn(tools, canaries)
            tools.progress(0, message=f"{len(canaries)} canaries first")
            context.left = [gadget for gadget in context.left if gadget not in set(canaries)]
            may_fail = min(payload.canaries_may_fail, payload.budget.budget.allowed(context.total))
            return wave(len(canaries), may_fail, payload.at_once)
        if not all(one.ended for one in tools.children):
            return WaitForChildren("ended", bound=payload.at_once)
        return Go("well")

    @state("ROLLING_OUT")
    async def roll_out(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """All others, for as long as not too many of all have failed."""
        payload, context = tools.payload, tools.context
        if left := context.left:
            failed = sum(not one.succeeded for one in tools.children)
            _spawn(tools, left)
            tools.progress(0, message="all others")
            context.left = []
            return wave(len(left), payload.budget.budget.allowed(context.total) - failed, payload.at_once)
        ended = sum(one.ended for one in tools.children)
        tools.progress(ended, context.total, "the last ones")
        if ended < len(tools.children):
            return WaitForChildren("ended", bound=payload.at_once)
        return Go("rolled_out")

    @state("STOPPING")
    async def stop(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Too many have failed: who is under way was told to end, and is waited for, so that it can be told of."""
        tools.context.stopped = True
        return WaitForChildren("ended", event="stopped")

    @state("REPORTING")
    async def report(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """What became of each."""
        payload, context = tools.payload, tools.context
        lines = [_line(one) for one in tools.children]
        tools.progress(len(lines), context.total)
        try:
            link, missing = await asyncio.to_thread(_write, tools, lines), {}
        except OSError as error:  # such as a full disk: what is flashed is well all the same, and is not to be undone
            if tools.attempt < REPORT_TRIES:
                return Retry(f"the report cannot be written: {error}")
            link, missing = None, {"no_report": str(error)}
        bad = [line for line in lines if line["status"] != "SUCCEEDED"]
        result = {
            "version": payload.version,
            "gadgets": context.total,
            "ended": dict(Counter(line["said"] for line in lines)),
            "not_begun": context.total - len(lines),
            "failures": bad[:SHOWN],
            "report": link,
            **missing,
        }
        if not context.stopped:
            return Go("reported", result)
        return Go("child_failed", result, detail=failed(bad, context.total))


Tools = Toolbox[FirmwareRollout.Payload, FirmwareRollout.Context]


def spread(gadgets: Sequence[str], count: int) -> list[str]:
    """So many of them, as far apart as they can be: the neighbours of one are too much like it."""
    count = min(count, len(gadgets))
    return [gadgets[(2 * n + 1) * len(gadgets) // (2 * count)] for n in range(count)]


def has_way_back(shown: Mapping[str, str], version: str) -> bool:
    """Whether what is known of two updates of each gadget is not too much for one mission."""
    each = BACK_EACH + BACK_NEW * len(version)
    return sum(each + BACK_LETTER * len(gadget) + BACK_OLD * len(old) for gadget, old in shown.items()) <= BACK_ROOM


def _none_like(where: FirmwareRollout.Payload.Where) -> str:
    """A sentence, where nothing fits."""
    named = f" whose name begins with {where.prefix!r}" if where.prefix else ""
    return f"there is no gadget{named}" + ("" if where.model is None else f" of the model {where.model!r}")


async def _listed(tools: Tools, query: str, most: int) -> dict[str, str]:
    """Name → version, in the order of the names."""
    shown, more = dict[str, str](), True
    while more and len(shown) < most:
        where = f"{query}&after={next(reversed(shown), '')}&limit={min(PAGE, most - len(shown))}"
        page = await tools.ask(f"gadgets/?{where}")
        shown |= {gadget["id"]: gadget["version"] for gadget in page["gadgets"]}
        more = page["more"]
    return shown


def _spawn(tools: Tools, gadgets: Sequence[str]) -> None:
    payload = tools.payload
    for gadget in gadgets:
        wish = {"gadget": gadget, "version": payload.version, "patience_s": payload.patience_s}
        tools.spawn("firmware.update", wish, name=gadget)


def wave(count: int, may_fail: int, at_once: int) -> WaitForChildren:
    """Until so many have succeeded that the others may fail, or too many have failed."""
    if count <= may_fail:
        return WaitForChildren("ended", bound=at_once)
    return WaitForChildren(count - may_fail, "fail", bound=at_once)


def _is_back(update: ChildMission) -> bool:
    return (update.name or "").startswith(BACK)


def _said(update: ChildMission) -> str:
    """How it ended, in one word."""
    if update.succeeded:
        return str((update.result or {}).get("outcome", update.status))
    return str(update.reason or (update.error or {}).get("code") or update.status)


def _line(update: ChildMission) -> dict[str, Any]:
    """What the report says of one."""
    message = None if update.error is None else update.error.get("message")
    return {
        "gadget": (update.name or "").removeprefix(BACK),
        "status": update.status,
        "said": _said(update),
        "message": message,
        "task_id": update.task_id,
    }


def failed(bad: Sequence[Mapping[str, Any]], total: int) -> str:
    """What has gone wrong, by the lines of those that did not succeed; who was told to end has not failed himself."""
    own = [line for line in bad if line["said"] != Reason.REQUESTED]
    ended = len(bad) - len(own)
    told = f" and {ended} {'was' if ended == 1 else 'were'} told to end" if ended else ""
    return f"{len(own)} of {total} failed{told}" + (f", {_first(own[0])}" if own else "")


def _first(line: Mapping[str, Any]) -> str:
    """The one that stands for all that failed, in words."""
    why = f": {line['message']}" if line["message"] else ""
    return f"the first one is {line['gadget']}, {line['said']}{why}"


def _write(tools: Tools, lines: Sequence[Mapping[str, Any]]) -> str:
    """The report, a line each; its link."""
    file = tools.file("report.jsonl")
    try:
        file.path.write_bytes(b"".join(to_json(line) + b"\n" for line in lines))
        return file.publish()
    except OSError:
        file.path.unlink(missing_ok=True)  # half a report would stand in the way of the next try
        raise
