"""Says which handler blocks the event loop: the lease stands while it does, but nothing else runs (B17, B18)."""

import inspect
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import Any, Final, NamedTuple

from backend_loop.debugger import held, outwards
from backend_loop.mission import MissionType, StateSpec, UndoSpec
from backend_loop.redis_clock import boottime
from shared.logs import get

log = get(__name__)

LOOKS: Final = 4
"""Looks at the event loop per time that it may stand still."""

ADVICE: Final = 'give its state runs="thread" if it waits, runs="process" if it computes or holds the interpreter'


class Blamed(NamedTuple):
    """A handler, as the log names it."""

    type: str
    state: str
    handler: str


class BlockWatch(threading.Thread):
    """Looks at the loop's thread from outside, when the loop has not ticked for too long; says so again and again.

    Args:
        types: whose handlers are known.
        limit_s: how long a loop may stand still unremarked.
    """

    def __init__(self, types: Iterable[MissionType], limit_s: float) -> None:
        """Nothing is watched yet."""
        super().__init__(name="block-watch", daemon=True)
        self._limit_s, self._handlers = limit_s, _handlers(types)
        self._ticked = boottime
        self._watched = 0
        self._ending, self._looking, self._said_s = threading.Event(), threading.Lock(), 0.0
        self._excused = 0.0  # the last tick before a breakpoint

    def begin(self, ticked: Callable[[], float]) -> None:
        """Watch the event loop of the calling thread; `ticked` says when it last ticked, boot time in seconds."""
        self._ticked, self._watched = ticked, threading.get_ident()
        self.start()

    def stop(self) -> None:
        """Stop; returns when the thread has ended, which is at once."""
        self._ending.set()
        self.join()

    def run(self) -> None:
        """The thread."""
        pause, began = self._limit_s / LOOKS, boottime()
        while not self._ending.wait(pause):
            overslept, began = boottime() - began > self._limit_s, boottime()
            with self._looking:
                self._look(overslept=overslept)

    def overslept(self) -> None:
        """Look now: the calling thread could not run for long. Whoever comes first sees best who was to blame."""
        with self._looking:
            self._look(overslept=True)

    def ran(self, handler: Callable[..., Any]) -> None:
        """A handler has answered, in the loop: if that has not ticked for so long and no thread could look, name it."""
        blocked_s = boottime() - self._ticked()
        if blocked_s >= self._limit_s and self._ticked() != self._excused:
            with self._looking:
                code = _code(handler)
                if code in self._handlers and blocked_s >= self._said_s + self._limit_s:
                    self._said_s = blocked_s
                    self._blame(self._handlers[code], blocked_s, code, code.co_firstlineno)

    def _look(self, *, overslept: bool) -> None:
        ticked = self._ticked()
        blocked_s = boottime() - ticked
        if blocked_s >= self._limit_s / LOOKS and held(self._watched):
            self._excused = ticked  # a person looks, and that is nobody's fault
        if blocked_s < self._limit_s or ticked == self._excused:
            self._said_s = 0.0
        elif blocked_s >= self._said_s + self._limit_s and self._say(blocked_s, overslept=overslept):
            self._said_s = blocked_s

    def _say(self, blocked_s: float, *, overslept: bool) -> bool:
        """One line; whether there was anything to say of it.

        Who overslept itself was kept from running by native code that holds the interpreter, or was frozen with the
        whole process: only if a handler is at work there is somebody to blame.
        """
        innermost = sys._current_frames().get(self._watched)  # noqa: SLF001  the only way to another thread's stack
        if innermost is None:
            return False
        code, line = innermost.f_code, innermost.f_lineno
        for frame in outwards(innermost):
            if (blamed := self._handlers.get(frame.f_code)) is not None:
                self._blame(blamed, blocked_s, code, line)
                return True
        if not overslept:
            log.warning("event loop blocked", blocked_s=round(blocked_s, 1), line=_line(code, line))
        return not overslept

    def _blame(self, blamed: Blamed, blocked_s: float, code: CodeType, line: int) -> None:
        where = {"blocked_s": round(blocked_s, 1), "line": _line(code, line)}
        log.warning("handler blocks the event loop", **blamed._asdict(), **where, advice=ADVICE)


def _line(code: CodeType, number: int) -> str:
    return f"{code.co_filename}:{number} {code.co_qualname}"


def _code(handler: Callable[..., Any]) -> CodeType:
    code: CodeType = inspect.unwrap(handler).__code__
    return code


def _handlers(types: Iterable[MissionType]) -> Mapping[CodeType, Blamed]:
    found: dict[CodeType, Blamed] = {}
    for definition in types:
        specs: list[StateSpec | UndoSpec] = [*definition.states.values(), *definition.undos.values()]
        for spec in specs:
            found[_code(spec.handler)] = Blamed(definition.type, spec.name, spec.handler.__qualname__)
    return found
