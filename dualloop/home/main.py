"""The simulated home as a process."""

import contextlib
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import uvicorn

from dualloop.home.house import House
from dualloop.home.server import home_app
from dualloop.home.store import Store
from dualloop.parts import local_url
from shared.clock import now_ms
from shared.settings import Settings

GRACE_S: Final = 1
"""Seconds that requests under way get at the end; held and silent ones are cut then."""


def run(settings: Settings) -> None:
    """Serve the home until SIGTERM or SIGINT, then exit 0.

    Its URL stands in ``<state_dir>/home.url`` while it runs; its memory is ``<state_dir>/home/``. With port 0 it
    takes the port it had last time, if that is free, so that a restarted home is found again.

    Raises:
        HomeTaken: another home runs on this state folder.
        OSError: the configured port is taken.
    """
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, _leave)
    with contextlib.closing(Store(settings.state_dir / "home")) as store:
        listener = _listen(settings.home_host, settings.home_port, settings.state_dir / "home" / "port")
        url = local_url(settings.home_host, listener.getsockname()[1])
        with listener, _announced(settings.state_dir / "home.url", url):
            app = home_app(House(store, now_ms), settings.allowed_hosts)
            config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=GRACE_S)
            uvicorn.Server(config).run([listener])


def _leave(_signum: int, _frame: FrameType | None) -> NoReturn:
    """Before uvicorn listens for signals, and again when it has stopped: it raises then anew what stopped it."""
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
