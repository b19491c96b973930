"""`dualloop home`: what is where, switches by hand and faults from the command line."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from typer.testing import CliRunner, Result

from dualloop.cli import app
from dualloop.client import Client
from dualloop.errors import Refusal
from dualloop.home.inventory import furnish
from dualloop.home.store import Store
from tests.home import Home, running_home
from tests.stories.stack import Stack, running
from tests.stories.terminal import Terminal
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")
LAMP = "light.hall"


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with running_home(tmp_path_factory.mktemp("house")) as home:
        yield home


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(
    module_redis_url: str, shared_home: Home, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    """A foreground that knows the demonstration's names."""
    folder = tmp_path_factory.mktemp("stack")
    furnish(folder / "home.json")
    async with running(module_redis_url, folder, workers=0, DUALLOOP_HOME_URL=shared_home.url) as stack:

        async def known() -> bool:
            async with Client(stack.url) as client:
                return bool((await client.home.look())["inventory"]["areas"])

        await eventually(known, what="the file is taken in")
        yield stack


async def say(stack: Stack, *args: str, env: dict[str, str] | None = None) -> Result:
    """Run a command as one does in a terminal."""
    given = {"DUALLOOP_URL": stack.url, "COLUMNS": "200"} | (env or {})
    return await asyncio.to_thread(CliRunner().invoke, app, ["home", *args], env=given)


def lines(said: Result) -> list[list[str]]:
    assert said.exit_code == 0, said.output
    return [line.split() for line in said.output.splitlines()]


async def test_all_that_is_there_is_listed_by_area_as_it_stands(stack: Stack, home: Home) -> None:
    home.hand(LAMP, power="on", brightness=30)
    home.faults("switch.oven", lie=True, late_ms=250)
    rows = lines(await say(stack, "ls"))
    assert rows[0] == ["AREA", "DEVICE", "NAME", "SHOWS"]
    assert len(rows) == 19
    assert list(dict.fromkeys(row[0] for row in rows[1:])) == ["living_room", "bedroom", "kitchen", "study", "hall"]
    assert ["hall", LAMP, "hall", "light", "power", "on,", "brightness", "30"] in rows
    (oven,) = (row for row in rows if "switch.oven" in row)
    assert oven[-4:] == ["lies,", "late", "0.25", "s"]
    hall = (await say(stack, "ls", "hall", "--json")).stdout
    assert '"climate.study"' not in hall
    assert f'"{LAMP}"' in hall


async def test_a_device_is_shown_with_its_names_and_who_changed_it(stack: Stack, home: Home) -> None:
    home.hand(LAMP, power="on")
    said = (await say(stack, "show", LAMP)).stdout
    for words in ("hall light", "门厅灯", "zigbee2mqtt/hall/lamp", "set_brightness", "power was changed by hand at"):
        assert words in said
    assert '"reachable": true' in (await say(stack, "show", LAMP, "--json")).stdout


async def test_a_hand_switches_and_what_a_device_cannot_be_is_said(stack: Stack, home: Home) -> None:
    assert lines(await say(stack, "hand", LAMP, "power=on", "brightness=55")) == [
        [f"{LAMP}:", "power", "on,", "brightness", "55"]
    ]
    assert home.look(LAMP)["value"] == {"power": "on", "brightness": 55}
    for words, sentence in (("power=half", "one of on, off"), ("power", "NAME=VALUE"), ("brightness=true", "between")):
        refused = await say(stack, "hand", LAMP, words)
        assert isinstance(refused.exception, Refusal)
        assert sentence in str(refused.exception)
    assert home.look(LAMP)["value"] == {"power": "on", "brightness": 55}


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--offline"], {"offline": True}),
        (["--silent"], {"silent": True}),
        (["--slow", "1.5"], {"latency_ms": 1500}),
        (["--slow-answer", "0.2"], {"act_latency_ms": 200}),
        (["--refuses"], {"refuse": True}),
        (["--lies"], {"lie": True}),
        (["--lose-answer"], {"lose_answer": True}),
        (["--stale"], {"observe_stale": True}),
        (["--duplicates", "--late", "0.3"], {"duplicate": True, "late_ms": 300}),
        ([], {}),
    ],
    ids=str,
)
async def test_each_fault_can_be_set_and_taken_away(
    stack: Stack, home: Home, options: list[str], fault: dict[str, object]
) -> None:
    home.faults(LAMP, refuse=True)
    (told,) = lines(await say(stack, "fault", LAMP, *options))
    words = [word.rstrip(",") for word in told if word != "s"]
    assert words == [f"{LAMP}:", *(option.removeprefix("--") for option in options or ["well"])]
    assert {name: on for name, on in home.look(LAMP)["faults"].items() if on} == fault


async def test_what_is_not_there_is_told_in_a_sentence(stack: Stack, home: Home) -> None:
    del home
    for args, sentence in ((["show", "light.nowhere"], "no light.nowhere"), (["ls", "cellar"], "no device in cellar")):
        refused = await say(stack, *args)
        assert isinstance(refused.exception, Refusal)
        assert sentence in str(refused.exception)
    away = await say(stack, "ls", env={"DUALLOOP_URL": "http://127.0.0.1:9"})
    assert isinstance(away.exception, Refusal)


async def test_where_one_runs_already_that_is_told_in_a_sentence(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    with contextlib.closing(Store(tmp_path / "state" / "home")):
        said = await terminal.run("home")
    assert (said.code, "runs already" in said.err) == (1, True)
