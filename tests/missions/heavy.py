"""Handlers that compute, block or die: in a thread, in a process, and where they should not, in the loop."""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, field_validator

from backend_loop.mission import Latest, Mission, state, steps, undo
from backend_loop.outcomes import Fail, Go, Outcome
from backend_loop.retry import Retry
from backend_loop.step_tools import CutError, StepTools
from backend_loop.toolbox import Toolbox
from tests.missions.gate import opened
from tests.missions.midway import MIDWAY
from tests.missions.tally import seen, tally

TWICE = Retry(tries=2, base_s=0.01)


class Work(BaseModel):
    """What the handler is to do, and for how long."""

    how: str = "answer"
    seconds: float = 600.0
    mark: Path | None = None
    """A file to make once the handler has begun; a deaf one hears again once it is gone. Of others it is the gate."""


class Notes(BaseModel):
    """What it did, as it goes into the mission's context."""

    done: list[str] = []


Tools = StepTools[Work, Notes]


class OutOfPaperError(Exception):
    """Named as permanent."""


def work(tools: Tools) -> Outcome:
    """Any of it."""
    tally(tools, "begin")
    tools.context.done.append(tools.payload.how)
    if tools.payload.how not in UNMOVED:
        _mark(tools)
    return DOES[tools.payload.how](tools) or Go("done", result=_facts(tools))


def _mark(tools: Tools) -> None:
    if tools.payload.mark is not None:
        tools.payload.mark.touch()


def _deaf(tools: Tools) -> None:
    """Goes on whatever it is told, for so long, or until its mark is gone."""
    end = time.monotonic() + tools.payload.seconds
    try:
        _mark(tools)
        _until(end, tools.payload.mark)
    except CutError:
        tally(tools, "deaf")
        _until(end, tools.payload.mark)


def _until(end: float, mark: Path | None) -> None:
    while time.monotonic() < end and (mark is None or mark.exists()):
        time.sleep(0.01)


def _late(tools: Tools) -> Outcome:
    """It is cut, and gives an outcome nevertheless."""
    try:
        _mark(tools)
        while True:
            tools.check()
    except CutError:
        return Fail("cut, and this is what I know")


def _spin(tools: Tools) -> None:
    while True:
        tools.check()


def _gate(tools: Tools) -> None:
    """Costs little, hears a cut, and goes on once the gate is open."""
    while tools.payload.mark is None or not tools.payload.mark.exists():
        tools.check()
        time.sleep(0.01)


def _value(_: Tools) -> None:
    raise ValueError("no such value")


def _paper(_: Tools) -> None:
    raise OutOfPaperError("empty tray")


def _print(_: Tools) -> None:
    sys.stdout.write("printed by a handler\n")
    os.write(1, b"written by a handler\n")


def _offspring(tools: Tools) -> None:
    child = subprocess.Popen(("sleep", "600"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    tally(tools, f"offspring-{child.pid}")
    _deaf(tools)


def hold(seconds: float) -> None:
    """Native code that keeps the interpreter."""
    ctypes.PyDLL(None).usleep(round(seconds * 1e6))


def hold_until_written(fifo: Path) -> None:
    """The same, until somebody writes to this named pipe."""
    ctypes.PyDLL(None).open(str(fifo).encode(), os.O_RDONLY)


def sleeps(seconds: float) -> None:
    """Blocks, and lets other threads run meanwhile."""
    time.sleep(seconds)


DOES: Final[Mapping[str, Callable[[Tools], Any]]] = {
    "answer": lambda _: None,
    "spin": _spin,
    "deaf": _deaf,
    "gate": _gate,
    "late": _late,
    "value": _value,
    "paper": _paper,
    "segfault": lambda _: ctypes.string_at(0),
    "exit": lambda _: os._exit(3),
    "sysexit": lambda _: sys.exit(4),
    "print": _print,
    "nonsense": lambda _: 42,
    "unwritable": lambda _: Go("done", result={"what": object()}),
    "much": lambda _: Go("done", result={"much": "x" * 6_000_000}),
    "offspring": _offspring,
    **MIDWAY,
    "hold": lambda tools: hold(tools.payload.seconds),
    "sleep": lambda tools: sleeps(tools.payload.seconds),
}


UNMOVED = {"deaf", "late", "gate"}
"""The first can be cut as soon as their mark is there, so they make it where a cut does not end them."""


def _facts(tools: Tools) -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "thread": threading.current_thread().name,
        "main": threading.current_thread() is threading.main_thread(),
        "key": tools.key,
        "fence": tools.fence,
        "attempt": tools.attempt,
        "visit": tools.visit,
        "taken_over": tools.taken_over,
        "in_time": tools.remaining_s() > 0,
        "traceparent": tools.traceparent,
        "received": tools.received,
        "session": tools.envelope.session,
    }


class InThread(Mission):
    """In a thread."""

    type = "test.thread"
    table = steps("WORKING")
    Payload, Context = Work, Notes
    permanent = (OutOfPaperError,)

    @state("WORKING", runs="thread", timeout_s=600, retry=TWICE)
    def work(self, tools: Tools) -> Outcome:
        return work(tools)


class InProcess(Mission):
    """In a child process."""

    type = "test.process"
    table = steps("WORKING")
    Payload, Context = Work, Notes
    permanent = (OutOfPaperError,)

    @state("WORKING", runs="process", timeout_s=600, retry=TWICE)
    def work(self, tools: Tools) -> Outcome:
        return work(tools)


class ShortThread(Mission):
    """A thread with little time."""

    type = "test.thread_short"
    table = steps("WORKING")
    Payload, Context = Work, Notes

    @state("WORKING", runs="thread", timeout_s=0.5, retry=TWICE)
    def work(self, tools: Tools) -> Outcome:
        return work(tools)


class ShortProcess(Mission):
    """A process with little time."""

    type = "test.process_short"
    table = steps("WORKING")
    Payload, Context = Work, Notes

    @state("WORKING", runs="process", timeout_s=0.5, retry=TWICE)
    def work(self, tools: Tools) -> Outcome:
        return work(tools)


class Undone(Mission):
    """What a process did, a process undoes."""

    type = "test.process_undone"
    table = steps("DOING", "FAILING")
    Payload, Context = Work, Notes

    @state("DOING", runs="process", acting=True)
    def do(self, tools: Tools) -> Outcome:
        tools.context.done.append("did")
        tally(tools, "did")
        return Go("done")

    @undo("DOING", runs="process")
    def undo(self, tools: Tools) -> None:
        tally(tools, f"undid-{'-'.join(tools.context.done)}")

    @state("FAILING", runs="thread")
    def fail(self, tools: Tools) -> Outcome:
        tools.context.done.append("failed")
        return Fail("on purpose")


class InLoop(Mission):
    """In the event loop, where it does not belong."""

    type = "test.blocks"
    table = steps("WORKING")
    Payload, Context = Work, Notes

    @state("WORKING", timeout_s=600, retry=TWICE)
    async def work(self, tools: Toolbox[Work, Notes]) -> Outcome:
        tally(tools, "begin")
        if tools.taken_over:
            return Go("done")
        match tools.payload.how:
            case "hold" if tools.payload.mark is not None:
                hold_until_written(tools.payload.mark)
            case _:
                sleeps(tools.payload.seconds)
        return Go("done")


class Poison(Mission):
    """Ends the process it runs in, every time; or is quite healthy and long."""

    type = "test.poison"
    table = steps("WORKING")
    Payload, Context = Work, Notes

    @state("WORKING", timeout_s=600)
    async def work(self, tools: Toolbox[Work, Notes]) -> Outcome:
        tally(tools, f"begin-{os.getpid()}")
        match tools.payload.how:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "segfault":
                ctypes.string_at(0)
            case "exit":
                os._exit(9)
            case "memory":
                _eat()
            case "gate":
                await opened(tools.payload.mark)
        return Go("done", result={"pid": os.getpid()})


class Unreadable(Mission):
    """Kills whoever reads its payload."""

    type = "test.unreadable"
    table = steps("WORKING")

    class Payload(BaseModel):
        """Bad for you."""

        dose: int

        @field_validator("dose")
        @classmethod
        def _take(cls, dose: int) -> int:
            if dose > 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return dose

    @state("WORKING")
    async def work(self, _tools: Any) -> Outcome:
        return Go("done")


class Newest(Mission):
    """Asks before its act whether a newer command exists, and kills its process then."""

    type = "test.poison_newest"
    table = steps("ACTING")
    target = "lamp"
    latest = Latest(aspect="power")

    class Payload(BaseModel):
        """What it acts on."""

        lamp: str = "light.kitchen"

    @state("ACTING", acting=True)
    async def act(self, tools: Toolbox[Any, Any]) -> Outcome:
        tally(tools, f"begin-{os.getpid()}")
        os.kill(os.getpid(), signal.SIGKILL)
        return Go("done")


class Late(Mission):
    """Kills two workers, survives its own process, and kills whatever it is in from there on."""

    type = "test.poison_late"
    table = steps("ONE", "TWO")
    Payload, Context = Work, Notes

    @state("ONE")
    async def one(self, tools: Toolbox[Work, Notes]) -> Outcome:
        tally(tools, f"begin-{os.getpid()}")
        if seen(tools.task_id, "ONE") < 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return Go("done")

    @state("TWO")
    async def two(self, tools: Toolbox[Work, Notes]) -> Outcome:
        tally(tools, f"begin-{os.getpid()}")
        os.kill(os.getpid(), signal.SIGKILL)
        return Go("done")


def _eat() -> None:
    """Until the limit, where the kernel would end us; where memory is only refused, the same is done by hand."""
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, resource.RLIM_INFINITY))
    eaten = []
    try:
        while True:
            eaten.append(bytes(64 << 20))
    except MemoryError:
        os.kill(os.getpid(), signal.SIGKILL)
