"""The recorded commands as text, and what a family says in their place: each the right mission on the right device."""

import pytest

from tests.pure.meant import LISTS, meant

MEANT = {
    "en01": "turn_on light.living_room",
    "en02": "turn_off light.bedroom",
    "en03": "set_temperature climate.living_room 26",
    "en04": "turn_on climate.living_room",
    "en05": "look sensor.bedroom temperature",
    "en06": "scene home",
    "en07": "scene night",
    "en08": "set_brightness light.bedroom 50",
    "en09": "play media_player.living_room",
    "en10": "pause media_player.living_room",
    "zh01": "turn_on climate.living_room > set_temperature climate.living_room 26",
    "zh02": "turn_on light.living_room",
    "zh03": "scene home",
    "zh04": "turn_off light.bedroom",
    "zh05": "set_temperature climate.living_room 26",
    "zh06": "look sensor.bedroom temperature",
    "zh07": "set_brightness light.bedroom 50",
    "zh08": "play media_player.living_room",
    "zh09": "pause media_player.living_room",
    "zh10": "open cover.kitchen",
}
"""By id in commands.tsv, whose own words for it are for people."""

VARIED = [
    ("en", "turn on the lights in the living room", "en01"),
    ("en", "please switch the bedroom lamp off", "en02"),
    ("en", "set the AC in the living room to 26", "en03"),
    ("en", "could you turn the living room air conditioner on", "en04"),
    ("en", "how warm is it in the bedroom", "en05"),
    ("en", "Hello, we're home!", "en06"),
    ("en", "dim the bedroom light to 50%", "en08"),
    ("en", "put on some music in the living room, please", "en09"),
    ("zh", "打开客厅空调调到二十六度", "zh01"),
    ("zh", "请帮我把客厅的灯打开", "zh02"),
    ("zh", "关一下卧室灯", "zh04"),
    ("zh", "客厅空调26度", "zh05"),
    ("zh", "卧室的温度是多少度", "zh06"),
    ("zh", "卧室灯调到一半", "zh07"),
    ("zh", "把厨房窗帘拉开", "zh10"),
]


def commands() -> list[tuple[str, str, str]]:
    lines = (LISTS / "commands.tsv").read_text(encoding="utf-8").splitlines()
    return [(number, language, text) for number, language, text, _ in (line.split("\t") for line in lines)]


@pytest.mark.parametrize(("number", "language", "text"), commands(), ids=lambda part: part)
def test_what_was_recorded_is_understood(number: str, language: str, text: str) -> None:
    assert meant(text, language) == MEANT[number]


@pytest.mark.parametrize(("language", "text", "number"), VARIED)
def test_what_is_said_in_its_place_means_the_same(language: str, text: str, number: str) -> None:
    assert meant(text, language) == MEANT[number]


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("把客厅灯调暗30%", "change_brightness light.living_room -30"),
        ("把客厅灯调低20%", "change_brightness light.living_room -20"),
        ("客厅灯亮度增加30%", "change_brightness light.living_room 30"),
        ("音量增加10", "change_volume media_player.living_room 10"),
        ("把客厅灯调暗到30%", "set_brightness light.living_room 30"),
        ("客厅空调降到22度", "set_temperature climate.living_room 22"),
    ],
)
def test_by_how_much_is_not_to_how_much(text: str, means: str) -> None:
    assert meant(text, "zh") == means


@pytest.mark.parametrize(
    "text",
    [
        "stop the bedroom blinds",
        "stop the blinds",
        "stop the front door",
        "窗帘停",
        "卧室窗帘停",
        "停止卧室窗帘",
        "大门停",
    ],
)
def test_to_stop_what_moves_is_not_to_close_it(text: str) -> None:
    assert meant(text, "en" if text.isascii() else "zh") == "!not_understood"


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("stop the bedroom AC", "turn_off climate.bedroom"),
        ("卧室空调停了", "turn_off climate.bedroom"),
        ("stop the speaker", "turn_off media_player.living_room"),
    ],
)
def test_what_can_be_off_is_stopped_by_that(text: str, means: str) -> None:
    assert meant(text, "en" if text.isascii() else "zh") == means
