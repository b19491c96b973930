"""`device.sequence`: one thing after the other, such as unlock, look, lock; what is in `finally` is done in any case.

Each step is a mission of its own, and the next one begins only once it has ended well: an act when the device was seen
to have obeyed, a look when the device was seen, and shows what is expected. Where a step fails, and at a cancel or the
deadline, the sequence turns back: it waits until the step that was cut has really ended, then does all of `finally`,
again and again for ten minutes; what then is still not done ends it as `compensation_failed`. Where all went well the
same is done on the way forward. Only a sequence that is cancelled before a worker ever had it does nothing at all.

An act that was cut may still be on its way: the unlocking that a slow bridge holds back, while the lock looks locked.
So the acts of `finally` insist: the device is told even where nothing seems left to do, and refuses from then on what
comes with an older fence. A person's hand does not keep a door open either, unless the act says so (`conflict`).
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, GetJsonSchemaHandler, Tag
from pydantic_core import CoreSchema

from backend_loop.devices.act import Act
from backend_loop.mission import Mission, state, undo
from backend_loop.missions.ends import row, why
from backend_loop.missions.home import Entity, Expected
from backend_loop.outcomes import Fail, Go, Outcome, Retry, Sleep, WaitForChildren
from backend_loop.retry import Retry as Policy
from backend_loop.toolbox import ChildMission, Toolbox
from shared.status import ErrorCode, Priority, Reason

FORTH: Final = Policy(tries=100, base_s=0.5, cap_s=10, max_elapsed_s=60)
BACK: Final = Policy(tries=100, base_s=0.5, cap_s=30, max_elapsed_s=600)
"""How long `finally` is tried: long enough for a bridge that starts again, and somebody is to hear of the rest."""

ASIDE_S: Final = 60.0
"""What a look may take besides the time that its device may: it waits for a worker like anyone."""


class ActStep(Act):
    """Make a device do something, and see that it has."""

    model_config = ConfigDict(extra="forbid")  # what is misspelt in a step would be left out of it


class LookStep(BaseModel):
    """See a device, and that it shows what is expected."""

    model_config = ConfigDict(extra="forbid")

    entity: Entity
    expect: Expected | None = Field(None, description="the values that it is to show")
    within_s: float = Field(0, ge=0, le=3_600, description="seconds that it may take to show them")


class WaitStep(BaseModel):
    """Let some time pass."""

    model_config = ConfigDict(extra="forbid")

    wait_s: float = Field(gt=0, le=3_600)


class FinalAct(ActStep):
    """What is to be so in the end."""

    conflict: Literal["respect_newer", "force"] = "force"


def _kind(step: Any) -> str:
    has = step.__contains__ if isinstance(step, dict) else lambda name: hasattr(step, name)
    return "act" if has("action") else "wait" if has("wait_s") else "look"


class _ByItsFields:
    """Says in the schema which kind of step is meant, so that a fault is told of that kind."""

    @staticmethod
    def __get_pydantic_json_schema__(core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        act, wait, look = handler(core)["oneOf"]
        otherwise = {"if": {"required": ["wait_s"]}, "then": wait, "else": look}
        return {"type": "object", "if": {"required": ["action"]}, "then": act, "else": otherwise}


Step = Annotated[
    Annotated[ActStep, Tag("act")] | Annotated[WaitStep, Tag("wait")] | Annotated[LookStep, Tag("look")],
    Discriminator(_kind),
    _ByItsFields,
]


class DeviceSequence(Mission):
    """Acts and looks, one after the other; what is in `finally` is done whatever happens."""

    type = "device.sequence"
    priority = Priority.URGENT
    deadline_s = 600.0
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "DOING_STEPS": {"done": "FINISHING"},
        "FINISHING": {"finished": "SUCCEEDED"},
    }

    class Payload(BaseModel):
        """The steps, and what is to be so in the end."""

        model_config = ConfigDict(extra="allow")

        steps: list[Step] = Field(
            min_length=1,
            max_length=50,
            description="each an act (entity, action, value), a look (entity, expect, within_s) or a wait (wait_s)",
            examples=[
                [
                    {"entity": "lock.front_door", "action": "unlock"},
                    {"entity": "sensor.front_door", "expect": {"contact": "closed"}, "within_s": 30},
                ]
            ],
        )
        last: list[FinalAct] = Field(
            default_factory=list,
            alias="finally",
            max_length=10,
            description="acts that are done in the end, whatever became of the steps",
            examples=[[{"entity": "lock.front_door", "action": "lock"}]],
        )

    class Context(BaseModel):
        """Which wait was the last to be taken, counted from 1."""

        waited: int = 0

    @state("DOING_STEPS", acting=True)
    async def do(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Begin the next step, or end where one has failed."""
        known = {child.name: child for child in tools.children}
        for n, step in enumerate(tools.payload.steps, 1):
            if isinstance(step, WaitStep):
                if tools.context.waited < n:
                    _tell(tools, n - 1, f"wait {step.wait_s:g} s")
                    tools.context.waited = n
                    return Sleep(step.wait_s)
                continue
            if (child := known.get(_step(n))) is None:
                _tell(tools, n - 1, _said(step))
                _begin(tools, _step(n), step)
                return WaitForChildren("all", on_failure="continue")
            if not child.succeeded:
                return Fail(f"step {n}, {_said(step)}: {why(child)}", ErrorCode.CHILD_FAILED, _steps(tools))
        return Go("done")

    @undo("DOING_STEPS", retry=BACK)
    async def finish_nevertheless(self, tools: Toolbox[Payload, Context]) -> Outcome | None:
        """Whatever was cut is to have ended; then what is to be so in the end."""
        if not all(child.ended for child in tools.children):
            return WaitForChildren("ended")
        return _finishing(tools, "undo")

    @state("FINISHING", acting=True, retry=FORTH)
    async def finish(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """What is to be so in the end, on the way forward; should that fail, the undo of the steps goes on with it."""
        if (more := _finishing(tools, "finally")) is not None:
            return more
        _tell(tools, len(tools.payload.steps) + len(tools.payload.last))
        return Go("finished", {**_steps(tools), **_last(tools)})


Tools = Toolbox[DeviceSequence.Payload, DeviceSequence.Context]


def _step(n: int) -> str:
    return f"step {n}"


def _said(step: ActStep | LookStep) -> str:
    return str(step) if isinstance(step, ActStep) else f"look at {step.entity}"


def _tell(tools: Tools, done: int, message: str | None = None) -> None:
    tools.progress(done, len(tools.payload.steps) + len(tools.payload.last), message)


def _begin(tools: Tools, name: str, step: ActStep | LookStep) -> None:
    payload = step.model_dump()
    if isinstance(step, ActStep):
        tools.spawn("device.control", {**payload, "asked_at": tools.envelope.created_at}, name=name)
    else:
        tools.spawn("device.query", payload, name=name, deadline_s=step.within_s + ASIDE_S)


def _finishing(tools: Tools, way: Literal["finally", "undo"]) -> WaitForChildren | Retry | None:
    """The next act of `finally` in this try; once all have been tried, again what has failed; None: all are done."""
    known = {child.name: child for child in tools.children}
    failed = list[str]()
    for n, act in enumerate(tools.payload.last, 1):
        if any(child.succeeded for child in _tries(known, f"{way} {n}")):
            continue
        first, second = f"{way} {n}.{tools.attempt}", f"{way} {n}.{tools.attempt} again"
        if (child := known.get(first)) is None:
            _tell(tools, len(tools.payload.steps) + n - 1, str(act))
            tools.spawn("device.control", {**act.model_dump(), "insist": True}, name=first)
            return WaitForChildren("all", on_failure="continue")
        if child.reason == Reason.SUPERSEDED and second not in known:
            # a newer command has acted since, so nothing older comes any more; what it left may be what is wanted
            tools.spawn("device.control", act.model_dump(), name=second)
            return WaitForChildren("all", on_failure="continue")
        failed.append(f"{act}: {why(known.get(second, child))}")
    return Retry("; ".join(failed), ErrorCode.CHILD_FAILED) if failed else None


def _tries(known: Mapping[str | None, ChildMission], of: str) -> Iterator[ChildMission]:
    return (child for name, child in known.items() if name is not None and name.startswith(f"{of}."))


def _steps(tools: Tools) -> dict[str, Any]:
    """A row for each step. Of a sequence that fails that is all: `finally` comes after it, and `undone` tells of it."""
    known = {child.name: child for child in tools.children}
    return {"steps": [_row(step, known.get(_step(n))) for n, step in enumerate(tools.payload.steps, 1)]}


def _last(tools: Tools) -> dict[str, Any]:
    """A row for each act of `finally`, as it was done at last."""
    known = {child.name: child for child in tools.children}
    done = [[one for one in _tries(known, f"finally {n + 1}") if one.succeeded] for n in range(len(tools.payload.last))]
    return {"finally": [_row(act, one) for act, [one] in zip(tools.payload.last, done, strict=True)]}


def _row(step: ActStep | LookStep | WaitStep, end: ChildMission | None) -> dict[str, Any]:
    if isinstance(step, WaitStep):
        return step.model_dump()
    return row({"entity": step.entity, **({"action": step.action} if isinstance(step, ActStep) else {})}, end)
