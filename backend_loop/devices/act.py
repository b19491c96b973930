"""What may be said of an act in a payload: the model, and the JSON Schema by which the door refuses nonsense."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from backend_loop.devices.protocol import Command
from shared.actions import ACTIONS, CHANGES, wanted


def schema_of(actions: Iterable[str]) -> Callable[[dict[str, Any]], None]:
    """The rules of each action's value, so that the door refuses with 422 what the device would refuse later."""

    def schema(schema: dict[str, Any]) -> None:
        alike = dict[str, tuple[list[str], dict[str, Any]]]()
        for name in actions:
            rule = _value_of(name)
            alike.setdefault(str(rule), ([], rule))[0].append(name)
        schema["properties"]["action"]["enum"] = list(actions)
        schema["allOf"] = [
            {"if": {"properties": {"action": {"enum": names}}, "required": ["action"]}, "then": rule}
            for names, rule in alike.values()
        ]

    return schema


def _value_of(name: str) -> dict[str, Any]:
    if (change := CHANGES.get(name)) is not None:
        by = {"type": "number", "minimum": -change.most, "maximum": change.most, "not": {"const": 0}}
        return {"properties": {"value": by}, "required": ["value"]}
    action = ACTIONS[name]
    if action.field is None:
        return {"properties": {"value": {"type": "null"}}}
    if action.between is None:
        return {"properties": {"value": {"enum": list(action.choices)}}, "required": ["value"]}
    low, high = action.between
    return {"properties": {"value": {"type": "number", "minimum": low, "maximum": high}}, "required": ["value"]}


class Act(BaseModel):
    """What to do to which device."""

    model_config = ConfigDict(json_schema_extra=schema_of(ACTIONS))

    entity: str = Field(min_length=1, max_length=200, examples=["light.living_room"])
    action: str = Field(examples=["turn_on"])
    value: Any = Field(None, description="for actions that take one: percent, °C, or a word")
    conflict: Literal["respect_newer", "force"] | None = Field(None, description="default: the command's own")

    @model_validator(mode="after")
    def _sensible(self) -> "Act":
        self._check()
        return self

    def _check(self) -> None:
        wanted(self.action, self.value)

    @property
    def command(self) -> Command:
        """As devices take it."""
        return Command(entity=self.entity, action=self.action, value=self.value)

    def __str__(self) -> str:
        """For a person."""
        return " ".join(str(part) for part in (self.action, self.entity, self.value) if part is not None)
