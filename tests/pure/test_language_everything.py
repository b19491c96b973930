"""Everything at once: what is told of all is told only to what can be told that."""

import pytest

from backend_loop.child_missions import ChildMission
from backend_loop.language import answers
from tests.pure.meant import demonstration, interpreter, meant

BLINDS = ("cover.bedroom", "cover.kitchen", "cover.living_room")
CLOSED = " + ".join(f"close {one}" for one in BLINDS)
OPENED = " + ".join(f"open {one}" for one in BLINDS)


def _seen(text: str, language: str, **values: object) -> str:
    """The answer where each device shows the value that there is for its kind, or for itself with ``__`` for a dot."""
    meaning = interpreter().interpret(text, language)
    assert meaning.problem is None
    shown = [
        values.get(str(wish.entity).replace(".", "__"), values[str(wish.entity).partition(".")[0]])
        for wish in meaning.wishes
    ]
    looks = [
        ChildMission("t", "device.query", None, "SUCCEEDED", {"value": {wish.asks: value}}, None, None, {"age_ms": 20})
        for wish, value in zip(meaning.wishes, shown, strict=True)
    ]
    return answers.answer(meaning, looks, language)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("close everything", CLOSED),
        ("shut everything", CLOSED),
        ("close all", CLOSED),
        ("close all of them", CLOSED),
        ("make sure everything is closed", CLOSED),
        ("open everything", OPENED),
        ("turn everything open", OPENED),
        ("open all devices", OPENED),
        ("close everything except the bedroom", "close cover.kitchen + close cover.living_room"),
        ("close all except the bedroom blinds", "close cover.kitchen + close cover.living_room"),
        ("leave the bedroom open and close the others", "close cover.kitchen + close cover.living_room"),
        ("close everything but the blinds", "!not_understood"),
        ("lock everything", "lock lock.front_door"),
        ("unlock everything", "!not_understood"),
    ],
)
def test_everything_is_opened_and_closed_where_it_can_be_and_nothing_is_switched(text: str, means: str) -> None:
    assert meant(text, "en") == means


@pytest.mark.parametrize("text", ["shut everything down", "shut down everything", "everything off"])
def test_everything_is_turned_off_where_that_is_said(text: str) -> None:
    assert meant(text, "en") == meant("turn everything off", "en")


@pytest.mark.parametrize("text", ["anything on", "anything open", "anything off"])
def test_a_question_of_two_words_turns_nothing_on(text: str) -> None:
    assert {wish.mission for wish in interpreter().interpret(text, "en").wishes} == {"device.query"}


def test_whether_everything_is_closed_is_told_by_blinds_and_doors() -> None:
    opened = _seen("is everything closed", "en", cover=100, sensor="closed")
    assert opened == "Only the front door is closed."
    assert _seen("is everything closed", "en", cover=100, sensor="open").startswith("No, ")
    assert _seen("is everything closed", "en", cover=0, sensor="closed").startswith("Yes, ")
    assert _seen("is anything open", "en", cover=0, cover__kitchen=30, sensor="closed") == (
        "Only the kitchen blinds are open."
    )
    assert _seen("is everything locked", "en", lock="unlocked") == "No, the front door is unlocked."


def test_many_that_are_on_are_told_of_by_the_names_of_the_first() -> None:
    on = dict.fromkeys(("climate__bedroom", "climate__study", "light__hall", "light__study"), "on")
    told = _seen("what's on", "en", light="off", climate="off", media_player="on", switch="on", **on)
    assert told.startswith("6 devices of 10 are on: the ")
    assert told.endswith(" and 3 more.")
    chinese = _seen("有什么开着", "zh", light="off", climate="off", media_player="on", switch="on", **on)
    assert chinese.startswith("10个里有6个设备开着：")
    assert chinese.endswith("，还有3个。")


@pytest.mark.parametrize(
    ("text", "verb", "kind", "but"),
    [
        ("把除了客厅的灯都关了", "turn_off", "light", "living_room"),
        ("把除了书房的灯都关掉", "turn_off", "light", "study"),
        ("除了客厅灯都关了", "turn_off", "light", "living_room"),
        ("把除了书房的灯都打开", "turn_on", "light", "study"),
        ("把除了客厅的空调都关了", "turn_off", "climate", "living_room"),
        ("关掉除了书房以外的灯", "turn_off", "light", "study"),
        ("关掉书房以外的所有灯", "turn_off", "light", "study"),
        ("关掉除了书房的灯", "turn_off", "light", "study"),
        ("打开除了书房以外的灯", "turn_on", "light", "study"),
    ],
)
def test_of_all_but_one_the_others_are_of_its_kind(text: str, verb: str, kind: str, but: str) -> None:
    home = [one.entity for one in demonstration().devices if one.entity.startswith(f"{kind}.")]
    assert meant(text, "zh") == " + ".join(sorted(f"{verb} {one}" for one in home if one != f"{kind}.{but}"))


def test_without_a_word_of_exception_only_the_one_is_told() -> None:
    assert meant("关掉书房的灯", "zh") == "turn_off light.study"


@pytest.mark.parametrize(
    ("text", "language", "name"),
    [
        ("is any window open", "en", "window"),
        ("are any of the windows open", "en", "windows"),
        ("窗户都关了吗", "zh", "窗户"),
        ("有窗户开着吗", "zh", "窗户"),
    ],
)
def test_how_many_is_none_of_the_name_of_what_is_not_known(text: str, language: str, name: str) -> None:
    meaning = interpreter().interpret(text, language)
    assert (meaning.problem, meaning.unknown) == ("no_such_device", name)


def test_whether_all_is_closed_is_of_all_that_can_be_in_chinese() -> None:
    assert meant("都锁了吗", "zh") == "look lock.front_door lock=locked"
    shut = dict.fromkeys(("light", "climate", "media_player", "switch"), "off") | {"cover": 0, "sensor": "closed"}
    assert _seen("都关了吗", "zh", **shut).startswith("是的，")
    assert _seen("都关了吗", "zh", **{**shut, "light": "on", "cover__kitchen": 100}).startswith("14个里有8个设备关着：")
    assert _seen("门窗都关了吗", "zh", cover=0, sensor="open").startswith("只有")
