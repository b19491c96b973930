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

from pydantic import BaseModel

from backend_loop.lifeline import die_with, take_along
from backend_loop.midway import UNWRITABLE, CheckpointError
from backend_loop.mission import Mission, foreseen, outcome_of
from backend_loop.outcomes import Fail, Outcome
from backend_loop.reporting import Progress
from backend_loop.step_frames import HEAD, Frame, pack, told, unpack
from backend_loop.step_lines import GATHERED_S, UNKEPT
from backend_loop.step_tools import REFUSALS, CutError, Facts, StepTools, refused
from shared import logs
from shared.envelope import Envelope
from shared.settings import Settings
from shared.status import ErrorCode


class Cuts:
    """Where SIGTERM raises `CutError`: while a handler runs, but not within a ``with`` of this, where it waits."""

    def __init__(self) -> None:
        """No handler runs."""
        self.running = self.ending = False
        self._whole = 0

    def begin(self) -> None:
        """A handler begins, unless SIGTERM came before."""
        self.running = True
        self._cut()

    def terminated(self, _signum: int, _frame: FrameType | None) -> None:
        """SIGTERM; comes in the main thread, which is the handler's."""
        self.ending = True
        self._cut()

    def __enter__(self) -> None:
        """What follows is done to its end."""
        if threading.current_thread() is threading.main_thread():
            self._whole += 1

    def __exit__(self, *_: object) -> None:
        """From here on it may be cut."""
        if threading.current_thread() is threading.main_thread():
            self._whole -= 1
            self._cut()

    def _cut(self) -> None:
        if self.ending and self.running and not self._whole:
            self.running = False
            raise CutError


class Pipe:
    """The child's end of the socket to its worker."""

    def __init__(self, sock: socket.socket) -> None:
        """Takes the socket over."""
        self._sock, self._file = sock, sock.makefile("rb")
        self._asking, self._writing, self._saying = threading.Lock(), threading.Lock(), threading.Lock()
        self._said: Progress | None = None
        self._timer: threading.Timer | None = None
        self.cuts = Cuts()

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
        """Send a frame, whole."""
        with self.cuts, self._writing:
            self._sock.sendall(packed)

    def progress(self, run: "PipeLine", said: Progress) -> None:
        """Tell it after a while, or with what is said until then."""
        with self.cuts, self._saying:
            if run.over:
                return
            self._said = said
            if self._timer is None:
                self._timer = threading.Timer(GATHERED_S, self._tell)
                self._timer.daemon = True
                self._timer.start()

    def over(self, run: "PipeLine") -> None:
        """Its handler has ended: what that has left running is not heard any more, least of all as the next one."""
        with self.cuts, self._asking, self._saying:
            run.over = True

    def rest(self) -> dict[str, Any]:
        """The progress that was not told yet, for a frame that goes out anyway."""
        with self.cuts, self._saying:
            said, self._said = self._said, None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        return {} if said is None else {"progress": said}

    def _tell(self) -> None:
        with self._writing:  # first: what is said last must not come behind a handler's end
            if rest := self.rest():
                self._sock.sendall(pack(rest))

    def ask(self, run: "PipeLine", question: dict[str, Any]) -> None:
        """Ask the worker, which knows lease and deadline, and keeps a context; from any thread of the handler's."""
        with self._asking:
            if self.cuts.ending or run.over:
                raise CutError  # an answer may have been left unread, or would be that of another handler
            try:
                packed = pack(question | self.rest())
            except UNWRITABLE as error:
                raise CheckpointError(f"the context cannot be written as JSON: {error}", ErrorCode.PERMANENT) from error
            self.write(packed)
            answer = self.read()
        word = answer["go"]
        if word == UNKEPT:
            raise CheckpointError(answer["why"], ErrorCode(answer["code"]))
        if word:
            raise REFUSALS[word]


class PipeLine:
    """The `Line` of one handler."""

    def __init__(self, pipe: Pipe) -> None:
        """`over`: the handler has ended."""
        self._pipe, self.over = pipe, False

    def check(self) -> None:
        """As `Line` says."""
        self._pipe.ask(self, {"check": True})

    def checkpoint(self, context: BaseModel) -> None:
        """As `Line` says."""
        self._pipe.ask(self, {"checkpoint": context})

    def progress(self, said: Progress) -> None:
        """As `Line` says."""
        self._pipe.progress(self, said)


class Child:
    """What this process does, one frame after the other."""

    def __init__(self, pipe: Pipe) -> None:
        """Listens to SIGTERM from here on."""
        self._pipe, self._cuts = pipe, pipe.cuts
        signal.signal(signal.SIGTERM, self._cuts.terminated)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's: the worker drains, and says what is to end

    def serve(self) -> None:
        """Until the worker is gone, or a handler was cut."""
        while not self._cuts.ending:
            frame = self._pipe.read()
            if "load" in frame:
                self._pipe.write(pack(_load(frame["load"])))
            else:
                self._pipe.write(self._run(frame["run"]))

    def _run(self, run: Frame) -> bytes:
        mission = attrgetter(run["class"])(sys.modules[run["module"]])
        facts, line = Facts(**run["facts"]), PipeLine(self._pipe)
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
                    line=line,
                )
            except Exception as error:  # noqa: BLE001  an author's validator may raise anything
                return pack(_failed(error, mission))
            answer = self._call(getattr(mission(), run["handler"]), tools, mission)
            self._pipe.over(line)
            return _packed({**answer, "context": tools.context, **self._pipe.rest()}, run["state"])

    def _call(
        self, handler: Callable[[Any], Any], tools: StepTools[Any, Any], mission: type[Mission]
    ) -> dict[str, Any]:
        try:
            self._cuts.begin()
            outcome = handler(tools)
            self._cuts.running = False
        except CheckpointError as error:
            return {"outcome": told(Fail(str(error), error.code))}
        except tuple(REFUSALS.values()) as refusal:
            return {"refused": refused(refusal)}
        except BaseException as error:  # noqa: BLE001  SystemExit too: a handler ends neither the worker nor this
            return _failed(error, mission)
        finally:
            self._cuts.running = False
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
    known = foreseen(error, mission.definition)
    lines = "".join(traceback.format_exception_only(error) if known else traceback.format_exception(error))
    return {"outcome": told(outcome_of(error, mission.definition)), "traceback": lines}


def _packed(answer: Frame, state: str) -> bytes:
    try:
        return pack(answer)
    except UNWRITABLE as error:
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
