"""The child program of handlers with ``runs="process"``: ``python -m backend_loop.step_process FD PARENT``.

It imports mission modules by name and stays warm. SIGTERM raises `CutError` in the handler that runs; afterwards the
process ends, since nobody knows what a handler left that was cut at any instruction.
"""

import contextlib
import importlib
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from operator import attrgetter
from types import FrameType
from typing import Any

from pydantic_core import PydanticSerializationError

from backend_loop.lifeline import die_with, take_along
from backend_loop.mission import Mission, outcome_of
from backend_loop.outcomes import Fail, Outcome
from backend_loop.step_frames import HEAD, Frame, pack, told, unpack
from backend_loop.step_tools import REFUSALS, CutError, Facts, StepTools, refused
from shared import logs
from shared.envelope import Envelope
from shared.settings import Settings


class Pipe:
    """The child's end of the socket to its worker."""

    def __init__(self, sock: socket.socket) -> None:
        """Takes the socket over."""
        self._sock, self._file = sock, sock.makefile("rb")
        self._asking = threading.Lock()

    def read(self) -> Frame:
        """The next frame.

        Raises:
            EOFError: the worker is gone, or wants no more of us.
        """
        head = self._file.read(HEAD.size)
        if len(head) < HEAD.size:
            raise EOFError
        size: int = HEAD.unpack(head)[0]
        body = self._file.read(size)
        if len(body) < size:
            raise EOFError
        return unpack(body)

    def write(self, packed: bytes) -> None:
        """Send a frame."""
        self._sock.sendall(packed)

    def check(self) -> None:
        """Ask the worker, which knows lease and deadline; from any thread of the handler's."""
        with self._asking:
            self.write(pack({"check": True}))
            word = self.read()["go"]
        if word:
            raise REFUSALS[word]


class Child:
    """What this process does, one frame after the other."""

    def __init__(self, pipe: Pipe) -> None:
        """Listens to SIGTERM from here on."""
        self._pipe = pipe
        self._running = self._ending = False
        signal.signal(signal.SIGTERM, self._terminated)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's: the worker drains, and says what is to end

    def _terminated(self, _signum: int, _frame: FrameType | None) -> None:
        self._ending = True
        if self._running:
            self._running = False
            raise CutError

    def serve(self) -> None:
        """Until the worker is gone, or a handler was cut."""
        while True:
            frame = self._pipe.read()
            if self._ending:
                return
            if "load" in frame:
                self._pipe.write(pack(_load(frame["load"])))
            else:
                self._pipe.write(self._run(frame["run"]))

    def _run(self, run: Frame) -> bytes:
        mission = attrgetter(run["class"])(sys.modules[run["module"]])
        facts = Facts(**run["facts"])
        with logs.bound(
            type=mission.type, state=run["state"], task_id=facts.task_id, correlation_id=facts.correlation_id
        ):
            try:
                context = mission.Context.model_validate(run["context"])
                tools: StepTools[Any, Any] = StepTools(
                    facts,
                    envelope=Envelope.model_validate(run["envelope"]),
                    payload=mission.Payload.model_validate(run["payload"]),
                    context=context,
                    check=self._pipe.check,
                )
            except Exception as error:  # noqa: BLE001  an author's validator may raise anything
                return pack(_failed(error, mission))
            answer = self._call(getattr(mission(), run["handler"]), tools, mission)
            return _packed({**answer, "context": tools.context}, run["state"])

    def _call(
        self, handler: Callable[[Any], Any], tools: StepTools[Any, Any], mission: type[Mission]
    ) -> dict[str, Any]:
        try:
            self._running = not self._ending
            if self._ending:
                raise CutError  # noqa: TRY301  SIGTERM came before the handler began
            outcome = handler(tools)
            self._running = False
        except tuple(REFUSALS.values()) as refusal:
            return {"refused": refused(refusal)}
        except BaseException as error:  # noqa: BLE001  SystemExit too: a handler ends neither the worker nor this
            return _failed(error, mission)
        finally:
            self._running = False
        if outcome is None or isinstance(outcome, Outcome):
            return {"outcome": told(outcome)}
        return {"returned": repr(outcome)[:200]}


def _load(module: str) -> dict[str, Any]:
    try:
        importlib.import_module(module)
    except BaseException as error:  # noqa: BLE001  whatever a module does at import
        return {"broken": f"{module} cannot be imported in a child process: {type(error).__name__}: {error}"}
    return {"ready": True}


def _failed(error: BaseException, mission: type[Mission]) -> dict[str, Any]:
    lines = "".join(traceback.format_exception(error))
    return {"outcome": told(outcome_of(error, mission.definition)), "traceback": lines}


def _packed(answer: Frame, state: str) -> bytes:
    try:
        return pack(answer)
    except (PydanticSerializationError, ValueError, TypeError, OverflowError) as error:
        return pack({"outcome": told(Fail(f"the outcome of {state} cannot be written as JSON: {error}"))})


def main() -> None:
    """Serve until told to end."""
    die_with(int(sys.argv[2]))
    let_go = take_along()
    pipe = Pipe(socket.socket(fileno=int(sys.argv[1])))
    os.set_inheritable(int(sys.argv[1]), False)  # what a handler starts must not hold our pipe
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        hello = pipe.read()
        sys.path[:] = hello["path"]
        logs.configure(Settings(log_format=hello["log_format"], log_level=hello["log_level"]), hello["service"])
        Child(pipe).serve()
    let_go()


if __name__ == "__main__":
    main()
