"""`device.query`: what a device shows now, or several; or wait until one shows what is expected of it.

A look, not a memory: a bridge that answers with what it knew before it was asked is asked again, and if it knows no
better the device counts as unreachable; what is remembered is in the result even so. There is no target: who reads does
not queue behind who acts. A look proves no act, so `freshness.verified` is false, as the contract has it.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

from backend_loop.devices.freshness import freshness, oldest
from backend_loop.devices.protocol import DeviceFault, DeviceRefused, DeviceUnreachable, Reading
from backend_loop.mission import Mission, state
from backend_loop.missions.home import Entity, Expected, look
from backend_loop.outcomes import Fail, Go, Outcome, Retry, Sleep
from backend_loop.retry import Retry as Policy
from backend_loop.toolbox import Toolbox
from shared.clock import now_ms, rfc3339
from shared.status import ErrorCode, Priority

LOOK_S: Final = 2.0
"""A device that takes longer to show itself counts as unreachable."""

END_S: Final = 0.5
"""What is left of the mission's deadline, so that it ends with its own word and not with `deadline`."""

AGAIN: Final = Policy(tries=4, base_s=0.25, cap_s=5)
"""How often a device that does not answer is looked at."""

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0
"""Between two looks for what is expected: a twentieth of the time that it has taken so far, within these."""

Entities = Annotated[list[Entity], Field(min_length=1, max_length=100, json_schema_extra={"uniqueItems": True})]


def _one_expected(schema: dict[str, Any]) -> None:
    schema["if"] = {"required": ["expect"], "properties": {"expect": {"type": "object"}}}
    schema["then"] = {"properties": {"entity": {"type": "string"}}}


class DeviceQuery(Mission):
    """Look at a device now, or at several; or wait until one shows what is expected."""

    type = "device.query"
    priority = Priority.URGENT
    deadline_s = 60.0
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "OBSERVING": {"observed": "SUCCEEDED", "unconfirmed": "FAILED"},
    }

    class Payload(BaseModel):
        """Whom to look at."""

        model_config = ConfigDict(extra="allow", json_schema_extra=_one_expected)

        entity: Entity | Entities = Field(description="one, or a list")
        expect: Expected | None = Field(None, description="of one device: the values that it is to show")
        within_s: float = Field(
            0, ge=0, le=3_600, description="seconds that it may take to show them; the deadline may come before"
        )

        @model_validator(mode="after")
        def _sensible(self) -> "DeviceQuery.Payload":
            if self.expect is not None and not isinstance(self.entity, str):
                raise ValueError("expect is for one entity")
            if len(set(self.entities)) < len(self.entities):
                raise ValueError("an entity is named twice")
            return self

        @property
        def entities(self) -> list[str]:
            """All of them."""
            return [self.entity] if isinstance(self.entity, str) else self.entity

    class Context(BaseModel):
        """What was seen, by entity; `remembered`: what was not seen, but told by a bridge. `began_at` in epoch ms."""

        seen: dict[str, Reading] = Field(default_factory=dict)
        remembered: dict[str, Reading] = Field(default_factory=dict)
        began_at: int = 0

    @state("OBSERVING", timeout_s=10, retry=AGAIN)
    async def observe(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Look at all that was not seen yet."""
        context, payload = tools.context, tools.payload
        context.began_at = context.began_at or now_ms()
        faults = await _look(tools)
        for fault in faults.values():
            if isinstance(fault, DeviceRefused):
                return Fail(str(fault), ErrorCode.DEVICE_REFUSED, *_told(tools, faults))
        if payload.expect is not None:
            return _expected(tools, payload.expect, faults)
        if faults:
            return _unreachable(tools, faults)
        return Go("observed", *_told(tools, {}))


Tools = Toolbox[DeviceQuery.Payload, DeviceQuery.Context]
Faults = Mapping[str, DeviceFault]


def shows(value: Mapping[str, Any], expect: Mapping[str, Any]) -> bool:
    """Whether a device that shows `value` shows all that is expected; 1 is 1.0, and no number is True."""
    return all(name in value and _same(value[name], wanted) for name, wanted in expect.items())


def _same(one: Any, other: Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


async def _look(tools: Tools) -> Faults:
    """Keep what is seen of all that was not seen yet; who was not seen, and why."""
    context = tools.context
    left = [entity for entity in tools.payload.entities if entity not in context.seen]
    looked = await look(tools, left, within_s=min(LOOK_S, max(0.0, tools.remaining_s() - END_S)))
    context.seen |= looked.seen
    known = context.remembered | looked.remembered
    context.remembered = {entity: reading for entity, reading in known.items() if entity not in context.seen}
    return looked.faults | {
        entity: DeviceUnreachable(
            f"{entity} was not read anew: its bridge remembers it as of {rfc3339(reading.observed_at)}"
        )
        for entity, reading in looked.remembered.items()
    }


def _unreachable(tools: Tools, faults: Faults) -> Outcome:
    """Once more, unless there is no time for it."""
    sentence = "; ".join(str(fault) for fault in list(faults.values())[:3])
    more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
    longest = AGAIN.pause_ms(tools.attempt, 1.0) / 1000
    if tools.attempt >= AGAIN.tries or tools.remaining_s() < longest + 2 * END_S:
        return Fail(sentence + more, ErrorCode.DEVICE_UNREACHABLE, *_told(tools, faults))
    return Retry(sentence + more, ErrorCode.DEVICE_UNREACHABLE)


def _expected(tools: Tools, expect: Mapping[str, Any], faults: Faults) -> Outcome:
    """What follows from one look at a device of which something is expected."""
    context, entity = tools.context, tools.payload.entities[0]
    if not faults and shows(context.seen[entity].value, expect):
        return Go("observed", *_told(tools, {}))
    waited = max(0.0, (now_ms() - context.began_at) / 1000)
    left = tools.payload.within_s - waited
    pause = min(max(FIRST_PAUSE_S, waited / 20), LONGEST_PAUSE_S, left)
    if left > 0 and pause < tools.remaining_s() - 2 * END_S:  # else there is no time for another look
        if not faults:
            context.remembered[entity] = context.seen.pop(entity)  # it is to be looked at anew
        return Sleep(pause)
    if faults:
        return _unreachable(tools, faults)
    value = context.seen[entity].value
    seen = ", ".join(f"{name} {value.get(name)}, not {wanted}" for name, wanted in expect.items())
    return Go("unconfirmed", *_told(tools, {}), f"{entity} shows {seen}")


def _told(tools: Tools, faults: Faults) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The result, and the freshness of its oldest reading."""
    known = {**tools.context.remembered, **tools.context.seen}
    age = oldest(known.values())
    if isinstance(tools.payload.entity, str):
        return _shown(tools.payload.entity, known), age
    return {"devices": [_row(entity, known, faults) for entity in tools.payload.entities]}, age


def _shown(entity: str, known: Mapping[str, Reading]) -> dict[str, Any]:
    return {"entity": entity, "value": known[entity].value if entity in known else None}


def _row(entity: str, known: Mapping[str, Reading], faults: Faults) -> dict[str, Any]:
    age = freshness(known[entity], verified=False) if entity in known else None
    fault = faults.get(entity)
    return {**_shown(entity, known), "freshness": age, "error": None if fault is None else str(fault)}
