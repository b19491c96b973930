"""``dualloop up`` as a person starts it: its terminal, its processes, and a command by way of its foreground."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.ports import unused_port
from tests.waiting import until

COMMAND = {
    "type": "device.control",
    "payload": {"entity": "climate.living_room", "action": "set_temperature", "value": 26},
}
START_S = 60.0
STOP_S = 60.0


class Stack:
    """One ``dualloop up`` with what it wrote to its terminal."""

    def __init__(self, folder: Path, *options: str, cwd: Path | None = None, whole: bool = False, **env: str) -> None:
        """Start it; `whole`: with the outside services, which a command of these tests has no use for."""
        self.folder = folder
        self.output = folder.parent / f"{folder.name}.{len(list(folder.parent.iterdir()))}.out"
        given = {"DUALLOOP_STATE_DIR": str(folder), "DUALLOOP_DRAIN_S": "100"}
        # not what it would find itself, seconds before it listens there: who starts beside it might find the same
        given |= {f"DUALLOOP_{name}PORT": str(unused_port()) for name in ("", "MQTT_", "HOME_", "OUTSIDE_")}
        given["DUALLOOP_MISSIONS"] = "backend_loop.missions.device_control"
        if not whole:
            given["DUALLOOP_OUTSIDE_URL"] = "http://127.0.0.1:9"  # a process less to start
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "dualloop", "up", *options],
                env={**os.environ, **given, **env},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a terminal's own: a Ctrl-C goes to all of its process group
            )

    @property
    def said(self) -> str:
        return self.output.read_text()

    @property
    def url(self) -> str:
        found = re.search(r"Ready after .* at (http://\S+)", self.said)
        assert found, self.said
        return found[1]

    def ready(self) -> "Stack":
        until(lambda: "Ready after" in self.said or self.process.poll() is not None, START_S)
        assert self.process.poll() is None, self.said
        return self

    def ctrl_c(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def ended(self) -> int:
        return self.process.wait(STOP_S)

    def processes(self) -> dict[int, str]:
        """All that runs on this state folder: pid and command line."""
        in_environment = f"\0DUALLOOP_STATE_DIR={self.folder}\0".encode()
        in_title = f"{self.folder}/redis/s".encode()  # Redis writes its title over its environment
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes()
                if in_title in line or in_environment in b"\0" + (entry / "environ").read_bytes():
                    found[int(entry.name)] = line.replace(b"\0", b" ").decode()
        return found

    def pid(self, part: str) -> int:
        """Of the one process whose command line has these words."""
        (pid,) = [pid for pid, line in self.processes().items() if part in line]
        return pid

    def nothing_runs(self) -> None:
        until(lambda: not self.processes(), STOP_S, what=f"gone: {self.processes()}\n{self.said}")

    def send(self) -> dict[str, Any]:
        """One command and its result."""
        sent = httpx.post(f"{self.url}/v1/commands", json=COMMAND, timeout=30)
        assert sent.status_code == 202, sent.text
        return self.result(sent.json()["correlation_id"])

    def result(self, correlation_id: str) -> dict[str, Any]:
        where = f"{self.url}/v1/results/{correlation_id}"
        until(lambda: httpx.get(where, timeout=30).status_code == 200, START_S)
        result: dict[str, Any] = httpx.get(where, timeout=30).json()
        return result

    def kill_all(self) -> None:
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


Up = Callable[..., Stack]
