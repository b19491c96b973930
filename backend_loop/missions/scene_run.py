"""`scene.run`: many devices at one word, side by side or one after the other, and a row for what became of each.

Each action is a `device.control` mission of its own: it takes its device like anyone, looks before and after, and is as
old as the scene, so that a newer command or a person's newer hand wins over it. What is under way is always watched to
its end, also after a failure: a lamp whose command is cut may be on or off, and the row is to say which.

Nothing is undone where a scene stops half-way. What a lamp showed before may be what nobody wants any more, and to put
it back would be one more command that nobody gave; the rows say what was done. Whatever is to be left in a known state
in any case belongs into the `finally` of a `device.sequence`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from backend_loop.devices.act import Act
from backend_loop.mission import Mission, state
from backend_loop.missions.ends import NOT_BEGUN, row, seen_by, why
from backend_loop.outcomes import Fail, Go, Outcome, Sleep, WaitForChildren
from backend_loop.toolbox import ChildMission, Toolbox
from shared.clock import now_ms
from shared.status import ErrorCode, Priority

OnFailure = Literal["continue", "stop"]


class SceneAction(Act):
    """What to do to which device, and what its failure means."""

    model_config = ConfigDict(extra="forbid")  # a misspelt on_failure would be a promise that nobody keeps

    on_failure: OnFailure | None = Field(None, description="default: the scene's own")


class SceneRun(Mission):
    """Make many devices do something; ends with a row for each."""

    type = "scene.run"
    priority = Priority.URGENT
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {"RUNNING_ACTIONS": {"done": "SUCCEEDED"}}

    class Payload(BaseModel):
        """What to do, in which order, and what a failure means."""

        model_config = ConfigDict(extra="allow")

        actions: list[SceneAction] = Field(
            min_length=1,
            max_length=100,
            description="each an entity, an action, its value where it takes one, and an on_failure of its own",
            examples=[[{"entity": "light.hall", "action": "turn_on"}]],
        )
        order: Literal["parallel", "sequence"] = Field(
            "parallel", description="sequence: each begins when the one before has ended"
        )
        on_failure: OnFailure = Field(
            "continue",
            description="continue: it is counted, and the scene succeeds if anything was done; "
            "stop: nothing further begins, and the scene fails",
        )
        pause_s: float = Field(0, ge=0, le=600, description="in sequence: seconds between one's end and the next")

    class Context(BaseModel):
        """Before which action it has paused last."""

        paused: int = 0

    @state("RUNNING_ACTIONS", acting=True)
    async def run(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Begin what is to begin now; once nothing is left, say what became of all."""
        children, payload = {child.name: child for child in tools.children}, tools.payload
        ends = [children.get(_name(n)) for n in range(len(payload.actions))]
        begin = due(payload, ends)
        over = sum(end is not None for end in ends)
        if not begin:
            tools.progress(over, len(ends))
            return ended(payload, ends, now_ms())
        first = begin[0]
        tools.progress(over, len(ends), str(payload.actions[first]) if payload.order == "sequence" else None)
        if first > 0 and payload.pause_s and tools.context.paused < first and payload.order == "sequence":
            tools.context.paused = first
            return Sleep(payload.pause_s)
        for n in begin:
            action = payload.actions[n].model_dump(exclude={"on_failure"})
            tools.spawn("device.control", {**action, "asked_at": tools.envelope.created_at}, name=_name(n))
        return WaitForChildren("all", on_failure="continue")


def _name(n: int) -> str:
    return f"action {n + 1}"


def due(scene: SceneRun.Payload, ends: Sequence[ChildMission | None]) -> list[int]:
    """Which actions begin now, given what became of each so far; none: nothing is left to begin."""
    if any(_stops(scene, n) for n, end in enumerate(ends) if end is not None and not end.succeeded):
        return []
    left = [n for n, end in enumerate(ends) if end is None]
    return left if scene.order == "parallel" else left[:1]


def _stops(scene: SceneRun.Payload, n: int) -> bool:
    return (scene.actions[n].on_failure or scene.on_failure) == "stop"


def ended(scene: SceneRun.Payload, ends: Sequence[ChildMission | None], now: int) -> Go | Fail:
    """The scene's end: it fails where an action failed that must not, or where nothing was done at all."""
    rows = [row(_said(action), end) for action, end in zip(scene.actions, ends, strict=True)]
    done = [end is not None and end.succeeded for end in ends]
    failed = [n for n, end in enumerate(ends) if end is not None and not end.succeeded]
    counts = {"done": sum(done), "failed": len(failed), NOT_BEGUN: ends.count(None)}
    result, freshness = {"actions": rows, **counts}, seen_by(ends, now)
    fatal = [n for n in failed if _stops(scene, n)]
    if not fatal and any(done):
        return Go("done", result, freshness)
    worst = (fatal or failed)[0]
    end = ends[worst]
    return Fail(f"{scene.actions[worst]}: {why(end) if end else NOT_BEGUN}", ErrorCode.CHILD_FAILED, result, freshness)


def _said(action: SceneAction) -> dict[str, Any]:
    return {"entity": action.entity, "action": action.action}
