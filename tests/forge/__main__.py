"""The forge itself: forks a process for each request, and tells how it ended. Its standard input is the socket.

A request is JSON: ``{"argv", "env", "cwd", "session", "death"}`` with three descriptors, answered by ``{"pid"}``; or
``{"ended": pid}``, answered by ``{"code"}``: null while it runs.
"""

import gc
import importlib
import json
import os
import runpy
import socket
import sys
from pathlib import Path
from typing import Any

from dualloop.lifeline import ends_with_parent

PRODUCT = (
    "backend_loop.language.interpreter",
    "backend_loop.main",
    "backend_loop.registry",
    "dualloop.cli",
    "dualloop.client",
    "dualloop.home.main",
    "dualloop.outside.main",
    "frontend_loop.app",
    "frontend_loop.serving",
    "httpcore",
    "pydantic.v1",
    "rich.progress",
    "rich.table",
    "uvicorn.protocols.http.httptools_impl",
)
_BYTES = 4_000_000


def _import() -> None:
    from backend_loop.registry import BUILT_IN  # noqa: PLC0415  not before the list of what to import is known

    for name in (*PRODUCT, *BUILT_IN):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # nobody who is forked looks through all of it again


def _serve(asked: socket.socket) -> dict[str, Any] | None:
    """Answer requests; in a forked process, return what it is to be; None: nobody asks any more."""
    while True:
        line, descriptors, _, _ = socket.recv_fds(asked, _BYTES, 3)
        if not line:
            return None
        request: dict[str, Any] = json.loads(line)
        if "ended" in request:
            pid, status = os.waitpid(request["ended"], os.WNOHANG)
            _answer(asked, {"code": os.waitstatus_to_exitcode(status) if pid else None})
            continue
        arm = ends_with_parent(request["death"])
        pid = os.fork()
        if pid == 0:
            asked.close()
            arm()
            for place, descriptor in enumerate(descriptors):
                os.dup2(descriptor, place)
        for descriptor in descriptors:
            os.close(descriptor)
        if pid == 0:
            return request
        _answer(asked, {"pid": pid})


def _answer(asked: socket.socket, answer: dict[str, Any]) -> None:
    asked.send(json.dumps(answer).encode())


def _become(request: dict[str, Any]) -> None:
    """Run as ``python`` with these arguments would."""
    if request["session"]:
        os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  as they would be in a new process
    buffering = 1 if os.isatty(1) else -1
    sys.stdout = open(1, "w", buffering, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    option, what, *arguments = request["argv"]
    sys.path[0] = str(Path.cwd()) if option == "-m" else ""
    sys.path[1:1] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if option == "-m":
        sys.argv = [what, *arguments]
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.argv = ["-c", *arguments]
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102  as python -c does


if __name__ == "__main__":
    _import()
    asked = socket.socket(fileno=os.dup(0))
    asked.setblocking(True)
    if (request := _serve(asked)) is not None:
        _become(request)
