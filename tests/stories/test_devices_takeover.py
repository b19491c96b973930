"""A worker killed in the middle of an act: the lamp obeys once, and nobody is told anything untrue."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.device_commands import LAMP, Door, opened_door
from tests.forge import Forked, forked
from tests.home import Home, running_home

LEASE_S = "2"
_RUN = "from backend_loop.main import run; from shared.settings import Settings; run(Settings(_env_file=None))"


class Workers:
    """Background processes that a test may kill."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._running: list[Forked] = []

    def start(self) -> Forked:
        process = forked(("-c", _RUN), env=self._environment)
        self._running.append(process)
        return process

    def end(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with running_home(tmp_path) as home:
        yield home


@pytest.fixture
def workers(redis_url: str, home: Home, tmp_path: Path) -> Iterator[Workers]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("DUALLOOP_")}
    started = Workers(
        own
        | {
            "DUALLOOP_REDIS_URL": redis_url,
            "DUALLOOP_HOME_URL": home.url,
            "DUALLOOP_STATE_DIR": str(tmp_path),
            "DUALLOOP_LEASE_S": LEASE_S,
            "DUALLOOP_MISSIONS": "backend_loop.missions.device_control",
        }
    )
    yield started
    started.end()


@pytest.fixture
async def door(redis_url: str, home: Home) -> AsyncIterator[Door]:
    async with opened_door(redis_url, home) as opened:
        yield opened


@pytest.mark.parametrize("point", ["act", "acted"])
async def test_a_worker_killed_while_it_acts(home: Home, workers: Workers, door: Door, point: str) -> None:
    home.hold(LAMP, point)
    first = workers.start()
    task = await door.send("turn_on")
    await door.held()
    first.kill()
    first.wait()
    workers.start()
    done = await door.end(task)
    assert (done["status"], done["result"]["outcome"]) == ("SUCCEEDED", "confirmed")
    assert done["result"]["before"]["power"] == "off"
    off = await door.end(await door.send("turn_off"))
    assert off["result"]["outcome"] == "confirmed"
    home.release(LAMP)  # the dead worker's command arrives only now
    home.http.get(f"/devices/{LAMP}")
    assert home.look(LAMP)["value"]["power"] == "off"
    assert [line["action"] for line in home.acts(LAMP)] == ["turn_on", "turn_off"]


async def test_a_hand_after_the_act_of_a_killed_worker_is_not_fought(home: Home, workers: Workers, door: Door) -> None:
    home.hold(LAMP, "acted")
    first = workers.start()
    task = await door.send("turn_on")
    await door.held()
    first.kill()
    first.wait()
    home.hand(LAMP, power="off")
    workers.start()
    done = await door.end(task)
    assert (done["status"], done["error"]["code"]) == ("FAILED", "contradicted")
    assert home.look(LAMP)["value"]["power"] == "off"
    assert len(home.acts(LAMP)) == 1
