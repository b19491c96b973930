"""More or less of something, asked for in a sentence: what is said at once, and what it came to."""

from typing import Any

import pytest

from backend_loop.testing import Bench, Home, Trial, down
from tests.pure.test_assistant import AC, DEVICES, LAMP, acts, bench, result, spoken

SPEAKER = "media_player.living_room"
ON = DEVICES | {
    LAMP: {"power": "on", "brightness": 40},
    AC: {"power": "on", "temperature": 22},
    SPEAKER: {"power": "on", "volume": 95},
}


def home(**faults: Any) -> Bench:
    return bench(Home(ON, **faults))


@pytest.mark.parametrize(
    ("text", "first", "last", "told"),
    [
        (
            "make the kitchen light brighter",
            "OK, making the kitchen light brighter by 20 percent.",
            "The kitchen light is at 60 percent.",
            (LAMP, "set_brightness", 60),
        ),
        (
            "dim the kitchen light by 30 percent",
            "OK, dimming the kitchen light by 30 percent.",
            "The kitchen light is at 10 percent.",
            (LAMP, "set_brightness", 10),
        ),
        (
            "厨房灯暗一点",
            "好的，正在把厨房灯调暗20%。",
            "厨房灯现在亮度20%。",
            (LAMP, "set_brightness", 20),
        ),
        (
            "客厅空调调高两度",
            "好的，正在把客厅空调调高2度。",
            "客厅空调现在设在24度。",
            (AC, "set_temperature", 24),
        ),
        (
            "louder please",
            "OK, turning the living room speaker up by 10.",
            "The living room speaker is at volume 100.",
            (SPEAKER, "set_volume", 100),
        ),
    ],
)
def test_it_says_by_how_much_and_then_to_how_much(text: str, first: str, last: str, told: Any) -> None:
    mission = home().run({"text": text})
    assert mission.status == "SUCCEEDED", mission.told()
    assert (spoken(mission), result(mission)["text"], acts(mission)) == ([first], last, [told])


def test_twice_said_is_two_steps_and_killed_anywhere_still_one_each() -> None:
    twice = home().run({"text": "make the kitchen light brighter and turn the kitchen light up by 10"})
    assert [act[2] for act in acts(twice)] == [60, 70], twice.told()

    def lit(mission: Trial) -> int:
        return int(result(mission)["devices"][0]["value"]["brightness"])

    killed = list(home().killed_everywhere({"text": "make the kitchen light brighter"}))
    assert {lit(mission) for mission in killed} == {60}
    assert all(mission.doubled == [] for mission in killed)


def test_what_was_not_done_is_told_as_it_was_wished() -> None:
    away = home(observe={LAMP: down()}).run({"text": "make the kitchen light brighter"})
    assert result(away)["text"] == "I cannot reach the kitchen light."
    assert acts(away) == []


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("turn the living room air conditioner down by 2 degrees", "The living room AC was off already."),
        ("客厅空调调高两度", "客厅空调本来就关着。"),
    ],
)
def test_an_air_conditioner_that_is_off_is_said_to_be_off(text: str, last: str) -> None:
    mission = bench(Home(ON | {AC: {"power": "off", "temperature": 22}})).run({"text": text})
    assert (mission.status, result(mission)["text"], acts(mission)) == ("SUCCEEDED", last, [])
