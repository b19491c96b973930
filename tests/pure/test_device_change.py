"""More or less of something: one step from what the device shows, however often the mission is begun again."""

from typing import Any

import httpx
import pytest

from backend_loop.missions.device_control import DeviceControl
from backend_loop.testing import Bench, Trial, lost
from backend_loop.testing.home import Gadget, Home, HomeWire
from shared.actions import CHANGES, check, settled

LAMP, AC, BLIND = "light.kitchen", "climate.study", "cover.bedroom"
ON = {"power": "on", "brightness": 40}
OFF = {"power": "off", "brightness": 40}
BRIGHTER = {"entity": LAMP, "action": "change_brightness", "value": 20}


def shown(mission: Trial) -> Any:
    return (mission.result or {})["value"]["brightness"]


def test_a_step_is_from_what_is_seen_and_says_what_it_came_to() -> None:
    done = Bench(DeviceControl, home={LAMP: ON}).run(BRIGHTER)
    assert done.status == "SUCCEEDED"
    assert done.result == {
        "outcome": "confirmed",
        "entity": LAMP,
        "action": "set_brightness",
        "set": 60,
        "value": {"power": "on", "brightness": 60},
        "before": ON,
    }


def test_wherever_the_worker_is_killed_it_is_one_step() -> None:
    killed = list(Bench(DeviceControl, home={LAMP: ON}).killed_everywhere(BRIGHTER))
    assert len(killed) > 8
    for mission in killed:
        assert (mission.status, shown(mission)) == ("SUCCEEDED", 60), mission.told()
        assert mission.doubled == []


def test_a_step_whose_answer_was_lost_is_not_taken_again() -> None:
    done = Bench(DeviceControl, home=Home({LAMP: ON}, act={LAMP: [lost()]})).run(BRIGHTER)
    assert (done.status, shown(done)) == ("SUCCEEDED", 60)


def test_it_replaces_none_that_waits_and_is_replaced_by_none() -> None:
    latest = DeviceControl.definition.row().latest
    assert latest is not None
    assert not latest["aspects"].keys() & CHANGES.keys()


def test_what_is_off_can_be_no_darker() -> None:
    done = Bench(DeviceControl, home={LAMP: OFF}).run({**BRIGHTER, "value": -20})
    assert (done.status, (done.result or {})["outcome"], done.effects) == ("SUCCEEDED", "already_done", [])


def test_a_device_that_does_not_show_it_is_left_alone() -> None:
    failed = Bench(DeviceControl, home={LAMP: {"power": "on"}}).run(BRIGHTER)
    error = failed.error or {}
    assert (failed.status, error["code"], failed.effects) == ("FAILED", "device_refused", [])
    assert "does not show its brightness" in error["message"]


def test_of_a_device_that_was_never_told_nothing_else_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bridge tells what it remembers: that is no ground for a step, and no step was tried."""
    memory = {"value": ON, "version": "1", "observed_at": "2001-01-01T00:00:00.000Z"}
    monkeypatch.setattr(HomeWire, "_shown", lambda *_: httpx.Response(200, json=memory))
    failed = Bench(DeviceControl, home={LAMP: ON}).run(BRIGHTER)
    error = failed.error or {}
    assert (failed.status, error["code"], failed.effects) == ("FAILED", "device_unreachable", [])
    assert "has not shown itself since it was looked at" in error["message"]
    assert "it was told nothing; tell it a value, by set_brightness" in error["message"]


@pytest.mark.parametrize(
    ("action", "by", "shown", "comes_to"),
    [
        ("change_brightness", 20, ON, ("set_brightness", 60)),
        ("change_brightness", 80, ON, ("set_brightness", 100)),
        ("change_brightness", -60, ON, ("set_brightness", 1)),
        ("change_brightness", 20, OFF, ("set_brightness", 20)),
        ("change_brightness", -20, OFF, ("turn_off", None)),
        ("change_temperature", 1.5, {"power": "on", "temperature": 22}, ("set_temperature", 23.5)),
        ("change_temperature", -10, {"power": "on", "temperature": 10}, ("set_temperature", 5)),
        ("change_temperature", -1, {"power": "off", "temperature": 22}, ("turn_off", None)),
        ("change_temperature", 1, {"power": "off", "temperature": 22}, ("turn_off", None)),
        ("change_temperature", 1, {"power": "off"}, ("turn_off", None)),
        ("change_position", -30, {"position": 20}, ("set_position", 0)),
        ("change_volume", 10, {"volume": 95}, ("set_volume", 100)),
    ],
)
def test_what_a_step_comes_to(action: str, by: float, shown: dict[str, Any], comes_to: tuple[str, Any]) -> None:
    assert settled(action, by, shown) == comes_to


@pytest.mark.parametrize(
    ("by", "now", "comes_to"), [(1, 27.5, 28), (1, 28, 28), (-1, 28, 27), (-3, 18, 16), (-1, 16, 16), (2, 30, 30)]
)
def test_a_step_ends_at_what_the_device_takes_and_never_goes_the_other_way(
    by: float, now: float, comes_to: Any
) -> None:
    shown = {"power": "on", "temperature": now}
    assert settled("change_temperature", by, shown, {"temperature": (16, 28)}) == ("set_temperature", comes_to)


def test_a_limit_beyond_the_house_s_own_does_not_widen_it() -> None:
    assert settled("change_volume", 20, {"volume": 95}, {"volume": (0, 255)}) == ("set_volume", 100)


def air_conditioner(limits: Any) -> Any:
    def shown(home: HomeWire, gadget: Gadget) -> httpx.Response:
        told = {"value": dict(gadget.values), "version": str(gadget.version), "observed_at": home._now()}
        return httpx.Response(200, json={**told, "changes": gadget.changes, "limits": limits})

    return shown


def test_an_air_conditioner_at_its_own_limit_is_said_to_be_there_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HomeWire, "_shown", air_conditioner({"power": ["on", "off"], "temperature": [16, 28]}))
    home = {AC: {"power": "on", "temperature": 28}}
    done = Bench(DeviceControl, home=home).run({"entity": AC, "action": "change_temperature", "value": 1})
    result = done.result or {}
    assert (done.status, result["outcome"], result["set"], done.effects) == ("SUCCEEDED", "already_done", 28, [])


@pytest.mark.parametrize(
    "limits", [None, 5, [], {"temperature": None}, {"temperature": [30, 16]}, {"temperature": "x"}]
)
def test_limits_that_are_none_limit_nothing(monkeypatch: pytest.MonkeyPatch, limits: Any) -> None:
    monkeypatch.setattr(HomeWire, "_shown", air_conditioner(limits))
    home = {AC: {"power": "on", "temperature": 28}}
    done = Bench(DeviceControl, home=home).run({"entity": AC, "action": "change_temperature", "value": 1})
    assert (done.status, (done.result or {})["set"]) == ("SUCCEEDED", 29)


@pytest.mark.parametrize("by", [-1, 1])
def test_warmer_or_cooler_starts_no_air_conditioner(by: float) -> None:
    home = {AC: {"power": "off", "temperature": 22}}
    done = Bench(DeviceControl, home=home).run({"entity": AC, "action": "change_temperature", "value": by})
    result = done.result or {}
    assert (done.status, result["outcome"], done.effects) == ("SUCCEEDED", "already_done", [])
    assert (result["action"], result["value"]["power"]) == ("turn_off", "off")


@pytest.mark.parametrize("value", [None, True, 0, 101, -101, "20", float("nan")])
def test_a_step_of_nothing_or_too_much_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="change_brightness takes a number from -100 to 100 and not 0"):
        check("change_brightness", value)
