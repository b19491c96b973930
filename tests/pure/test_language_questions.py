"""What is not clear is asked back, and the answer makes it clear; what is not known is not done."""

import pytest

from backend_loop.language.interpreter import Interpreter
from backend_loop.language.meaning import Meaning
from shared.home import Area, Entry, Inventory, Scene, SceneAct
from tests.pure.meant import interpreter, line, meant

ROOMS = ["living_room", "bedroom", "kitchen", "study", "hall"]
ALL = " + ".join(sorted(f"turn_on light.{room}" for room in ROOMS))


def heard(text: str, language: str = "en", area: str | None = None) -> Meaning:
    return interpreter().interpret(text, language, area=area)


def filled(text: str, answer: str, language: str = "en") -> str:
    return line(interpreter().fill(heard(text, language), answer))


def test_a_light_without_a_room_asks_in_which() -> None:
    meaning = heard("turn on the light")
    assert (meaning.problem, meaning.candidates, meaning.wishes) == ("which_area", ROOMS, [])
    assert meaning.names["living_room"] == "living room"


def test_where_it_was_said_settles_it() -> None:
    assert meant("turn on the light", "en", "kitchen") == "turn_on light.kitchen"
    assert meant("打开灯", "zh", "kitchen") == "turn_on light.kitchen"
    assert meant("play some music", "en", "kitchen") == "play media_player.living_room"  # there is one in the home


@pytest.mark.parametrize(
    ("text", "answer", "language", "want"),
    [
        ("turn on the light", "the kitchen", "en", "turn_on light.kitchen"),
        ("turn on the light", "in the study, please", "en", "turn_on light.study"),
        ("turn on the light", "the one in the hall", "en", "turn_on light.hall"),
        ("turn on the light", "the bedroom light", "en", "turn_on light.bedroom"),
        ("turn on the light", "kitchen and hall", "en", "turn_on light.hall + turn_on light.kitchen"),
        ("turn on the light", "all of them", "en", ALL),
        ("打开灯", "厨房的", "zh", "turn_on light.kitchen"),
        ("打开灯", "客厅和卧室", "zh", "turn_on light.bedroom + turn_on light.living_room"),
        ("打开灯", "都打开", "zh", ALL),
        ("现在多少度", "客厅", "zh", "look sensor.living_room temperature"),
        ("空调调到24度", "卧室", "zh", "set_temperature climate.bedroom 24"),
        ("turn on the garage light", "the hall light", "en", "turn_on light.hall"),
    ],
)
def test_the_answer_makes_it_clear(text: str, answer: str, language: str, want: str) -> None:
    assert filled(text, answer, language) == want


@pytest.mark.parametrize("answer", ["banana", "the garage", "x" * 10_000, ""])
def test_an_answer_that_is_none_leaves_the_question_open(answer: str) -> None:
    assert interpreter().fill(heard("turn on the light"), answer) == heard("turn on the light")


def test_another_command_in_place_of_the_answer_is_that() -> None:
    assert filled("turn on the light", "close the kitchen blinds") == "close cover.kitchen"
    assert filled("turn on the light", "never mind") == "cancel"


def test_a_name_that_nothing_has_is_answered_with_what_is_like_it() -> None:
    meaning = heard("turn on the garage light")
    assert (meaning.problem, meaning.unknown) == ("no_such_device", "garage light")
    assert meaning.candidates == []  # any lamp would be as near
    assert heard("turn on the kotchen light").candidates == ["light.kitchen"]
    assert heard("打开车库的灯", "zh").candidates == []
    assert heard("turn on the washing machine").candidates == []
    assert heard("lock the garage door").candidates == ["lock.front_door"]


def test_a_kind_that_the_room_does_not_have_is_answered_with_where_it_is() -> None:
    meaning = heard("open the blinds in the study")
    assert meaning.problem == "no_such_device"
    assert set(meaning.candidates) == {"cover.living_room", "cover.bedroom", "cover.kitchen"}


def test_two_of_one_name_in_a_room_are_asked_about_by_name() -> None:
    home = Inventory(
        areas=[Area(id="den", names={"en": ["den"]})],
        devices=[
            Entry(entity="light.left", names={"en": ["reading lamp", "left lamp"]}),
            Entry(entity="light.right", area="den", names={"en": ["reading lamp", "right lamp"]}),
        ],
    )
    mine = Interpreter(home)
    meaning = mine.interpret("turn on the reading lamp", "en")
    assert (meaning.problem, meaning.candidates) == ("ambiguous", ["light.left", "light.right"])
    assert line(mine.fill(meaning, "the left lamp")) == "turn_on light.left"
    assert line(mine.interpret("turn on the lamps in the den", "en")) == "turn_on light.right"


@pytest.mark.parametrize(
    ("text", "confirm"),
    [
        ("unlock the front door", True),
        ("open the front door", True),
        ("turn on the oven", True),
        ("turn on the kitchen light and the oven", True),
        ("lock the front door", False),  # what makes it safe is done at once
        ("turn off the oven", False),
        ("is the front door locked", False),
        ("good night", False),
        ("turn on the kitchen light", False),
    ],
)
def test_only_what_is_dangerous_is_confirmed(text: str, confirm: bool) -> None:
    meaning = heard(text)
    assert meaning.problem is None
    assert meaning.confirm is confirm


def test_a_scene_that_unlocks_is_confirmed() -> None:
    home = Inventory(
        devices=[Entry(entity="lock.gate", names={"en": ["gate"]})],
        scenes=[
            Scene(
                id="guests",
                phrases={"en": ["the guests are here"]},
                actions=[SceneAct(entity="lock.gate", action="unlock")],
            )
        ],
    )
    assert Interpreter(home).interpret("The guests are here!", "en").confirm


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("don't turn on the kitchen light", "en"),
        ("never unlock the front door", "en"),
        ("kitchen light at seven", "en"),
        ("turn off the oven at ten", "en"),
        ("in ten minutes turn on the hall light", "en"),
        ("after sunset close the kitchen blinds", "en"),
        ("set the kitchen light to 150 percent", "en"),
        ("set the bedroom AC to 90 degrees", "en"),
        ("set the kitchen light to 20 degrees", "en"),
        ("dim the bedroom AC to 20 percent", "en"),
        ("不要打开厨房的灯", "zh"),
        ("千万别开烤箱", "zh"),
        ("我回家之后打开客厅灯", "zh"),
        ("我要回家", "zh"),
        ("明天打开厨房灯", "zh"),
        ("厨房灯调到百分之一百五", "zh"),
    ],
)
def test_what_is_not_wanted_now_or_cannot_be_is_not_done(text: str, language: str) -> None:
    assert meant(text, language) == "!not_understood"


def test_a_question_said_without_a_pause_stays_one() -> None:
    assert meant("看一下客厅灯关没关", "zh") == "look light.living_room power=off"
    assert meant("is the kitchen light on turn off the hall light", "en") == "!not_understood"


def test_who_is_left_out_of_all_must_be_known() -> None:
    assert meant("turn off all the lights except the garage one", "en") == "!not_understood"
    assert meant("除了车库其他的灯都关掉", "zh") == "!not_understood"
    others = "turn_off light.bedroom + turn_off light.living_room"
    assert meant("turn off all lights but the kitchen, the hall and the study one", "en") == others


def test_lock_up_never_unlocks() -> None:
    assert meant("lock up", "en") == "lock lock.front_door"
    assert meant("please lock up the door", "en") == "lock lock.front_door"


def test_what_goes_on_as_a_question_does_nothing() -> None:
    lamps = "look light.bedroom power=on + look light.study power=on"
    assert meant("are the bedroom and the study lights on", "en") == lamps
    both = meant("is the front door locked and the oven off", "en")
    assert both == "look lock.front_door lock=locked + look switch.oven power=off"
    assert meant("is the kitchen light and turn on the hall light", "en") == "!not_understood"


def test_a_part_that_is_not_understood_keeps_the_rest_from_being_done() -> None:
    assert meant("turn on the kitchen light and feed the cat", "en") == "!not_understood"
    assert meant("turn on the kitchen light and the garage light", "en").startswith("!")


def test_the_other_language_of_the_home_is_understood_too() -> None:
    meaning = heard("打开厨房灯", "en")
    assert (line(meaning), meaning.language) == ("turn_on light.kitchen", "zh")
    assert meant("turn on the kitchen light", "zh-CN") == "turn_on light.kitchen"


def test_a_question_about_lamps_anywhere_looks_at_all_of_them() -> None:
    assert meant("are the lights on", "en") == " + ".join(sorted(f"look light.{room} power=on" for room in ROOMS))
    assert meant("is the light on", "en", "study") == "look light.study power=on"


def test_a_name_may_hold_what_else_stands_between_or_around() -> None:
    home = Inventory(
        devices=[
            Entry(entity="light.table", names={"en": ["salt and pepper"]}),
            Entry(entity="light.bar", names={"en": ["bar"], "zh": ["酒吧"]}),
            Entry(entity="light.second", names={"en": ["lamp 2"]}),
            Entry(entity="light.third", names={"en": ["lamp three"]}),
        ]
    )
    mine = Interpreter(home)
    assert (
        line(mine.interpret("turn off salt and pepper and the bar", "en"))
        == "turn_off light.bar + turn_off light.table"
    )
    assert line(mine.interpret("打开酒吧", "zh")) == "turn_on light.bar"
    lamps = mine.interpret("set lamp two to thirty percent and turn off lamp 3", "en")
    assert line(lamps) == "set_brightness light.second 30 + turn_off light.third"


def test_one_name_for_two_in_a_room_is_asked_about_too() -> None:
    home = Inventory(
        areas=[Area(id="den")],
        devices=[
            Entry(entity="light.left", area="den", names={"en": ["Luna"]}),
            Entry(entity="light.right", area="den", names={"zh": ["Luna"]}),
        ],
    )
    assert Interpreter(home).interpret("turn on luna", "en").candidates == ["light.left", "light.right"]
