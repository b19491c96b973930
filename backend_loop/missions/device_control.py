"""`device.control`: make a device do something, and say what is true afterwards.

Looked at before the act and again after it: a device that already shows what is wanted is left alone, a person's
newer change wins before the act, and only a reading newer than the act counts as done.

More or less of something (`change_brightness`) becomes a value of its own by the first look, which is kept: however
often the mission is begun again, it is one step. So such a command replaces none that waits, and is replaced by none.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from backend_loop.devices.act import Act, schema_of
from backend_loop.devices.freshness import freshness
from backend_loop.devices.judge import Decision, Verdict, decide, judge, overridden
from backend_loop.devices.protocol import (
    ActUnknown,
    Command,
    DeviceRefused,
    DeviceUnreachable,
    OldFence,
    Reading,
    UnknownEntity,
)
from backend_loop.mission import Latest, Mission, state
from backend_loop.outcomes import Fail, Go, Outcome, Retry, Stop
from backend_loop.retry import Retry as Policy
from backend_loop.toolbox import Toolbox
from shared.actions import ACTIONS, CHANGES, check, settled, wanted
from shared.clock import now_ms, parse_rfc3339, rfc3339
from shared.status import ErrorCode, Priority, Reason

LOOK_S: Final = 2.0
"""A device that takes longer to show itself counts as unreachable."""

ACT_S: Final = 5.0
"""A device that takes longer to say that it obeyed may have done so: it is looked at again."""

PATIENCE_S: Final[Mapping[str, float]] = {"position": 45.0}
"""How long after the act a device may take to show the effect, by aspect: a blind moves for a while."""

PATIENCE_ELSE_S: Final = 5.0
FIRST_LOOK_S: Final = 0.05
END_S: Final = 0.5
"""What verifying leaves of the mission's deadline, so that it ends with its own word and not with `deadline`."""


def _instant(text: str) -> str:
    parse_rfc3339(text)
    return text


Instant = Annotated[
    str,
    Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$", max_length=40),
    AfterValidator(_instant),
]
"""A moment, in RFC 3339."""


class DeviceControl(Mission):
    """Make a device do something; ends with what was observed afterwards."""

    type = "device.control"
    target = "entity"
    priority = Priority.URGENT
    deadline_s = 60.0
    latest = Latest(field="action", aspects={name: action.aspect for name, action in ACTIONS.items()})
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "FETCHING_CURRENT_STATE": {"fetched": "DECIDING_ACTION"},
        "DECIDING_ACTION": {"already_done": "ALREADY_DONE", "act": "EXECUTING_COMMAND"},
        "ALREADY_DONE": {"done": "SUCCEEDED"},
        "EXECUTING_COMMAND": {"acted": "VERIFYING_RESULT", "already_done": "ALREADY_DONE", "contradicted": "FAILED"},
        "VERIFYING_RESULT": {"confirmed": "SUCCEEDED", "contradicted": "FAILED", "unconfirmed": "FAILED"},
    }

    class Payload(Act):
        """What to do to which device."""

        model_config = ConfigDict(extra="allow", json_schema_extra=schema_of([*ACTIONS, *CHANGES]))

        value: Any = Field(
            None, description="for actions that take one: percent, °C, or a word; of a change by how much"
        )

        asked_at: Instant | None = Field(
            None, description="since when this is wanted; a person's change after it wins; default: since the command"
        )
        insist: bool = Field(
            False,
            description="act also where the device shows already what is wanted: an older act that is still under way "
            "to it then comes too late, and is refused by its fence",
        )

        def _check(self) -> None:
            check(self.action, self.value)

    class Context(BaseModel):
        """What was seen last before the act, when we looked, and since when the act may have happened (epoch ms).

        ``settled`` is what a change came to.
        """

        before: Reading | None = None
        looked_at: int = 0
        acted_at: int | None = None
        settled: Command | None = None

    @state("FETCHING_CURRENT_STATE", timeout_s=10, retry=Policy(tries=4, base_s=0.25, cap_s=5))
    async def fetch(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Look at the device."""
        tools.context.looked_at = now_ms()
        try:
            tools.context.before = await tools.observe(tools.payload.entity, within_s=LOOK_S)
        except DeviceUnreachable as fault:
            return Retry(str(fault), ErrorCode.DEVICE_UNREACHABLE)
        except DeviceRefused as fault:
            return Fail(str(fault), ErrorCode.DEVICE_REFUSED)
        return _change_settled(tools) if tools.payload.action in CHANGES else Go("fetched")

    @state("DECIDING_ACTION")
    async def decide(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Act only where something is left to do and nobody has decided otherwise since."""
        return _settled(tools, _before(tools), tools.context.looked_at) or Go("act")

    @state("ALREADY_DONE")
    async def already_done(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Nothing was done: the device already showed what is wanted."""
        reading = _before(tools)
        return Go("done", _result(tools, "already_done", reading), freshness(reading, verified=False))

    @state("EXECUTING_COMMAND", acting=True, timeout_s=10, retry=Policy(tries=4, base_s=0.25, cap_s=5))
    async def execute(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Look once more, then act; where an earlier try may have acted, look whether it did."""
        context, command, began = tools.context, _command(tools), now_ms()
        perhaps_done = context.acted_at is not None or tools.taken_over
        try:
            reading = await tools.observe(command.entity, within_s=LOOK_S)
            if perhaps_done:
                settled = _after_all(tools, reading, context.acted_at or began)
            else:
                settled = _settled(tools, reading, began)
            if settled is not None:
                return settled
            earlier, context.acted_at = context.acted_at, context.acted_at or now_ms()
            try:
                await tools.act(command, within_s=ACT_S)
            except DeviceUnreachable:
                context.acted_at = earlier  # surely not done by this try
                raise
        except ActUnknown as fault:
            return Retry(str(fault), ErrorCode.UNCONFIRMED)
        except DeviceUnreachable as fault:
            return Retry(str(fault), ErrorCode.UNCONFIRMED if perhaps_done else ErrorCode.DEVICE_UNREACHABLE)
        except (DeviceRefused, OldFence) as fault:
            if perhaps_done and isinstance(fault, UnknownEntity):
                sentence = f"{command.entity} may have done it, and cannot be looked at any more: {fault}"
                return Fail(sentence, ErrorCode.UNCONFIRMED)
            return Fail(str(fault), ErrorCode.DEVICE_REFUSED)
        return Go("acted")

    @state("VERIFYING_RESULT", timeout_s=10, retry=Policy(tries=100, base_s=0))
    async def verify(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Read until the device shows the effect, somebody has undone it, or time is up."""
        acted_at = tools.context.acted_at or now_ms()
        try:
            reading = await tools.observe(tools.payload.entity, within_s=LOOK_S)
        except (DeviceUnreachable, DeviceRefused) as fault:
            pause = _pause(tools, acted_at)
            return Go("unconfirmed", detail=str(fault)) if pause is None else _again(str(fault), pause)
        verdict = judge(_before(tools), reading, _command(tools), acted_at=acted_at)
        if verdict is Verdict.UNCONFIRMED:
            pause = _pause(tools, acted_at)
            if pause is not None:
                return _again(f"{tools.payload.entity} does not show the effect yet", pause)
        return _verdict(tools, reading, verdict, acted_at)


Tools = Toolbox[DeviceControl.Payload, DeviceControl.Context]


def _before(tools: Tools) -> Reading:
    reading = tools.context.before
    assert reading is not None, "FETCHING_CURRENT_STATE has read the device"  # noqa: S101  the table says so
    return reading


def _command(tools: Tools) -> Command:
    return tools.context.settled or tools.payload.command


def _change_settled(tools: Tools) -> Outcome:
    """By how much is to what, from now on; a memory of the bridge does not tell what the device shows.

    Without that the device is told nothing, so nothing is `unconfirmed`.
    """
    context, payload, reading = tools.context, tools.payload, _before(tools)
    if reading.observed_at < context.looked_at:
        sentence = (
            f"{payload.entity} has not shown itself since it was looked at, and {payload.action} goes by what it "
            f"shows: it was told nothing; tell it a value, by {CHANGES[payload.action].action}"
        )
        return Retry(sentence, ErrorCode.DEVICE_UNREACHABLE)
    try:
        action, value = settled(payload.action, payload.value, reading.value, reading.limits)
    except ValueError as fault:
        return Fail(f"{payload.entity}: {fault}", ErrorCode.DEVICE_REFUSED)
    context.settled = Command(entity=payload.entity, action=action, value=value)
    return Go("fetched")


def _settled(tools: Tools, reading: Reading, looked_at: int) -> Outcome | None:
    """Why not to act, given this newest reading before the act; else it is kept."""
    before, tools.context.before = _before(tools), reading
    payload, command = tools.payload, _command(tools)
    if not payload.insist and decide(reading, command, looked_at=looked_at) is Decision.ALREADY_DONE:
        return Go("already_done")
    force = (payload.conflict or tools.envelope.conflict) == "force"
    asked_at = parse_rfc3339(payload.asked_at or tools.envelope.created_at)
    if not force and overridden(before, reading, command, asked_at=asked_at):
        tools.context.before = before
        return Stop(Reason.OVERRIDDEN, _result(tools, None, reading), freshness(reading, verified=False))
    return None


def _after_all(tools: Tools, reading: Reading, acted_at: int) -> Outcome | None:
    """What a try whose end nobody knows has done, as far as this reading shows; None: nothing, act with its key."""
    before, command = _before(tools), _command(tools)
    if tools.payload.insist and decide(before, command, looked_at=before.observed_at) is Decision.ALREADY_DONE:
        return None  # what is wanted was to be seen before the act too, and does not prove that it arrived
    verdict = judge(before, reading, command, acted_at=acted_at)
    if verdict is Verdict.CONTRADICTED:
        return _verdict(tools, reading, verdict, acted_at)
    if verdict is Verdict.CONFIRMED:
        tools.context.acted_at = acted_at
        return Go("acted")
    return None


def _verdict(tools: Tools, reading: Reading, verdict: Verdict, acted_at: int) -> Go:
    command = _command(tools)
    values = wanted(command.action, command.value)
    seen = ", ".join(f"{name} {reading.value.get(name)}" for name in values)
    details = {
        Verdict.CONFIRMED: None,
        Verdict.CONTRADICTED: f"{tools.payload.entity} shows {seen}: somebody changed it by hand after the command",
        Verdict.UNCONFIRMED: f"{tools.payload.entity} {_doubt(reading, command, seen, acted_at)}",
    }
    fresh = freshness(reading, verified=reading.observed_at >= acted_at)
    return Go(verdict.value, _result(tools, verdict.value, reading), fresh, details[verdict])


def _doubt(reading: Reading, command: Command, seen: str, acted_at: int) -> str:
    """Why this last reading confirms nothing, as a person would say it."""
    if reading.observed_at < acted_at:
        return f"was told, and its report is older than that: {seen}, as of {rfc3339(reading.observed_at)}"
    if decide(reading, command, looked_at=acted_at) is Decision.ALREADY_DONE:
        return f"shows {seen}, but as the same version of its state as before, when it showed something else"
    return f"shows {seen} although it was told otherwise"


def _pause(tools: Tools, acted_at: int) -> float | None:
    """Seconds until the next look, longer each time; None: time is up."""
    patience = PATIENCE_S.get(ACTIONS[_command(tools).action].aspect, PATIENCE_ELSE_S)
    elapsed = max(0.0, (now_ms() - acted_at) / 1000)
    left = min(patience - elapsed, tools.remaining_s() - END_S)
    return min(max(FIRST_LOOK_S, elapsed / 2), left) if left > FIRST_LOOK_S else None


def _again(message: str, pause: float) -> Retry:
    return Retry(message, ErrorCode.UNCONFIRMED, after_s=pause)


def _result(tools: Tools, outcome: str | None, reading: Reading) -> dict[str, Any]:
    said: dict[str, Any] = {} if outcome is None else {"outcome": outcome}
    if (settled := tools.context.settled) is not None:
        said |= {"action": settled.action, "set": settled.value}
    return {**said, "entity": tools.payload.entity, "value": reading.value, "before": _before(tools).value}
