"""A simulated home as a real process, with what a test says to it."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from tests.forge import Forked, forked
from tests.waiting import until

_RUN = """
import sys, pathlib
from dualloop.home.main import run
from shared.settings import Settings
run(Settings(state_dir=pathlib.Path(sys.argv[1]), _env_file=None))
"""


class Home:
    """A running home: the bench side of it, for tests that are not asynchronous about it."""

    def __init__(self, process: Forked, url: str) -> None:
        self.process = process
        self.url = url
        self.http = httpx.Client(base_url=url, trust_env=False, timeout=60)

    def look(self, entity: str) -> dict[str, Any]:
        return self._json(self.http.get(f"/devices/{entity}/hand"))

    def hand(self, entity: str, **values: Any) -> dict[str, Any]:
        return self._json(self.http.post(f"/devices/{entity}/hand", json=values))

    def faults(self, entity: str, **faults: Any) -> dict[str, Any]:
        return self._json(self.http.put(f"/devices/{entity}/faults", json=faults))

    def journal(self, entity: str) -> list[dict[str, Any]]:
        journal: list[dict[str, Any]] = self._json(self.http.get(f"/devices/{entity}/journal"))["journal"]
        return journal

    def acts(self, entity: str) -> list[dict[str, Any]]:
        """What commands did to the device, in order."""
        return [line for line in self.journal(entity) if line["by"] == "command"]

    def hold(self, entity: str, at: str, *, every: bool = False) -> None:
        """Stop the next request at this point, or all of them."""
        self._json(self.http.post(f"/devices/{entity}/hold", json={"at": at, "every": every}))

    def when_held(self, entity: str, within: float = 30) -> list[str]:
        """Where a request stands, as soon as one does."""
        answer = self._json(self.http.get(f"/devices/{entity}/hold", params={"wait": within}))
        held: list[str] = answer["held"]
        assert held, f"nothing came to {entity} within {within} s"
        return held

    def standing(self, entity: str) -> list[str]:
        """Where a request stands now."""
        held: list[str] = self._json(self.http.get(f"/devices/{entity}/hold"))["held"]
        return held

    def release(self, entity: str, at: str | None = None) -> None:
        """Let go at this point, or everywhere."""
        self._json(self.http.post(f"/devices/{entity}/release", json=at and {"at": at}))

    def act(self, entity: str, action: str, value: Any = None, *, key: str = "k", fence: int = 1) -> httpx.Response:
        order = {"action": action, "value": value, "key": key, "fence": fence}
        return self.http.post(f"/devices/{entity}/act", json=order)

    def fresh(self) -> None:
        """Every lamp off, nothing broken, nothing held: for a home that several tests share."""
        for device in self._listed():
            self.release(device["entity"])
            self.faults(device["entity"])
        for device in self._listed():  # anew: what was held may have switched something on
            if device["value"].get("power") == "on":
                self.hand(device["entity"], power="off")

    def _listed(self) -> list[dict[str, Any]]:
        devices: list[dict[str, Any]] = self._json(self.http.get("/devices"))["devices"]
        return devices

    def end(self, signum: int = signal.SIGTERM) -> int:
        """Stop it and give its exit code."""
        self.http.close()
        self.process.send_signal(signum)
        return self.process.wait(timeout=60)

    @staticmethod
    def _json(answer: httpx.Response) -> dict[str, Any]:
        assert answer.is_success, answer.text
        document: dict[str, Any] = answer.json()
        return document


@contextlib.contextmanager
def running_home(state_dir: Path, mqtt_url: str | None = None) -> Iterator[Home]:
    """Start a home on this folder and wait until it answers, and its devices are on the broker, if there is one."""
    url_file = state_dir / "home.url"
    url_file.unlink(missing_ok=True)  # a killed one leaves it behind
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DUALLOOP_")}
    if mqtt_url is not None:
        environment["DUALLOOP_MQTT_URL"] = mqtt_url
    process = forked(("-c", _RUN, str(state_dir)), env=environment)
    home: Home | None = None
    try:
        until(lambda: url_file.exists() or process.poll() is not None, within=60, what="the home starts")
        assert process.poll() is None, f"the home exited with {process.returncode}"
        home = Home(process, url_file.read_text())
        http = home.http
        until(lambda: http.get("/readyz").is_success, within=60, what="its devices are announced")
        yield home
    finally:
        if home is not None:
            home.http.close()
        process.kill()
        process.wait()
