"""Ask the forge of this test process for a process, and follow that."""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

_BYTES = 100_000
_ROOT = Path(__file__).parents[2]


class Forked:
    """A process as ``subprocess.Popen`` shows it. It is the forge's child, so it is the forge which knows its end."""

    def __init__(self, forge: "_Forge", pid: int) -> None:
        self._forge = forge
        self.pid = pid
        self.returncode: int | None = None
        self._polling = threading.Lock()  # the forge tells an end once, and a test may wait for it in two threads
        self.over = os.pidfd_open(pid)
        """Can be read from once it has ended."""
        weakref.finalize(self, os.close, self.over)  # not before: another thread may wait for it

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        with self._polling:
            if self.returncode is None:
                self.returncode = self._forge.ask({"ended": self.pid})["code"]
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended.

        Raises:
            subprocess.TimeoutExpired: it has not.
        """
        if self.returncode is None and not select.select([self.over], [], [], timeout)[0]:
            assert timeout is not None
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, signum: int) -> None:
        """To it alone; nothing, if it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signum)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


class _Forge:
    """The forge, begun with the first request of this test process, and ended with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            environment = {name: value for name, value in os.environ.items() if not name.startswith("DUALLOOP_")}
            self._process = subprocess.Popen(
                (sys.executable, "-m", "tests.forge"),
                cwd=_ROOT,
                env=environment,
                stdin=theirs.fileno(),
                start_new_session=True,
            )  # ends once nobody can ask any more; with a thread it must not end, and any may be the first to ask
        self._socket = ours
        atexit.register(self._end)

    def ask(self, request: Mapping[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        """Its answer."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
            answered = self._socket.recv(_BYTES)
        assert answered, f"the forge ended with {self._process.poll()}"
        answer: dict[str, Any] = json.loads(answered)
        return answer

    def _end(self) -> None:
        self._socket.close()
        self._process.wait()


_forge: list[_Forge] = []


def forked(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    stdin: int | None = None,
    stdout: IO[bytes] | int | None = None,
    stderr: IO[bytes] | int | None = None,
    cwd: Path | None = None,
    session: bool = False,
    death: int = signal.SIGTERM,
) -> Forked:
    """Start what ``python *argv`` is, with nothing on its standard input unless that is given.

    Args:
        argv: ``("-m", module, …)`` or ``("-c", code, …)``.
        env: all of its environment.
        stdin: a descriptor.
        stdout: a file or a descriptor; None: as the tests' own.
        stderr: likewise.
        cwd: its folder; None: as the tests' own.
        session: it leads a session of its own.
        death: the signal it gets when the tests end.
    """
    if not _forge:
        _forge.append(_Forge())
    request = {
        "argv": argv,
        "env": dict(env),
        "cwd": str(cwd or Path.cwd()),
        "session": session,
        "death": int(death),
    }
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123  a descriptor is wanted
        descriptors = [
            nothing.fileno() if stdin is None else stdin,
            *(
                own if to is None else to if isinstance(to, int) else to.fileno()
                for to, own in ((stdout, 1), (stderr, 2))
            ),
        ]
        return Forked(_forge[0], _forge[0].ask(request, descriptors)["pid"])
