"""What docker-compose.yml says, run without an engine: its commands, its variables, its health checks.

Each service is a process with a state folder of its own; names and ports of the containers' network become loopback
ones. What an engine adds, the image and the network, is not shown here.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import redis

from dualloop.lifeline import ends_with_parent
from dualloop.redis_program import bundled_program
from tests import compose
from tests.mqtt import mosquitto_program
from tests.ports import unused_port
from tests.waiting import until

LOCAL: Final = "127.0.0.1"
START_S: Final = 60.0
COMMAND: Final = {"type": "device.control", "payload": {"entity": "light.hall", "action": "turn_on"}}
ORDER: Final = {"order": "A-1", "customer": "bo", "lines": [{"sku": "kettle", "quantity": 1}]}
OUTSIDE: Final = (
    {"type": "payment.ship", "payload": ORDER},  # the bank tells the mission, by way of the foreground
    {"type": "agent.run", "payload": {"goal": "turn on the lamp in the study"}},  # the model is there, too
)


class Containers:
    """The services as processes, started in the order that their dependencies ask for."""

    def __init__(self, folder: Path) -> None:
        self.services = compose.services()
        self.folder = folder
        self.ports = {name: unused_port() for name in self.services}
        self.processes: dict[str, list[subprocess.Popen[bytes]]] = {}
        (folder / "volume-home").mkdir()  # which the image begins with this file
        shutil.copy(compose.FILE.parent / "dualloop" / "home" / "inventory.json", folder / "volume-home" / "home.json")

    def here(self, value: str, service: str) -> str:
        """A value with the addresses of this machine."""
        for name, inside in (("valkey", "6379"), ("mosquitto", "1883"), *((name, "8000") for name in compose.OURS)):
            value = value.replace(f"//{name}:{inside}", f"//{LOCAL}:{self.ports[name]}")
        value = value.replace("/var/lib/dualloop-", f"{self.folder}/volume-")
        return {"0.0.0.0": LOCAL, "8000": str(self.ports[service])}.get(value, value)  # noqa: S104  replaced, not bound

    def start(self) -> None:
        waiting = dict(self.services)
        while waiting:
            name = next(one for one, told in waiting.items() if not waiting.keys() & told.get("depends_on", {}).keys())
            self._start(name, waiting.pop(name))

    def _start(self, name: str, service: dict[str, Any]) -> None:
        for number in range(service.get("deploy", {}).get("replicas", 1)):
            if number:
                self.ports[name] = unused_port()  # in a container each has the same one
            folder = self.folder / f"{name}-{number}"
            folder.mkdir()
            with (folder / "log").open("wb") as log:
                process = subprocess.Popen(
                    self._argv(name, service.get("command", [])),
                    cwd=folder,
                    env=self._env(name, service, folder),
                    preexec_fn=ends_with_parent(),  # noqa: PLW1509  tests run in the main thread
                    start_new_session=True,
                    stdout=log,
                    stderr=log,
                )
            self.processes.setdefault(name, []).append(process)
            until(lambda: self.healthy(name) or process.poll() is not None, START_S, f"{name} is healthy")  # noqa: B023  called in this turn
            assert process.poll() is None, (folder / "log").read_text()

    def _argv(self, name: str, command: list[str]) -> list[str]:
        if name == "mosquitto":
            return [mosquitto_program(), "-c", str(self._broker_config())]
        if name != "valkey":
            return [sys.executable, "-m", "dualloop", *command]
        program = bundled_program()
        if program is None:
            pytest.skip("no bundled server here")
        assert command[0] == "valkey-server"
        return [str(program.path), *command[1:], "--bind", LOCAL, "--port", str(self.ports[name])]

    def _broker_config(self) -> Path:
        """As it is deployed, on a port of this machine."""
        config, deployed = self.folder / "mosquitto.conf", compose.FILE.parent / "deploy" / "mosquitto.conf"
        config.write_text(deployed.read_text().replace("listener 1883", f"listener {self.ports['mosquitto']} {LOCAL}"))
        return config

    def _env(self, name: str, service: dict[str, Any], folder: Path) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(compose.PREFIX)}
        given = {key: self.here(value, name) for key, value in compose.environment(service).items()}
        return inherited | {"DUALLOOP_STATE_DIR": str(folder), "PYTHONPATH": str(Path.cwd())} | given

    def healthy(self, name: str) -> bool:
        """Its own health check, as it is written."""
        kind, *words = self.services[name]["healthcheck"]["test"]
        if words[0] == "mosquitto_sub":  # likewise
            with contextlib.suppress(OSError), socket.create_connection((LOCAL, self.ports[name]), timeout=1):
                return True
            return False
        if kind == "CMD-SHELL":  # valkey-cli is in the image, not here
            with contextlib.suppress(redis.RedisError), redis.Redis(LOCAL, self.ports[name]) as client:
                return bool(client.ping())
            return False
        python, *rest = (word.replace("8000", str(self.ports[name])) for word in words)
        assert python == "python"
        return subprocess.run((sys.executable, *rest), check=False, capture_output=True).returncode == 0

    def execute(self, name: str, *words: str) -> str:
        """As `docker compose exec NAME dualloop WORDS`."""
        folder = self.folder / f"{name}-0"
        env = self._env(name, self.services[name], folder)
        command = (sys.executable, "-m", "dualloop", *words)
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def stop(self, name: str) -> list[int]:
        """SIGTERM, as an engine stops it; the exit codes."""
        for process in self.processes[name]:
            process.send_signal(signal.SIGTERM)
        within = compose.seconds(self.services[name]["stop_grace_period"])
        return [process.wait(within) for process in self.processes[name]]

    def end(self) -> None:
        for process in (one for processes in self.processes.values() for one in processes):
            process.kill()
            process.wait()


@pytest.fixture
def containers(tmp_path: Path) -> Iterator[Containers]:
    containers = Containers(tmp_path)
    try:
        containers.start()
        yield containers
    finally:
        containers.end()


def test_the_services_find_each_other_serve_their_names_and_stop_in_time(containers: Containers) -> None:
    front = f"http://{LOCAL}:{containers.ports['foreground']}"
    with httpx.Client(base_url=front, trust_env=False, timeout=60) as client:
        until(lambda: client.get("/v1/mission-types").json()["mission_types"], what="the workers' types are announced")
        for host in ("localhost:8000", "127.0.0.1:8000", "foreground:8000"):
            sent = client.post("/v1/commands", json=COMMAND, headers={"host": host})
            assert sent.status_code == 202, sent.text
        result = client.get(sent.json()["links"]["result"], params={"wait": 30}).json()
        assert result["status"] == "SUCCEEDED"
        assert client.get("/v1/home").json()["inventory"]["areas"]
        assert client.get("/v1/home/devices/light.hall").json()["value"]["power"] == "on"
        assert client.get("/v1/mission-types", headers={"host": "elsewhere"}).status_code == 421
        for command in OUTSIDE:
            sent = client.post("/v1/commands", json=command).json()
            result = client.get(sent["links"]["result"], params={"wait": 30}).json()
            assert result["status"] == "SUCCEEDED", result
    assert "The books balance." in containers.execute("background", "outside", "books")
    for name, path in (("home", "/devices/light.hall"), ("outside", "/books")):
        url = f"http://{LOCAL}:{containers.ports[name]}{path}"
        assert httpx.get(url, headers={"host": f"{name}:8000"}, trust_env=False, timeout=60).status_code == 200
    in_order = ("foreground", "background", "home", "outside", "mosquitto", "valkey")
    assert [containers.stop(name) for name in in_order] == [[0], [0, 0], [0], [0], [0], [0]]
    for name in compose.OURS:
        lines = (containers.folder / f"{name}-0" / "log").read_text().splitlines()
        assert {json.loads(line)["service"] for line in lines} == {name}, "what an engine collects are JSON lines"


@pytest.mark.skipif(sys.platform != "linux", reason="has one loopback address")
def test_the_home_listens_where_it_is_told(tmp_path: Path) -> None:
    """Also the address that it writes down is that one."""
    log = (tmp_path / "log").open("wb")
    with (
        log,
        subprocess.Popen(
            (sys.executable, "-m", "dualloop", "home"),
            env=os.environ | {"DUALLOOP_STATE_DIR": str(tmp_path), "DUALLOOP_HOME_HOST": "127.0.0.2"},
            preexec_fn=ends_with_parent(),  # noqa: PLW1509  tests run in the main thread
            stderr=log,
        ) as process,
    ):
        try:
            url = tmp_path / "home.url"
            until(lambda: url.exists() or process.poll() is not None, START_S)
            address = url.read_text()
            assert address.startswith("http://127.0.0.2:")
            assert (
                httpx.get(f"{address}/livez", headers={"host": "localhost"}, trust_env=False, timeout=60).status_code
                == 200
            )
        finally:
            process.kill()
