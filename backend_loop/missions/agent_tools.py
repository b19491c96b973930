"""What an agent's model may have done: mission types as functions, and each of its wishes held against that. Pure.

A model says what the texts make it say that it has read, those of strangers too. So what it may do is settled by the
command, before it has read anything, and checked here on what it wants; nothing of it rests on what it was told.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import from_json

from backend_loop.thought import Function, Wanted
from shared.actions import ACTIONS

AGENT: Final = "agent.run"

ARGUMENTS: Final = 4_000
"""Characters of one call's arguments."""

DESCRIPTION: Final = 1_000
"""Characters of a function's; servers take 1,024."""

_NOT_ABOVE: Final = frozenset({"oneOf", "anyOf", "allOf", "enum", "not", "if", "then", "else", "title", "description"})
"""What servers do not take at the top of a schema, or do not need: the type checks it all the same."""


def _no_agent(type_: str) -> str:
    if type_ == AGENT:
        raise ValueError("an agent starts no agents: its model would write what theirs may do")
    return type_


Scalar = str | bool | int | float | None
TypeName = Annotated[
    str,
    Field(
        max_length=64,
        pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$",
        json_schema_extra={"not": {"const": AGENT}},
        examples=["device.query"],
    ),
    AfterValidator(_no_agent),
]


class Tool(BaseModel):
    """A mission type that the model may have run, and with what."""

    model_config = ConfigDict(extra="forbid")

    type: TypeName
    only: dict[str, list[Scalar]] = Field(
        default_factory=dict, description="arguments that have to be one of these, or a list of some of them"
    )
    fixed: dict[str, Any] = Field(
        default_factory=dict,
        description="arguments that the command gives: the model neither sees them nor may say them",
    )

    @model_validator(mode="after")
    def _either(self) -> "Tool":
        if both := sorted(self.only.keys() & self.fixed.keys()):
            raise ValueError(f"{both[0]} is in only and in fixed, so nobody could say it: leave one of them")
        return self


SAFE: Final[tuple[str | Tool, ...]] = (
    Tool(
        type="device.control",
        only={"action": [action for action in ACTIONS if action != "unlock"]},
        fixed={"conflict": "respect_newer", "insist": False},
    ),
    "device.query",
)
"""What may be done without being named: no lock is opened, no money spent, nothing sent away, no person overruled."""


class NotAllowedError(ValueError):
    """This call is not made; the sentence is for the model."""


class Checked(NamedTuple):
    """A call that may be made: with these arguments a mission of this type is to be spawned."""

    type: str
    arguments: dict[str, Any]


def name_of(type_: str) -> str:
    """The function's name of a type: names have no dots, and types no hyphens."""
    return type_.replace(".", "-")


def function(tool: Tool, description: str, payload: Mapping[str, Any]) -> Function:
    """A type as the model is told of it, by the schema of its payload."""
    schema = {name: value for name, value in payload.items() if name not in _NOT_ABOVE}
    known = {name: one for name, one in schema.get("properties", {}).items() if name not in tool.fixed}
    limited = {name: _limited(known.get(name, {}), values) for name, values in tool.only.items() if name in known}
    required = [name for name in schema.get("required", ()) if name not in tool.fixed]
    schema |= {"type": "object", "properties": known | limited}
    schema["required"] = [*required, *(name for name in limited if name not in required)]
    return Function(name_of(tool.type), description[:DESCRIPTION], schema)


def _limited(schema: Mapping[str, Any], values: list[Scalar]) -> dict[str, Any]:
    told = {"description": schema["description"]} if "description" in schema else {}
    return {**told, "enum": values}


def checked(call: Wanted, tools: Mapping[str, Tool]) -> Checked:
    """What a call comes to, given what is allowed, by name of the function.

    Raises:
        NotAllowedError: nothing that may be done.
    """
    tool = tools.get(call.name)
    if tool is None:
        raise NotAllowedError(f"there is no tool {call.name[:100]!r}; there are: {', '.join(sorted(tools)) or 'none'}")
    arguments = parsed(call.arguments)
    if arguments is None:
        raise NotAllowedError("the arguments are not the JSON of an object, or too long")
    if own := sorted(tool.fixed.keys() & arguments.keys()):
        raise NotAllowedError(f"{own[0]} is not yours to say")
    for name, values in tool.only.items():
        if not _among(arguments.get(name, _MISSING), values):
            raise NotAllowedError(f"{name} has to be one of {', '.join(map(repr, values))}")
    return Checked(tool.type, arguments | tool.fixed)


def parsed(text: str) -> dict[str, Any] | None:
    """The arguments of a call; none at all is an empty object. None: they are none."""
    if len(text) > ARGUMENTS:
        return None
    try:
        arguments = from_json(text.strip() or "{}", allow_inf_nan=False)
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None


_MISSING: Final = object()


def _among(value: Any, values: list[Scalar]) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_among(one, values) for one in value)
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in values)
