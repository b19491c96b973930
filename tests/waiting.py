"""Wait for a condition with a deadline: the one place of the tests where time passes by itself."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

T = TypeVar("T")
WITHIN_S = 60.0  # generous: it matters only where a test fails, and other test runs may share the cores
STEPS_S = (0.005, 0.05)  # between two looks: first, and at most
GROWTH = 1.2


def until(condition: Callable[[], T], within: float | None = None, what: str = "") -> T:
    """The first truthy answer of ``condition``, asked again and again; fails the test after ``within`` seconds."""
    within = WITHIN_S if within is None else within
    end, step = time.monotonic() + within, STEPS_S[0]
    while not (answer := condition()):
        assert time.monotonic() < end, f"not within {within} s: {what or inspect.getsource(condition).strip()}"
        time.sleep(step)
        step = min(step * GROWTH, STEPS_S[1])
    return answer


@overload
async def eventually(condition: Callable[[], Awaitable[T]], within: float = WITHIN_S, what: str = "") -> T: ...
@overload
async def eventually(condition: Callable[[], T], within: float = WITHIN_S, what: str = "") -> T: ...
async def eventually(condition: Callable[[], Awaitable[T] | T], within: float = WITHIN_S, what: str = "") -> T:
    """``until`` for tests with an event loop; the condition may be a coroutine function."""
    end, step = time.monotonic() + within, STEPS_S[0]
    while True:
        answer = condition()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        assert time.monotonic() < end, f"not within {within} s: {what or inspect.getsource(condition).strip()}"
        await asyncio.sleep(step)
        step = min(step * GROWTH, STEPS_S[1])
