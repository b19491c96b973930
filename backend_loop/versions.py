"""Older versions of a type: pure steps from each one to the next, for payload, context and state names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

Change = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Example:
    """What a mission of an older version left behind: its payload, and the state and context it was met in."""

    payload: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Upcast:
    """From one version of a type to the next one; all of it pure.

    Args:
        payload, context: from the older dict to the newer one, given a copy; None: nothing changes.
        states: older name of a state → newer one.
        schema: what the payload of the older version looked like, for the door; None: any object.
        examples: stored missions of the older version, at least one; each must pass all steps up to the newest one.
    """

    payload: Change | None = None
    context: Change | None = None
    states: Mapping[str, str] = field(default_factory=dict)
    schema: type[BaseModel] | None = None
    examples: Sequence[Example] = ()
