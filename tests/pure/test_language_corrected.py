"""What is taken back in the same breath is not done, and what is said instead is."""

import pytest

from tests.pure.meant import meant


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("turn on the kitchen, no wait, the hall light", "turn_on light.hall"),
        ("turn on the kitchen light, I mean the AC in the bedroom", "turn_on climate.bedroom"),
        ("set the living room AC to 24, no, 25", "set_temperature climate.living_room 25"),
        ("dim the hall light to 30 percent, sorry, 40%", "set_brightness light.hall 40"),
        ("open the kitchen blinds, sorry, close them", "close cover.kitchen"),
        ("open the kitchen blinds, no close them", "close cover.kitchen"),
        ("turn on the kitchen light, no the hall light", "turn_on light.hall"),
        ("turn on the kitchen light, make that the hall light", "turn_on light.hall"),
        ("set the bedroom AC to 24, no 25", "set_temperature climate.bedroom 25"),
        ("turn on the bedroom AC, make that 22", "turn_on climate.bedroom > set_temperature climate.bedroom 22"),
        ("turn on the light, I mean turn on the hall light", "turn_on light.hall"),
        ("关书房的灯，说错了，卧室的", "turn_off light.bedroom"),
        ("客厅空调调到24度，不，25度", "set_temperature climate.living_room 25"),
        ("打开厨房窗帘，哦不，关上", "close cover.kitchen"),
    ],
)
def test_what_is_said_instead_is_done(text: str, means: str) -> None:
    assert meant(text, "en" if text.isascii() else "zh") == means


@pytest.mark.parametrize(
    "text",
    [
        "turn on the oven, no, never mind",
        "unlock the door, wait, stop",
        "turn on the kitchen light, no lights in the bedroom",
        "close the kitchen blinds. No blinds in the bedroom",
        "turn on the kitchen light, sorry, no bedroom light",
        "turn on the kitchen light, no, don't",
        "turn on the kitchen light, no thanks",
        "don't open the blinds, sorry, close them",
        "don't turn on the kitchen, I mean the hall light",
        "tomorrow open the blinds, I mean close the kitchen blinds",
        "turn off the oven in ten minutes, no, five",
        "turn on the light, no, the hall light",
        "turn on the kitchen light, I mean the front door",
        "打开烤箱，不，算了",
        "锁门，等等，先别锁",
        "明天打开窗帘，不对，关上厨房窗帘",
        "不要开厨房灯，我是说门厅的灯",
    ],
)
def test_what_is_taken_back_is_not_done_nor_what_was_not_to_be(text: str) -> None:
    assert meant(text, "en" if text.isascii() else "zh") == "!not_understood"
