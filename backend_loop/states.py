"""How the states of a mission are written: methods marked with what is promised about them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from backend_loop.dependency import Dependency
from backend_loop.retry import Retry

Handler = Callable[[Any, Any], Any]
"""``(mission, tools) -> Outcome``: ``async def`` in the loop, ``def`` in a thread or a process."""
H = TypeVar("H", bound=Handler)

Runs = Literal["loop", "thread", "process"]
OnFailure = Literal["fail", "skip"]

DONE = "done"


@dataclass(frozen=True, slots=True)
class StateSpec:
    """A state: its handler and what is promised about it."""

    name: str
    handler: Handler
    timeout_s: float
    retry: Retry
    acting: bool
    on_failure: OnFailure = "fail"
    uses: tuple[Dependency, ...] = ()
    runs: Runs = "loop"
    holds: bool = False


@dataclass(frozen=True, slots=True)
class UndoSpec:
    """How a state is undone; `name` is that of the undo, as keys of effects and log lines carry it."""

    name: str
    state: str
    handler: Handler
    timeout_s: float
    retry: Retry
    uses: tuple[Dependency, ...] = ()
    runs: Runs = "loop"
    acting: bool = True


def state(  # noqa: PLR0913  the promises of a state
    name: str,
    *,
    timeout_s: float = 30.0,
    retry: Retry | None = None,
    acting: bool = False,
    on_failure: OnFailure = "fail",
    uses: tuple[Dependency, ...] = (),
    runs: Runs = "loop",
    holds: bool = False,
) -> Callable[[H], H]:
    """Make a method the handler of a state.

    Args:
        name: of the state, in capitals.
        timeout_s: a run longer than this is cut and counts as a failed try.
        retry: how a failed try is repeated; default 5 tries, 0.2 s doubling to 30 s, full jitter.
        acting: the handler changes the outside world; its effects carry `tools.key`.
        on_failure: "skip" makes the state optional: when it finally fails the mission goes on by the row's `skipped`,
            or by its only event.
        uses: what it leans on outside; a permit of each is held while the handler runs.
        runs: "thread" for what blocks, "process" for what computes long or holds the interpreter; both plain ``def``.
        holds: what it waits for is waited for with the target held, so that nobody overtakes; others wait as long.
    """

    def mark(handler: H) -> H:
        spec = StateSpec(name, handler, timeout_s, retry or Retry(), acting, on_failure, uses, runs, holds)
        handler.__state__ = spec  # type: ignore[attr-defined]  # read by Mission only
        return handler

    return mark


def undo(
    name: str,
    *,
    timeout_s: float = 30.0,
    retry: Retry | None = None,
    uses: tuple[Dependency, ...] = (),
    runs: Runs = "loop",
) -> Callable[[H], H]:
    """Make a method the undo of a state: it runs if the mission fails or is cancelled after that state was done.

    What was done is undone in reverse; an acting state that was begun and did not answer is undone first, with
    `tools.may_have_happened` set. Return nothing or any Go once it is undone, Retry to be called again, Fail to give
    up: the mission then ends `compensation_failed`.

    Args:
        name: of the state that is undone.
        timeout_s: as of a state.
        retry: as of a state.
        uses: as of a state.
        runs: as of a state.
    """

    def mark(handler: H) -> H:
        spec = UndoSpec(f"UNDO_{name}", name, handler, timeout_s, retry or Retry(), uses, runs)
        handler.__undo__ = spec  # type: ignore[attr-defined]  # read by Mission only
        return handler

    return mark


def steps(*names: str) -> dict[str, dict[str, str]]:
    """The table of a linear machine: each state's `done` leads to the next one, the last one's to SUCCEEDED."""
    return {name: {DONE: after} for name, after in zip(names, (*names[1:], "SUCCEEDED"), strict=True)}


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest command on an aspect of a target replaces the older ones that have not acted yet (P11).

    Args:
        aspect: of every command of the type, such as ``position``; or else
        field: the payload field whose value says which aspect it is about,
        aspects: by that value, such as ``{"turn_on": "power"}``; a value that is not in it replaces nothing.
    """

    aspect: str | None = None
    field: str | None = None
    aspects: Mapping[str, str] | None = None

    def row(self) -> dict[str, Any]:
        """As the catalogue carries it."""
        if self.aspect is not None:
            return {"aspect": self.aspect}
        return {"field": self.field, "aspects": dict(self.aspects or {})}
