"""Whom "it" means after a command, and what "the bedroom too" wants; and where it is better asked, or let be."""

import itertools

import pytest

from tests.pure.meant import interpreter, line, meant, sorted_line
from tests.pure.test_language_denied import SILENCED, denied

BOTH = {"en": "turn on the bedroom AC and the kitchen light", "zh": "打开卧室空调和厨房灯"}


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("turn on the kitchen light // make it brighter", "change_brightness light.kitchen 20"),
        ("turn on the kitchen light // turn it off again", "turn_off light.kitchen"),
        ("turn on the kitchen light // turn that one off", "turn_off light.kitchen"),
        ("turn on the kitchen light // off", "turn_off light.kitchen"),
        ("turn on the kitchen light // turn it off and lock the door", "turn_off light.kitchen + lock lock.front_door"),
        ("is the oven on // turn it off", "turn_off switch.oven"),
        ("how warm is it in the bedroom // make it warmer", "change_temperature climate.bedroom 1"),
        ("turn on the kitchen and hall lights // turn them off", "turn_off light.hall + turn_off light.kitchen"),
        ("turn on the kitchen and hall lights // turn it off", "turn_off light.hall + turn_off light.kitchen"),
        ("turn on the bedroom AC and the kitchen light // set it to 24 degrees", "set_temperature climate.bedroom 24"),
        ("dim the hall light // a bit more", "change_brightness light.hall -20"),
        ("turn the hall light up // a bit less", "change_brightness light.hall -20"),
        ("turn on the kitchen light // is it on", "look light.kitchen power=on"),
        ("打开厨房的灯 // 把它关掉", "turn_off light.kitchen"),
        ("打开厨房的灯 // 再亮一点", "change_brightness light.kitchen 20"),
        ("打开卧室空调 // 调到26度", "set_temperature climate.bedroom 26"),
        ("打开卧室空调 // 他太冷了，调高一点", "!not_understood"),
        ("打开厨房和门厅的灯 // 把它们都关了", "turn_off light.hall + turn_off light.kitchen"),
        ("打开卧室空调和厨房灯 // 都关了吧", "turn_off climate.bedroom + turn_off light.kitchen"),
        ("打开厨房灯 // 把他关了", "turn_off light.kitchen"),
        ("打开厨房灯 // 那个关了吧", "turn_off light.kitchen"),
        ("打开卧室空调 // 停", "turn_off climate.bedroom"),
    ],
)
def test_it_is_what_the_command_before_was_about(text: str, means: str) -> None:
    assert meant(text, "en" if text.isascii() else "zh") == sorted_line(means)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("turn on the kitchen light // the bedroom too", "turn_on light.bedroom"),
        ("turn on the kitchen light // and the study and the hall", "turn_on light.study + turn_on light.hall"),
        ("set the bedroom AC to 22 // same in the study", "set_temperature climate.study 22"),
        ("turn on the bedroom light // and the AC too", "turn_on climate.bedroom"),
        ("how warm is it in the bedroom // and in the kitchen", "look sensor.kitchen temperature"),
        ("is the kitchen light on // and the hall", "look light.hall power=on"),
        ("close the bedroom blinds // the kitchen ones as well", "close cover.kitchen"),
        ("打开厨房的灯 // 卧室也是", "turn_on light.bedroom"),
        ("打开卧室空调 // 书房也打开", "turn_on climate.study"),
        ("打开卧室空调 // 书房也打开好吗？", "turn_on climate.study"),
        ("turn on the kitchen light // the bedroom too please?", "turn_on light.bedroom"),
        ("卧室几度 // 厨房呢", "look sensor.kitchen temperature"),
    ],
)
def test_too_is_told_what_the_command_before_told(text: str, means: str) -> None:
    assert meant(text, "en" if text.isascii() else "zh") == sorted_line(means)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("turn on the kitchen light // set it to 22 degrees", "!which_area"),
        ("turn on the kitchen light // lock it", "lock lock.front_door"),
        ("good night // turn it on", "!not_understood"),
        ("turn on the kitchen light // turn it off, the hall light", "!not_understood"),
        ("turn on the kitchen light // don't turn it off", "!not_understood"),
        ("turn on the kitchen light // turn it off in five minutes", "!not_understood"),
        ("turn on the kitchen light // a bit more", "!not_understood"),
        ("set the bedroom AC to 22 // pause", "pause media_player.living_room"),
        ("turn on the hall light // the bedroom", "!not_understood"),
        ("turn on the hall light // and the humidity in the bedroom", "look sensor.bedroom humidity"),
        ("打开厨房灯 // 别关它", "!not_understood"),
        ("打开厨房灯 // 五分钟后关掉它", "!not_understood"),
        ("打开厨房灯 // 我已经把它关了", "!not_understood"),
        ("打开厨房灯 // 卧室也不要", "!not_understood"),
        ("打开厨房灯 // 他关了", "!not_understood"),
        ("打开厨房灯 // 他也打开", "!not_understood"),
        ("打开厨房灯 // 他们都关了", "!not_understood"),
        ("打开厨房灯 // 它灭了", "!not_understood"),
        ("锁上大门 // 让她开", "!not_understood"),
        ("锁上大门 // 它开了", "!not_understood"),
        ("open the bedroom blinds // stop them", "!not_understood"),
        ("打开卧室窗帘 // 停", "!not_understood"),
        ("打开大门 // 把它停掉", "!not_understood"),
        ("打开厨房灯 // 都关了吧", meant("都关了吧", "zh")),
    ],
)
def test_what_it_cannot_be_is_read_as_if_nothing_had_been_said_before(text: str, means: str) -> None:
    assert meant(text, "en" if text.isascii() else "zh") == means


@pytest.mark.parametrize(
    "text",
    [
        "关掉厨房灯 // 卧室呢",
        "打开厨房灯 // 烤箱呢？",
        "打开厨房灯 // 卧室也是？",
        "打开卧室空调 // 书房也打开？",
        "turn on the kitchen light // the bedroom too?",
    ],
)
def test_who_asks_about_somebody_else_has_not_told_him(text: str) -> None:
    assert meant(text, "en" if text.isascii() else "zh") == "!not_understood"


@pytest.mark.parametrize(
    ("language", "said", "answer"), [("en", "turn it off", "the light"), ("zh", "把它关了", "厨房灯")]
)
def test_of_two_things_it_is_asked_which(language: str, said: str, answer: str) -> None:
    last = interpreter().interpret(BOTH[language], language).wishes
    asked = interpreter().interpret(said, language, last=last)
    assert (line(asked), asked.candidates) == ("!ambiguous", ["climate.bedroom", "light.kitchen"])
    assert line(interpreter().fill(asked, answer)) == "turn_off light.kitchen"
    assert line(interpreter().fill(asked, "the hall light")) == "!ambiguous"


@pytest.mark.parametrize(
    ("area", "said", "means"),
    [
        ("bedroom", "make it brighter", "change_brightness light.kitchen 20"),
        ("bedroom", "brighter", "!ambiguous"),
        ("bedroom", "too dark, make it brighter", "!ambiguous"),
        ("bedroom", "too dark again, make it brighter", "!ambiguous"),
        ("bedroom", "brighter again", "change_brightness light.kitchen 20"),
        ("bedroom", "set it to 22", "!ambiguous"),
        ("kitchen", "brighter", "change_brightness light.kitchen 20"),
    ],
)
def test_who_may_mean_what_is_in_his_room_is_asked(area: str, said: str, means: str) -> None:
    last = interpreter().interpret("turn on the kitchen light", "en").wishes
    asked = interpreter().interpret(said, "en", area=area, last=last)
    assert line(asked) == means
    if means == "!ambiguous":
        assert line(interpreter().fill(asked, "the kitchen")).split()[1] == "light.kitchen"


@pytest.mark.parametrize(("text", "last"), [("unlock it", "lock the front door"), ("打开它", "把大门锁上")])
def test_it_is_confirmed_where_its_name_would_be(text: str, last: str) -> None:
    language = "en" if text.isascii() else "zh"
    before = interpreter().interpret(last, language).wishes
    meaning = interpreter().interpret(text, language, last=before)
    assert (line(meaning), meaning.confirm) == ("unlock lock.front_door", True)


def acts_after(language: str, *, each: int) -> set[str]:
    """What of it is done after a command that it may go on with, of each so many'th sentence."""
    last = interpreter().interpret(BOTH[language], language).wishes
    said = itertools.islice(denied(language), 0, None, each)
    read = ((text, interpreter().interpret(text, language, area=area, last=last)) for area, text in said)
    return {text for text, told in read if any(wish.mission != "device.query" for wish in told.wishes)}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_not_wanted_now_is_not_done_to_it_either(language: str) -> None:
    assert acts_after(language, each=193) <= SILENCED


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_none_of_18_000_sentences_that_are_not_wanted_now_is_done_to_it(language: str) -> None:
    assert acts_after(language, each=1) <= SILENCED
