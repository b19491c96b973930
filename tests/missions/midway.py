"""What handlers in threads and processes do midway: they keep something, say how far they are, leave something."""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from backend_loop.midway import CheckpointError
from backend_loop.outcomes import Fail, Go, Outcome
from backend_loop.step_tools import CutError, StepTools

Tools = StepTools[Any, Any]


def _keep(tools: Tools) -> None:
    """Three items, each kept; what comes after a checkpoint is not in it."""
    for n in range(1, 4):
        tools.context.done.append(f"item {n}")
        tools.progress(n, 3, f"item {n}")
        tools.checkpoint()
        tools.context.done.append(f"after {n}")


def _keep_on(tools: Tools) -> None:
    """Without end: one kept item after the other."""
    while True:
        tools.context.done.append("more")
        tools.checkpoint()


def _keep_much(tools: Tools) -> None:
    """So much that it takes a while to be said."""
    tools.context.done.append("x" * 3_000_000)
    tools.checkpoint()


def _keep_then_deaf(tools: Tools) -> None:
    """Keeps something, hears nothing until its mark is gone, and does more then."""
    tools.context.done.append("kept")
    tools.checkpoint()
    while tools.payload.mark.exists():
        with contextlib.suppress(CutError):
            time.sleep(0.01)
    tools.context.done.append("late")


def _unkept(tools: Tools) -> Outcome:
    """Leaves what nobody can keep, and does something about it."""
    tools.context.done.append("\ud800" if tools.payload.seconds else "x" * 100)
    try:
        tools.checkpoint()
    except CheckpointError as error:
        tools.context.done.pop()
        tools.checkpoint()
        return Fail(str(error), error.code)
    return Go("done")


def _say(tools: Tools) -> None:
    """Says it for each of many items, and goes on without another word to its worker."""
    for n in range(20_000):
        tools.progress(n + 1, 20_000)
    while True:
        time.sleep(0.01)
        if threading.current_thread() is not threading.main_thread():
            tools.check()  # a thread says nothing by that, and hears no cut else


_left: list[tuple[threading.Event, threading.Thread]] = []


def _leave(tools: Tools) -> None:
    """Leaves a thread that speaks once the next handler runs in the same process."""
    goes_on = threading.Event()

    def speak() -> None:
        goes_on.wait()
        tools.progress(1)
        for ask in (tools.check, tools.checkpoint):
            with contextlib.suppress(CutError):
                ask()

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    _left.append((goes_on, thread))


def _let_speak(_: Tools) -> None:
    """Lets it, and hears it out."""
    goes_on, thread = _left.pop()
    goes_on.set()
    thread.join()


MIDWAY: Final[Mapping[str, Callable[[Tools], Any]]] = {
    "keep": _keep,
    "keep on": _keep_on,
    "keep much": _keep_much,
    "keep, then deaf": _keep_then_deaf,
    "unkept": _unkept,
    "unkept, and lets it pass": lambda tools: tools.checkpoint(),
    "say": _say,
    "say nonsense": lambda tools: tools.progress(-1),
    "leave": _leave,
    "let speak": _let_speak,
    "say last": lambda tools: tools.progress(7),
}
