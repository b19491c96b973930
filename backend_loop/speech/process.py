"""The child program of the speech engines: ``python -m backend_loop.speech.process FD PARENT``.

It speaks `step_frames` with its worker: ``{"load": module}`` imports a module, ``{"run": {"module": …, …}}`` has that
module's `answer` called. What decodes, ends and recognises speech computes in C for seconds, on foreign bytes: here it
may do so, and even crash, without anybody else noticing more than one utterance that was not understood.
"""

import contextlib
import importlib
import os
import signal
import socket
import sys
from typing import BinaryIO, Final

from backend_loop.lifeline import die_with
from backend_loop.speech.refusal import Refusal
from backend_loop.step_frames import HEAD, Frame, pack, unpack

NICE: Final = 10
"""How far speech stands back: it computes for as long as it may, while commands need a moment, and that at once."""


def _read(pipe: BinaryIO) -> Frame:
    head = pipe.read(HEAD.size)
    if len(head) < HEAD.size:
        raise EOFError
    size: int = HEAD.unpack(head)[0]
    body = pipe.read(size)
    if len(body) < size:
        raise EOFError
    return unpack(body)


def _answer(frame: Frame) -> Frame:
    if "load" in frame:
        try:
            importlib.import_module(frame["load"])
        except Exception as error:  # noqa: BLE001  whatever a library does at import
            return {"broken": f"{type(error).__name__}: {error}"}
        return {"ready": True}
    run = frame["run"]
    try:
        return {"returned": sys.modules[run["module"]].answer(run)}
    except Refusal as refusal:
        return {"refused": str(refusal), "code": refusal.code}
    except Exception as error:  # noqa: BLE001  the libraries raise what they like; the process goes on
        return {"outcome": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Serve until the worker is gone."""
    die_with(int(sys.argv[2]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's: the worker says what is to end
    os.nice(NICE)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        sock = socket.socket(fileno=int(sys.argv[1]))
        os.set_inheritable(sock.fileno(), False)
        pipe = sock.makefile("rb")
        sys.path[:] = _read(pipe)["path"]
        while True:
            sock.sendall(pack(_answer(_read(pipe))))


if __name__ == "__main__":
    main()
