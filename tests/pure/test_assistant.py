"""`assistant.command` on the bench: what is said, what is done, what is asked back, and what a kill may do to it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import dualloop
from backend_loop.missions.assistant_command import ASK_S, HEAR_S, MOST_ASKED, AssistantCommand
from backend_loop.missions.device_control import DeviceControl
from backend_loop.missions.device_query import DeviceQuery
from backend_loop.missions.scene_run import SceneRun
from backend_loop.testing import Bench, Home, Trial, down, ignored, meanwhile, refused
from backend_loop.testing.sessions import KitSessions
from shared.home import read

INVENTORY: Final = read((Path(dualloop.__file__).parent / "home" / "inventory.json").read_bytes())
AC, LAMP, LOCK = "climate.living_room", "light.kitchen", "lock.front_door"
DEVICES: Final[dict[str, dict[str, Any]]] = {
    AC: {"power": "off", "mode": "cool", "temperature": 22},
    LAMP: {"power": "off", "brightness": 80},
    "light.hall": {"power": "off", "brightness": 80},
    LOCK: {"lock": "locked"},
}
COOL: Final = "打开客厅空调，调到26度"
LIGHT: Final = "turn on the light"

Then = Callable[[Trial], object]


def bench(home: Home | dict[str, dict[str, Any]] | None = None) -> Bench:
    return Bench(AssistantCommand, DeviceControl, DeviceQuery, SceneRun, home=home or DEVICES, inventory=INVENTORY)


def result(mission: Trial) -> dict[str, Any]:
    assert mission.result is not None, mission.told()
    return mission.result


def acts(mission: Trial) -> list[tuple[str, str, Any]]:
    """What devices were told, in order."""
    told = [call for call in mission.calls if call.path.endswith("/act")]
    return [(call.path.split("/")[1], call.body["action"], call.body.get("value")) for call in told]


def spoken(mission: Trial) -> list[str]:
    """What was said before the end."""
    return [event["data"]["spoken"] for event in mission.log if "spoken" in (event["data"] or {})]


def answered(text: str) -> Then:
    return lambda mission: mission.event("ANSWERED", {"text": text})


def test_one_sentence_is_two_missions_in_order_and_an_answer_that_was_looked_at() -> None:
    mission = bench().run({"text": COOL})
    assert mission.status == "SUCCEEDED", mission.told()
    assert acts(mission) == [(AC, "turn_on", None), (AC, "set_temperature", 26)]
    told = result(mission)
    assert [row["outcome"] for row in told["devices"]] == ["confirmed", "confirmed"]
    assert told["devices"][1]["value"]["temperature"] == 26
    assert (told["heard"], told["meaning"]["ordered"]) == (COOL, True)
    assert "26" in told["text"]
    assert "客厅空调" in told["text"]
    assert mission.freshness is not None
    assert mission.freshness["verified"] is True
    assert mission.freshness["observed_at"] == told["devices"][0]["freshness"]["observed_at"], "the oldest look"


def test_what_is_to_be_done_is_said_before_it_is_done() -> None:
    mission = bench().run({"text": COOL})
    first = next(event for event in mission.log if "spoken" in (event["data"] or {}))
    assert (first["state"], first["data"]) == ("EXECUTING", {"spoken": spoken(mission)[0]})
    assert first["seq"] < min(event["seq"] for event in mission.log if (event["data"] or {}).get("event") == "child")


def test_it_answers_in_the_language_of_the_speaker() -> None:
    english = result(bench().run({"text": "turn on the kitchen light"}))["text"]
    assert english.isascii()
    chinese = result(bench().run({"text": "打开厨房的灯"}))["text"]
    assert "厨房" in chinese
    told = result(bench().run({"text": "???", "locale": "zh-CN"}))
    assert not told["text"].isascii()


@pytest.mark.parametrize("area", ["kitchen", "Kitchen", "厨房"])
def test_a_lamp_without_a_room_is_the_one_where_it_was_said(area: str) -> None:
    assert acts(bench().run({"text": "打开灯"}, area=area)) == [(LAMP, "turn_on", None)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (LIGHT, "There is no area kitchn here. There are: living room, bedroom, kitchen, study and hall."),
        ("打开灯", "这里没有kitchn这个区域。有：客厅、卧室、厨房、书房和门厅。"),
    ],
)
def test_an_area_that_is_not_there_is_told_with_those_that_are(text: str, sentence: str) -> None:
    mission = bench().run({"text": text}, area="kitchn", session="s")
    assert (mission.status, acts(mission)) == ("SUCCEEDED", []), mission.told()
    told = result(mission)
    assert (told["problem"], told["text"]) == ("no_such_area", sentence)
    assert told["candidates"] == ["living_room", "bedroom", "kitchen", "study", "hall"]
    (session,) = mission._world.sessions.sessions.values()
    assert "area" not in session, "nobody is there later on"
    clear = bench().run({"text": "turn on the kitchen light"}, area="kitchn")
    assert acts(clear) == [(LAMP, "turn_on", None)], "where it was said is of no account"


@pytest.mark.parametrize(("text", "problem"), [("colourless green ideas", "not_understood"), ("打开迪斯科球", None)])
def test_what_is_not_understood_is_an_answer_and_no_failure(text: str, problem: str | None) -> None:
    mission = bench().run({"text": text})
    assert (mission.status, mission.calls) == ("SUCCEEDED", [])
    assert result(mission)["problem"] == (problem or "no_such_device")
    assert result(mission)["text"]


@pytest.mark.parametrize(
    ("faults", "code"),
    [
        ({"observe": {LAMP: down()}}, "device_unreachable"),
        ({"act": {LAMP: refused()}}, "device_refused"),
        ({"act": {LAMP: ignored()}}, "unconfirmed"),
    ],
)
def test_what_was_not_done_is_said_as_it_is(faults: dict[str, Any], code: str) -> None:
    mission = bench(Home(DEVICES, **faults)).run({"text": "turn on the kitchen light"})
    assert (mission.status, (mission.error or {})["code"]) == ("FAILED", code), mission.told()
    told = result(mission)
    assert told["devices"][0]["outcome"] == code
    assert "kitchen light" in told["text"]
    assert told["text"] != result(bench().run({"text": "turn on the kitchen light"}))["text"]


def test_what_failed_keeps_what_comes_later_from_the_same_device() -> None:
    mission = bench(Home(DEVICES, act={AC: refused()})).run({"text": COOL})
    assert [row["outcome"] for row in result(mission)["devices"]] == ["device_refused", "not_begun"]
    assert (mission.status, len(mission.children)) == ("FAILED", 1)


def test_which_one_is_asked_back_and_the_answer_is_done() -> None:
    mission = bench().run({"text": LIGHT})
    assert (mission.status, mission.waiting_for, mission.state) == ("WAITING", "event", "ASKING")
    assert (mission.progress or {})["message"] == spoken(mission)[0], "who polls hears it too"
    data = mission.log[-2]["data"]
    assert (data["question"], "kitchen" in data["candidates"]) == ("which_area", True)
    mission.event("ANSWERED", {"text": "the kitchen"}).run()
    assert (mission.status, acts(mission)) == ("SUCCEEDED", [(LAMP, "turn_on", None)])


def test_an_answer_that_is_none_is_asked_again_and_not_for_ever() -> None:
    mission = bench().run({"text": LIGHT})
    for data in ({"text": "colourless green"}, {"text": 7}):
        mission.event("ANSWERED", data).run()
        assert mission.state == "ASKING"
    assert len(spoken(mission)) == MOST_ASKED
    mission.event("ANSWERED", {}).run()
    assert (mission.status, mission.reason, acts(mission)) == ("CANCELLED", "expired", [])
    assert result(mission)["text"]


def test_a_question_that_nobody_answers_comes_to_an_end() -> None:
    mission = bench().run({"text": LIGHT}).advance(ASK_S + HEAR_S + 1)
    assert (mission.status, mission.reason) == ("CANCELLED", "expired")
    assert result(mission)["candidates"]
    assert mission.took_s < ASK_S + HEAR_S + 2


@pytest.mark.parametrize(("text", "no"), [("turn on the light", "no"), ("unlock the front door", "cancel that")])
def test_no_is_an_answer_too(text: str, no: str) -> None:
    mission = bench().run({"text": text}).event("ANSWERED", {"text": no}).run()
    assert (mission.status, mission.reason, acts(mission)) == ("CANCELLED", "requested", [])


def test_a_question_is_taken_back_by_what_was_said_instead() -> None:
    mission = bench().run({"text": LIGHT}).event("ANSWERED", {"withdrawn": True}).run()
    assert (mission.status, mission.reason) == ("CANCELLED", "superseded")


def test_what_is_dangerous_is_done_after_a_yes_and_not_before() -> None:
    mission = bench().run({"text": "unlock the front door"})
    assert (mission.state, mission.calls) == ("ASKING", [])
    assert mission.log[-2]["data"]["question"] == "confirm"
    mission.event("ANSWERED", {"text": "kitchen"}).run()
    assert (mission.state, mission.calls) == ("ASKING", [])
    mission.event("ANSWERED", {"text": "yes"}).run()
    assert (mission.status, acts(mission)) == ("SUCCEEDED", [(LOCK, "unlock", None)])


def test_a_hand_after_it_was_said_wins_also_where_its_turn_comes_later() -> None:
    home = Home(DEVICES, act={AC: [meanwhile(lambda mission: mission.hand(AC, temperature=30))]})
    mission = bench(home).run({"text": COOL})
    assert [row["outcome"] for row in result(mission)["devices"]] == ["confirmed", "overridden"], mission.told()
    assert (mission.status, mission.reason) == ("CANCELLED", "overridden")
    assert result(mission)["text"]


def test_a_hand_before_the_answer_is_older_than_the_wish() -> None:
    mission = bench().run({"text": LIGHT}).advance(5)
    mission.hand(LAMP, power="on").hand(LAMP, power="off").advance(5)
    mission.event("ANSWERED", {"text": "kitchen"}).run()
    assert (mission.status, acts(mission)) == ("SUCCEEDED", [(LAMP, "turn_on", None)])


@pytest.mark.parametrize(
    ("text", "then", "told"),
    [
        (COOL, None, [(AC, "turn_on"), (AC, "set_temperature")]),
        (LIGHT, answered("kitchen"), [(LAMP, "turn_on")]),
        ("unlock the front door", answered("yes"), [(LOCK, "unlock")]),
    ],
)
def test_a_worker_may_be_killed_anywhere(text: str, then: Then | None, told: list[tuple[str, str]]) -> None:
    for mission in bench().killed_everywhere({"text": text}, then=then, session="s"):
        assert mission.status == "SUCCEEDED", mission.told()
        assert list(dict.fromkeys(one[:2] for one in acts(mission))) == told
        assert mission.doubled == []
        assert len(mission.children) == len(told)


@pytest.mark.parametrize(("of", "same"), [("mine", "theirs"), ("another's", None)])
async def test_who_says_cancel_means_his_own_command(of: str, same: str | None) -> None:
    mission = bench().accept({"text": "cancel that"}, session="s")
    sessions, now_ms = KitSessions(mission._world), mission._world.time.now_ms()
    await sessions.did("default", "s", "mine")
    await sessions.hear("default", f"Cancel that! {of}", "another microphone", "theirs", now_ms)
    await asyncio.to_thread(mission.run)
    assert result(mission).get("same_as") == same, mission.told()
