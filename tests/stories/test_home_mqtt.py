"""Commands to the simulated home over a real broker, in real processes: a device of each dialect, and each fault."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from typer.testing import CliRunner

from dualloop.cli import app
from dualloop.home.demonstration import WIRES
from dualloop.home.inventory import furnish
from shared.clock import now_ms, rfc3339
from tests.home import Home, running_home
from tests.mqtt import Heard, Wire, running_mosquitto, wire
from tests.stories.stack import Stack, running
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

Document = dict[str, Any]
Act = tuple[str, str, Any]

LAMP, OVEN, BLIND = "light.hall", "switch.oven", "cover.kitchen"
ACTS: dict[str, Act] = {
    "Zigbee2MQTT": (LAMP, "set_brightness", 40),
    "Tasmota": ("light.study", "set_brightness", 40),
    "Home Assistant": ("climate.study", "set_temperature", 27),
}
"""An act of two values, in each dialect."""

each_dialect = pytest.mark.parametrize("dialect", ACTS)


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Home, str]]:
    """The home, and the URL of its broker."""
    with running_mosquitto() as broker, running_home(tmp_path_factory.mktemp("house"), broker.url) as home:
        yield home, broker.url


@pytest.fixture
def broker(shared_home: tuple[Home, str]) -> str:
    return shared_home[1]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(
    module_redis_url: str, shared_home: tuple[Home, str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    """A foreground and a worker, which know the devices by the demonstration's names: this one has another."""
    folder = tmp_path_factory.mktemp("stack")
    furnish(folder / "home.json")
    async with running(module_redis_url, folder, DUALLOOP_MQTT_URL=shared_home[1]) as stack:

        async def known() -> bool:
            async with httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=60) as http:
                seen = await Door(http).end("device.query", {"entity": "climate.study"})
            return bool(seen["status"] == "SUCCEEDED")

        await eventually(known, 60, "the worker knows the home")
        yield stack


class Door:
    """Commands, by HTTP."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def end(self, type_: str, payload: Document) -> Document:
        """The result document of a command."""
        sent = await self._http.post("/v1/commands", json={"type": type_, "payload": payload})
        assert sent.status_code == 202, sent.text
        result = sent
        while result.status_code == 202:  # it ends by its own deadline, if by nothing else
            result = await self._http.get(sent.json()["links"]["result"], params={"wait": 20})
        assert result.status_code == 200, result.text
        document: Document = result.json()
        return document

    async def act(self, act: Act, **more: Any) -> Document:
        """The result of an act."""
        entity, action, value = act
        return await self.end("device.control", {"entity": entity, "action": action, "value": value, **more})


def outcome(done: Document) -> str:
    """In the one word that the contract has for it."""
    word: str = (done["error"] or {}).get("code") or done["reason"] or done["result"]["outcome"]
    return word


@pytest_asyncio.fixture(loop_scope="module")
async def door(stack: Stack) -> AsyncIterator[Door]:
    async with httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=60) as http:
        yield Door(http)


@pytest.fixture
def home(shared_home: tuple[Home, str]) -> Home:
    """That home with nothing broken or held, and every lamp and air conditioner off."""
    home, _ = shared_home
    home.fresh()
    for entity, name, value in (
        *((f"light.{room}", "brightness", 80) for room in ("hall", "study", "kitchen", "bedroom", "living_room")),
        *((f"climate.{room}", "temperature", 24) for room in ("study", "bedroom", "living_room")),
    ):
        home.hand(entity, **{name: value})
    return home


def keys(home: Home, entity: str) -> list[str]:
    """Under which acts changed a device, in order: one line an effect."""
    return [line["key"] for line in home.acts(entity)]


async def seen(bus: Wire, entity: str, name: str, value: Any, since: int) -> Document:
    """By whom this value was moved, once the worker has seen it, who tells the other workers so."""

    def tells(said: Heard) -> bool:
        return bool(said.json["changes"].get(name, {}).get("value") == value)

    change: Document = (await bus.hear(f"dualloop/changes/{WIRES[entity]}", tells, since=since)).json["changes"][name]
    return change


async def caught_up(home: Home, bus: Wire, entity: str) -> None:
    """All late reports of a device have come: one that was to be as late as they has."""
    since = await bus.settled()
    name = "temperature" if entity.startswith("climate") else "brightness"
    home.hand(entity, **{name: 22})
    await seen(bus, entity, name, 22, since)


@each_dialect
async def test_what_is_wanted_is_done_once_and_read_from_the_device(home: Home, door: Door, dialect: str) -> None:
    entity, _, value = ACTS[dialect]
    before = keys(home, entity)
    done = await door.act(ACTS[dialect])
    assert outcome(done) == "confirmed", done["error"]
    assert (done["freshness"]["source"], done["freshness"]["verified"]) == ("mqtt", True)
    shown = home.look(entity)["value"]
    assert value in shown.values()
    assert shown["power"] == "on"
    assert done["result"]["value"] == shown
    assert keys(home, entity) == [*before, f"{done['task_id']}:1:EXECUTING_COMMAND:1"]
    again = await door.act(ACTS[dialect])
    assert outcome(again) == "already_done", again["error"]
    assert len(keys(home, entity)) == len(before) + 1


async def test_blinds_locks_and_speakers_obey_too(home: Home, door: Door) -> None:
    acts: list[Act] = [
        (BLIND, "set_position", 30),
        ("lock.front_door", "unlock", None),
        ("media_player.living_room", "set_volume", 55),
        ("climate.bedroom", "set_mode", "fan"),
        (OVEN, "turn_on", None),
    ]
    done = await asyncio.gather(*map(door.act, acts))
    assert [outcome(one) for one in done] == ["confirmed"] * len(acts), [one["error"] for one in done]
    assert home.look("climate.bedroom")["value"] == {"power": "on", "temperature": 24, "mode": "fan"}
    assert home.look(BLIND)["value"] == {"position": 30}
    home.hand("lock.front_door", lock="locked")


async def test_each_fault_has_an_end_of_its_own(home: Home, door: Door) -> None:
    ends: dict[str, list[tuple[str, Act]]] = {
        "device_unreachable": [
            ("offline", (LAMP, "turn_on", None)),
            ("offline", ("light.kitchen", "turn_on", None)),
            ("offline", ("climate.study", "set_temperature", 20)),
            ("silent", (BLIND, "open", None)),
        ],
        "device_refused": [
            ("refuse", ("light.bedroom", "turn_on", None)),
            ("refuse", ("light.study", "turn_on", None)),
            ("refuse", ("climate.bedroom", "set_mode", "fan")),
        ],
        "unconfirmed": [
            ("lie", ("light.living_room", "turn_on", None)),
            ("lie", (OVEN, "turn_on", None)),
            ("lie", ("climate.living_room", "turn_on", None)),
            ("observe_stale", ("media_player.living_room", "set_volume", 77)),
        ],
    }
    wanted = [(code, fault, act) for code, cases in ends.items() for fault, act in cases]
    for _, fault, act in wanted:
        home.faults(act[0], **{fault: True})
    before = {act[0]: keys(home, act[0]) for _, _, act in wanted}
    done = await asyncio.gather(*(door.act(act) for _, _, act in wanted))
    assert {act[0]: outcome(one) for (_, _, act), one in zip(wanted, done, strict=True)} == {
        act[0]: code for code, _, act in wanted
    }
    stale = done[-1]
    before["media_player.living_room"].append(f"{stale['task_id']}:1:EXECUTING_COMMAND:1")
    assert {entity: keys(home, entity) for entity in before} == before, "nothing was done, but what could not be seen"


@each_dialect
async def test_a_hand_that_is_newer_than_the_wish_wins_before_the_act(
    home: Home, broker: str, door: Door, dialect: str
) -> None:
    entity = ACTS[dialect][0]
    home.hand(entity, power="on")
    before = keys(home, entity)
    async with wire(broker) as bus:
        since = await bus.settled()
        wanted_at = rfc3339(now_ms())
        home.hand(entity, power="off")
        assert (await seen(bus, entity, "power", "off", since))["by"] == "hand"
        done = await door.act(ACTS[dialect], asked_at=wanted_at)
    assert outcome(done) == "overridden", done["error"]
    assert keys(home, entity) == before
    assert home.look(entity)["value"]["power"] == "off"


@pytest.mark.parametrize(
    ("act", "hand"),
    [
        (("light.bedroom", "set_brightness", 40), {"brightness": 95}),
        (("light.kitchen", "set_brightness", 40), {"brightness": 95}),
        (("climate.living_room", "set_temperature", 27), {"temperature": 18}),
    ],
    ids=ACTS,
)
async def test_a_hand_after_the_act_contradicts_it(home: Home, door: Door, act: Act, hand: Document) -> None:
    """It leads to neither what was wanted nor what was before, as a device that never obeyed might."""
    entity = act[0]
    home.hold(entity, "act")
    acting = asyncio.create_task(door.act(act))
    await asyncio.to_thread(home.when_held, entity)
    home.hold(entity, "observe", every=True)
    home.release(entity, "act")
    await eventually(lambda: "observe" in home.standing(entity), what="it is read after the act")
    home.hand(entity, **hand)
    home.release(entity)
    done = await acting
    assert outcome(done) == "contradicted", (done["error"], done["result"])
    assert done["result"]["value"] == home.look(entity)["value"]
    assert hand.items() <= home.look(entity)["value"].items(), "the hand stays"


@each_dialect
async def test_reports_that_come_twice_and_late_change_nothing(
    home: Home, broker: str, door: Door, dialect: str
) -> None:
    entity = ACTS[dialect][0]
    before = keys(home, entity)
    home.faults(entity, duplicate=True, late_ms=200)
    async with wire(broker) as bus:
        done = await door.act(ACTS[dialect])
        assert outcome(done) == "confirmed", done["error"]
        again = await door.act(ACTS[dialect])
        assert outcome(again) == "already_done", again["error"]
        await caught_up(home, bus, entity)
    assert keys(home, entity) == [*before, f"{done['task_id']}:1:EXECUTING_COMMAND:1"]


async def test_a_report_that_is_older_than_the_act_is_nobodys_hand(home: Home, broker: str, door: Door) -> None:
    """It shows the lamp as a hand left it before: its own time tells."""
    home.faults(LAMP, late_ms=200, act_latency_ms=300)
    home.hand(LAMP, power="on")
    async with wire(broker) as bus:
        done = await door.act((LAMP, "turn_off", None))
        assert outcome(done) == "confirmed", done["error"]
        assert home.look(LAMP)["value"]["power"] == "off"
        await caught_up(home, bus, LAMP)


@each_dialect
async def test_an_answer_that_is_lost_is_looked_for_and_not_acted_on_twice(
    home: Home, door: Door, dialect: str
) -> None:
    entity = ACTS[dialect][0]
    before = keys(home, entity)
    home.faults(entity, lose_answer=True)
    done = await door.act(ACTS[dialect])
    assert outcome(done) == "confirmed", done["error"]
    assert keys(home, entity) == [*before, f"{done['task_id']}:1:EXECUTING_COMMAND:1"]


async def test_a_dead_device_delays_nobody(home: Home, door: Door) -> None:
    home.faults("light.study", silent=True)
    awaited = {"entity": "light.study", "expect": {"power": "on"}, "within_s": 50}
    asking = asyncio.create_task(door.end("device.query", awaited))
    acting = asyncio.create_task(door.act(("light.study", "turn_on", None)))
    done = await door.act((LAMP, "turn_on", None))
    assert outcome(done) == "confirmed", done["error"]
    assert not asking.done()
    home.faults("light.study")
    assert outcome(await acting) in {"confirmed", "device_unreachable"}, "whether it came back within its tries or not"
    home.hand("light.study", power="on")
    assert (await asking)["status"] == "SUCCEEDED"


async def test_a_home_that_is_not_simulated_is_read_by_a_worker_for_the_command_line(home: Home, stack: Stack) -> None:
    home.hand(LAMP, power="on", brightness=35)
    home.faults(OVEN, offline=True)

    async def say(*args: str) -> str:
        env = {"DUALLOOP_URL": stack.url, "COLUMNS": "200"}
        done = await asyncio.to_thread(CliRunner().invoke, app, ["home", *args], env=env)
        assert done.exit_code == 0, done.exception
        return done.stdout

    rows = [line.split() for line in (await say("ls")).splitlines()]
    assert len(rows) == 19
    (lamp,) = (row for row in rows if LAMP in row)
    assert {"on", "35"} <= {word.strip(",") for word in lamp}
    (oven,) = (row for row in rows if OVEN in row)
    assert oven[-5:] == [OVEN, "is", "offline,", "says", "tele/oven/LWT"]
    assert "Shows" in await say("show", LAMP)
    assert f"{OVEN} is offline" in await say("show", OVEN)
