"""Wait for a condition with a deadline: the one place of the tests where time passes by itself."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

T = TypeVar("T")
STEP_S = 0.01


def until(condition: Callable[[], T], within: float = 10.0, what: str = "") -> T:
    """The first truthy answer of ``condition``, asked again and again; fails the test after ``within`` seconds."""
    end = time.monotonic() + within
    while not (answer := condition()):
        assert time.monotonic() < end, f"not within {within} s: {what or inspect.getsource(condition).strip()}"
        time.sleep(STEP_S)
    return answer


@overload
async def eventually(condition: Callable[[], Awaitable[T]], within: float = 10.0, what: str = "") -> T: ...
@overload
async def eventually(condition: Callable[[], T], within: float = 10.0, what: str = "") -> T: ...
async def eventually(condition: Callable[[], Awaitable[T] | T], within: float = 10.0, what: str = "") -> T:
    """``until`` for tests with an event loop; the condition may be a coroutine function."""
    end = time.monotonic() + within
    while True:
        answer = condition()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        assert time.monotonic() < end, f"not within {within} s: {what or inspect.getsource(condition).strip()}"
        await asyncio.sleep(STEP_S)
