"""One thing said in many ways: what the lists of sentences do not have, rule by rule."""

import pytest

from tests.pure.meant import meant

ROOMS = ("living_room", "bedroom", "kitchen", "study", "hall")


def lights(action: str, *but: str) -> str:
    return " + ".join(sorted(action.replace("*", f"light.{room}") for room in ROOMS if room not in but))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("turn off all the lights but the kitchen, the hall and the study one", lights("turn_off *", *ROOMS[2:])),
        ("turn on every single light", lights("turn_on *")),
        ("dim everything to 10 percent", lights("set_brightness * 10")),
        ("turn the lights in the bedroom and the kitchen off", "turn_off light.bedroom + turn_off light.kitchen"),
        ("bedroom light at a quarter", "set_brightness light.bedroom 25"),
        ("set AC bedroom 24 degree", "set_temperature climate.bedroom 24"),
        ("I want 21 degrees in the study", "set_temperature climate.study 21"),
        ("turn on the cooling in the bedroom", "set_mode climate.bedroom cool"),
        ("roll the blinds down in the kitchen", "close cover.kitchen"),
        ("turn off the study light and pause the music", "pause media_player.living_room + turn_off light.study"),
        ("turn off the study light and then close the door", "turn_off light.study > lock lock.front_door"),
        ("has the front door been locked", "look lock.front_door lock=locked"),
        ("what's on in the kitchen", "look light.kitchen power=on + look switch.oven power=on"),
        ("what is playing", "look media_player.living_room playback=playing"),
        ("is the AC in the living room on or off", "look climate.living_room power=on"),
        (
            "what is the temperature and humidity in the kitchen",
            "look sensor.kitchen humidity + look sensor.kitchen temperature",
        ),
        ("其他灯都关掉除了走廊灯", lights("turn_off *", "hall")),
        ("除了卧室的灯其他灯都关掉", lights("turn_off *", "bedroom")),
        ("书房空调调到23度制冷模式", "set_mode climate.study cool > set_temperature climate.study 23"),
        ("客厅窗帘开三分之一", "set_position cover.living_room 33"),
        ("把书房那盏灯关掉", "turn_off light.study"),
        ("卧室灯是开着还是关着", "look light.bedroom power=on"),
        ("有没有灯没关", lights("look * power=on")),
        ("能帮我看下大门锁没锁吗", "look lock.front_door lock=locked"),
    ],
)
def test_another_wording_means_the_same(text: str, want: str) -> None:
    assert meant(text, "en" if text.isascii() else "zh") == want


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("did you turn the kitchen off", "en"),
        ("who left the kitchen on", "en"),
        ("is the kitchen on", "en"),
        ("kitchen light at a quarter past seven", "en"),
        ("厨房灯没关", "zh"),
        ("oven on?", "en"),
        ("烤箱开了？", "zh"),
        ("the kitchen lights off?", "en"),
    ],
)
def test_what_is_told_is_no_command(text: str, language: str) -> None:
    assert meant(text, language).startswith(("look", "!not_understood"))


def test_a_command_with_a_courtesy_is_one_also_with_a_question_mark() -> None:
    assert meant("kitchen light off, please?", "en") == "turn_off light.kitchen"
    assert meant("could you turn the kitchen light off?", "en") == "turn_off light.kitchen"
    assert meant("厨房灯关了好吗？", "zh") == "turn_off light.kitchen"
