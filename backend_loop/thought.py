"""What is said between a handler and a language model: functions, calls that are wished for, texts. Pure data."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Function(NamedTuple):
    """What the model may want called; `parameters` is the JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class Wanted(NamedTuple):
    """A call that the model wants made, as it said it: nothing of it has been checked."""

    id: str
    name: str
    arguments: str


class Usage(NamedTuple):
    """Tokens; `told` by the server, or else guessed, at four characters each."""

    prompt: int
    completion: int
    told: bool = True


class Thought(NamedTuple):
    """What the model answered: calls, or a text without any; `cut`: it came to its limit of tokens."""

    text: str
    calls: tuple[Wanted, ...]
    usage: Usage
    cut: bool = False
