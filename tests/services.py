"""The outside services as a real process, with what a test says to them."""

import os
import signal
from pathlib import Path
from typing import Any, Self

import httpx

from tests.forge import Forked, forked
from tests.ports import unused_port
from tests.waiting import eventually, until


class OutsideServices:
    """Started on a folder, to be killed and started again: it keeps folder and port.

    Args:
        folder: its state folder.
        front: base URL of the foreground that the bank tells.
    """

    def __init__(self, folder: Path, front: str = "http://127.0.0.1:1") -> None:
        self._folder, self._front, self._port = folder, front, unused_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.http = httpx.Client(base_url=self.url, trust_env=False, timeout=60)
        self._process: Forked | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.http.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGKILL)
        self.http.close()

    def start(self) -> None:
        """Returns when it answers."""
        self.spawn()
        until(self._answers, within=60, what="the outside services answer")

    async def ready(self) -> None:
        """Wait until it answers."""
        await eventually(self._answers, within=60, what="the outside services answer")

    def spawn(self) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DUALLOOP_")}
        own = {
            "DUALLOOP_STATE_DIR": str(self._folder),
            "DUALLOOP_OUTSIDE_PORT": str(self._port),
            "DUALLOOP_URL": self._front,
        }
        with (self._folder / "outside.log").open("ab") as log:
            self._process = forked(("-m", "dualloop", "outside"), env=inherited | own, stderr=log, death=signal.SIGKILL)

    def end(self, signum: int = signal.SIGTERM) -> int:
        """Its exit code."""
        assert self._process is not None
        self._process.send_signal(signum)
        return self._process.wait(timeout=60)

    def freeze(self) -> None:
        """Nobody is answered until `thaw`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def faults(self, service: str, **faults: Any) -> None:
        """These, and no others."""
        self._json(self.http.put(f"/faults/{service}", json=faults))

    def post(self, path: str, *, key: str, fence: int = 1, **body: Any) -> httpx.Response:
        """An order, as a mission sends it."""
        headers = {"idempotency-key": key, "fence": str(fence)}
        return self.http.post(path, json={"order": "A-1", **body}, headers=headers)

    def books(self) -> dict[str, Any]:
        return self._json(self.http.get("/books"))

    def page(self, order: str) -> dict[str, Any]:
        """What stands for an order."""
        return self._json(self.http.get(f"/books/{order}"))

    def item(self, sku: str) -> dict[str, Any]:
        return self._json(self.http.get(f"/stock/items/{sku}"))

    def bench(self, path: str, **body: Any) -> dict[str, Any]:
        """What a person does there."""
        return self._json(self.http.post(path, json=body))

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "outside.log").read_text()
        try:
            return self.http.get("/livez").is_success
        except httpx.TransportError:
            return False

    @staticmethod
    def _json(answer: httpx.Response) -> dict[str, Any]:
        assert answer.is_success, answer.text
        document: dict[str, Any] = answer.json()
        return document
