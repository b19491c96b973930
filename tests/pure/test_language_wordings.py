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


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("close the kitchen blinds all the way", "close cover.kitchen"),
        ("lower the bedroom blinds all the way", "close cover.bedroom"),
        ("dim the kitchen light all the way", "set_brightness light.kitchen 1"),
        ("turn the kitchen light all the way down", "set_brightness light.kitchen 1"),
        ("close the bedroom blinds 30 percent", "set_position cover.bedroom 70"),
        ("bedroom blinds three quarters closed", "set_position cover.bedroom 25"),
        ("lower the bedroom blinds to 30 percent", "set_position cover.bedroom 30"),
        ("turn the volume up 10", "change_volume media_player.living_room 10"),
        ("raise the kitchen blinds 20 percent", "change_position cover.kitchen 20"),
        ("lower the kitchen light", "change_brightness light.kitchen -20"),
        ("turn on the heating in the study", "set_mode climate.study heat"),
        ("set the study AC to heat at 22", "set_mode climate.study heat > set_temperature climate.study 22"),
        ("set the study AC to heat at seven", "!not_understood"),
        ("the kitchen blinds up please", "open cover.kitchen"),
        ("raise the bedroom and kitchen blinds", "open cover.bedroom + open cover.kitchen"),
        ("厨房的灯关一关", "turn_off light.kitchen"),
        ("卧室窗帘关三分之一", "set_position cover.bedroom 67"),
        ("卧室窗帘关到百分之三十", "set_position cover.bedroom 30"),
        ("卧室窗帘关到最大", "!not_understood"),
        ("打开书房的暖气", "set_mode climate.study heat"),
        ("客厅灯四成亮", "!not_understood"),
    ],
)
def test_the_way_that_a_verb_points_is_heard(text: str, want: str) -> None:
    assert meant(text, "en" if text.isascii() else "zh") == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("turnoff the kitchenlight", "turn_off light.kitchen"),
        ("trun on the bed room light", "turn_on light.bedroom"),
        ("opne the bedroom curtians", "open cover.bedroom"),
        ("livingroom ac off", "turn_off climate.living_room"),
        ("turn on the hall way light", "turn_on light.hall"),
        ("打開客廳的燈", "turn_on light.living_room"),
        ("門鎖了嗎", "look lock.front_door lock=locked"),
        ("turn on the clock", "!no_such_device"),
        ("turn on the nightlight", "!no_such_device"),
        ("dont turn on the kitchenlight", "!not_understood"),
        ("neevr opne the front door", "!not_understood"),
    ],
)
def test_haste_and_another_script_change_nothing(text: str, want: str) -> None:
    assert meant(text, "en" if text.isascii() else "zh") == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("AC study on", "turn_on climate.study"),
        ("lights off, all of them", lights("turn_off *")),
        ("厨房走廊书房的灯全部打开", lights("turn_on *", "living_room", "bedroom")),
        ("should the kitchen blinds be closed", "!not_understood"),
        ("can the oven be on", "!not_understood"),
        ("kitchen light on off", "!not_understood"),
        ("kitchen light not on", "!not_understood"),
    ],
)
def test_words_in_no_order_are_read_only_where_each_is_known(text: str, want: str) -> None:
    assert meant(text, "en" if text.isascii() else "zh") == want
