"""What a state promises about its handler, checked at import."""

import inspect
import math
import re
from typing import Any, Final

from backend_loop.dependency import Breaker, Dependency
from backend_loop.outcomes import LONGEST_S
from backend_loop.retry import Retry
from backend_loop.states import StateSpec, UndoSpec


class DefinitionError(TypeError):
    """A mission type is not well formed; the sentence says what to change."""


NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")


def is_number(value: object) -> bool:
    """An int or a float; True is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_count(value: object) -> bool:
    """A whole number from 1."""
    return type(value) is int and value >= 1


def check_promises(where: str, spec: StateSpec | UndoSpec, *, nested: bool) -> None:
    """Check time limits, retries, where it runs and what it uses.

    Args:
        where: what is said of the mission type.
        spec: a state or an undo.
        nested: the class is defined within a function, so that no other process can import it.

    Raises:
        DefinitionError: with what to change.
    """
    head = f"{where}: state {spec.name}:"
    if not (is_number(spec.timeout_s) and 0 < spec.timeout_s < math.inf):
        raise DefinitionError(f"{head} timeout_s is {spec.timeout_s!r}: say seconds, more than 0 and finite")
    _check_retry(head, spec.retry)
    if isinstance(spec, StateSpec) and spec.on_failure not in {"fail", "skip"}:
        raise DefinitionError(f'{head} on_failure is {spec.on_failure!r}: say "fail" or "skip"')
    _check_runs(head, spec.runs, spec.handler, nested=nested)
    if not isinstance(spec.uses, tuple):
        raise DefinitionError(f"{head} uses is {spec.uses!r}: write a tuple, such as uses=(PAYMENTS,)")
    for dependency in spec.uses:
        _check_dependency(head, dependency)
    names = [dependency.name for dependency in spec.uses]
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise DefinitionError(f"{head} uses {doubled} twice: name it once")


def _check_retry(head: str, retry: object) -> None:
    if not isinstance(retry, Retry):
        raise DefinitionError(f"{head} retry is {retry!r}: set it to a backend_loop.retry.Retry")
    if not is_count(retry.tries):
        raise DefinitionError(f"{head} tries is {retry.tries!r}: a whole number from 1, the first run included")
    for name, value in (("base_s", retry.base_s), ("cap_s", retry.cap_s)):
        if not (is_number(value) and 0 <= value <= LONGEST_S):
            raise DefinitionError(f"{head} {name} is {value!r}: say seconds from 0 to {LONGEST_S:.0f}")
    elapsed = retry.max_elapsed_s
    if elapsed is not None and not (is_number(elapsed) and 0 < elapsed <= LONGEST_S):
        raise DefinitionError(
            f"{head} max_elapsed_s is {elapsed!r}: say seconds, more than 0 and at most {LONGEST_S:.0f}, or None"
        )


def _check_runs(head: str, runs: str, handler: Any, *, nested: bool) -> None:
    asynchronous = inspect.iscoroutinefunction(handler)
    if runs not in {"loop", "thread", "process"}:
        raise DefinitionError(f'{head} runs is {runs!r}: say "loop", "thread" or "process"')
    if runs == "loop" and not asynchronous:
        raise DefinitionError(f'{head} a plain def would block the loop: write async def, or say runs="thread"')
    if runs != "loop" and asynchronous:
        raise DefinitionError(f'{head} runs="{runs}" takes a plain def: take the async away, or say runs="loop"')
    if runs == "process" and nested:
        raise DefinitionError(f"{head} a process cannot import what is defined in a function: move it to its module")
    try:
        inspect.signature(handler).bind(None, None)
    except TypeError:
        taken = inspect.signature(handler)
        raise DefinitionError(f"{head} its handler takes {taken}: write it with (self, tools)") from None


def _check_dependency(head: str, dependency: Any) -> None:
    if not isinstance(dependency, Dependency):
        raise DefinitionError(f"{head} uses has {dependency!r}: name a backend_loop.dependency.Dependency")
    name = dependency.name
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise DefinitionError(f"{head} uses {name!r}: name it by small letters, digits, _ and -, a letter first")
    for word in ("concurrency", "per_target"):
        if (value := getattr(dependency, word)) is not None and not is_count(value):
            raise DefinitionError(f"{head} {word} of {name} is {value!r}: say a whole number from 1, or None")
    if not (is_number(dependency.retry_ratio) and 0 <= dependency.retry_ratio < math.inf):
        raise DefinitionError(
            f"{head} retry_ratio of {name} is {dependency.retry_ratio!r}: say retries per call, such as 0.2"
        )
    if dependency.breaker is not None:
        _check_breaker(f"{head} breaker of {name}:", dependency.breaker)


def _check_breaker(head: str, breaker: Any) -> None:
    if not isinstance(breaker, Breaker):
        raise DefinitionError(f"{head} it is {breaker!r}: set it to a Breaker, or to None")
    for word in ("failures", "probes"):
        if not is_count(value := getattr(breaker, word)):
            raise DefinitionError(f"{head} {word} is {value!r}: say a whole number from 1")
    for word in ("open_s", "ramp_s"):
        if not (is_number(value := getattr(breaker, word)) and 0 <= value <= LONGEST_S):
            raise DefinitionError(f"{head} {word} is {value!r}: say seconds from 0 to {LONGEST_S:.0f}")
