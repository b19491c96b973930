"""How a demonstration process of this machine is served: found by a file in the state folder, ended by a signal."""

import contextlib
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

import uvicorn

from dualloop.address import local_url
from frontend_loop.serving import KEEP_ALIVE_S

GRACE_S: Final = 1
"""Seconds that requests under way get at the end; held and silent ones are cut then."""


def heed_signals() -> None:
    """Exit 0 at SIGTERM or SIGINT, from now on: before uvicorn listens for them, and when it raises them anew."""
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, _leave)


def serve(app: Any, name: str, host: str, port: int, state_dir: Path) -> None:
    """Serve until SIGTERM or SIGINT.

    Its URL stands in ``<state_dir>/NAME.url`` while it runs. With port 0 it takes the port it had last time, kept in
    ``<state_dir>/NAME/port``, if that is free, so that a restarted process is found again.

    Raises:
        OSError: the configured port is taken.
    """
    listener = _listen(host, port, state_dir / name / "port")
    url = local_url(host, listener.getsockname()[1])
    with listener, _announced(state_dir / f"{name}.url", url):
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=GRACE_S,
            timeout_keep_alive=KEEP_ALIVE_S,
        )
        uvicorn.Server(config).run([listener])


def _leave(_signum: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def _listen(host: str, port: int, last: Path) -> socket.socket:
    if port == 0:
        with contextlib.suppress(OSError, ValueError):  # never ran, or the port is taken
            return _bound(host, int(last.read_text()))
    listener = _bound(host, port)
    last.write_text(str(listener.getsockname()[1]))
    return listener


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


@contextlib.contextmanager
def _announced(path: Path, url: str) -> Iterator[None]:
    fresh = path.with_suffix(".new")
    fresh.write_text(url)
    fresh.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
