"""What an agent keeps of its conversation, and how a model gets to read it. Pure.

It is kept as turns, each a reply of the model with an answer to each of its calls, so that what is sent is whole:
servers refuse a call without its answer, and the other way round. It is bounded by two rules, in this order: of the
oldest turns the answers go, then the turns themselves. The newest turn stays; its parts are bounded one by one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, Field
from pydantic_core import to_json

from backend_loop.missions.agent_tools import parsed
from backend_loop.thought import Thought, Wanted

ROOM: Final = 60_000
"""Bytes of all turns, as JSON."""

ANSWER: Final = 4_000
"""Characters of what a call is answered."""

ERROR: Final = 500
"""Characters of why it is not carried out: with escapes, still less than an answer."""

TEXT: Final = 8_000
"""Characters of a reply that asks for calls: what it thinks beside them."""

MOST_CALLS: Final = 32
"""Calls of one reply that are answered at all; what is beyond is as if it had not been said."""

LEFT_OUT: Final = '{"left_out": "this answer was long ago, and is not kept"}'


class Call(BaseModel):
    """One call, as the model reads it again, and its answer."""

    id: str
    function: str
    arguments: str
    answer: str = ""
    task_id: str | None = None
    """The mission that was spawned for it."""


class Turn(BaseModel):
    """One reply of the model."""

    step: int
    text: str = ""
    calls: list[Call] = Field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes, as JSON."""
        return len(to_json(self))


def turn(step: int, thought: Thought, used: Iterable[str] = ()) -> Turn:
    """A reply as it is kept; `used`: ids of calls in other turns, which no two may share."""
    taken, calls = set(used), []
    for n, wanted in enumerate(thought.calls[:MOST_CALLS]):
        id_ = wanted.id if 0 < len(wanted.id) <= 64 and wanted.id not in taken else f"call_{step}_{n}"
        taken.add(id_)
        calls.append(_call(id_, wanted))
    return Turn(step=step, text=cut(thought.text, TEXT), calls=calls)


def _call(id_: str, wanted: Wanted) -> Call:
    """As servers take it back; what cannot be one at all is answered at once."""
    name, arguments = re.sub(r"[^A-Za-z0-9_-]", "_", wanted.name)[:64] or "nameless", parsed(wanted.arguments)
    call = Call(id=id_, function=name, arguments="{}" if arguments is None else to_json(arguments).decode())
    if name != wanted.name:
        call.answer = refusal(f"there is no tool {wanted.name!r}")
    elif arguments is None:
        call.answer = refusal("the arguments are not the JSON of an object, or too long")
    return call


def bounded(turns: Sequence[Turn], room: int = ROOM) -> list[Turn]:
    """As many turns as there is room for, by the two rules above."""
    kept = list(turns)
    for n, one in enumerate(kept[:-1]):
        if _size(kept) <= room:
            break
        emptied = [call.model_copy(update={"answer": min(call.answer, LEFT_OUT, key=len)}) for call in one.calls]
        kept[n] = one.model_copy(update={"calls": emptied})
    while len(kept) > 1 and _size(kept) > room:
        del kept[0]
    return kept


def _size(turns: Iterable[Turn]) -> int:
    return sum(one.size for one in turns)


def messages(system: str, goal: str, turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """All of it, as servers take it."""
    said: list[dict[str, Any]] = [{"role": "system", "content": system}, {"role": "user", "content": goal}]
    for one in turns:
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.function, "arguments": call.arguments}}
            for call in one.calls
        ]
        said.append({"role": "assistant", "content": one.text or None, "tool_calls": calls})
        said += ({"role": "tool", "tool_call_id": call.id, "content": call.answer} for call in one.calls)
    return said


def answer(content: Mapping[str, Any]) -> str:
    """What a call is answered, as JSON and no longer than there is room for."""
    return cut(to_json(content).decode(), ANSWER)


def refusal(why: str) -> str:
    """What a call is answered that is not carried out."""
    return answer({"error": cut(why, ERROR)})


def cut(text: str, most: int) -> str:
    """Its beginning, and how much is left out."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} characters left out)"


def shown(wanted: Wanted) -> str:
    """A call in the log, for a person."""
    return cut(f"{wanted.name} {wanted.arguments}", 200)
