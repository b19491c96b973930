"""Whatever was said there is an answer, and soon; in a large home too."""

import time

import pytest

from backend_loop.language.interpreter import Interpreter
from backend_loop.language.interpreters import KEPT, interpreter
from shared.home import Area, Entry, Inventory
from tests.pure.meant import demonstration, meant, rows
from tests.pure.meant import interpreter as ours

LONG_S = 1.0
"""Processor time that no utterance takes; measured are 0.04."""

HOSTILE = [
    "x" * 10_000,
    "turn on the kitchen light and " * 400,
    "turn on " * 60,
    "the " * 120,
    "all " * 100 + "lights",
    "and and and and and",
    "[{<(|)>}]" * 50,
    "{name} {area} <turn_on>",
    "(turn|switch) [on]",
    "\\d+(a+)+$",
    "💡" * 400,
    "的" * 490,
    "把" * 400 + "灯",
    "一" * 490,
    "百分之" * 160,
    "打开厨房灯，" * 80,
    "除了" * 200 + "灯",
    "9" * 490,
    "set the kitchen light to " + "9" * 400,
    "turn on the kitchen light to 1e400 percent",
    "\x00\x01\x02",
    "\ud800 turn",
    "\u202eturn on",
    "",
    " ",
    ", , ,",
    "?",
]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nonsense_is_answered_in_time(language: str) -> None:
    ours().warm()
    for text in HOSTILE:
        began = time.process_time()
        meaning = ours().interpret(text, language)
        assert time.process_time() - began < LONG_S, text[:60]
        assert meaning.problem is not None, text[:60]
        assert not meaning.wishes
        assert len(meaning.heard) <= 500


def test_signs_that_nobody_says_do_not_stand_in_the_way() -> None:
    said = [
        "💡 turn on the kitchen light 💡",
        "\x00turn on\x00 the kitchen light",
        "ＴＵＲＮ ＯＮ ＴＨＥ ＫＩＴＣＨＥＮ ＬＩＧＨＴ",
    ]
    said += ["turn\non\tthe kitchen   light...", "Turn on the “kitchen light”!"]
    assert {meant(text, "en") for text in said} == {"turn_on light.kitchen"}
    assert meant("打开　厨房灯。", "zh") == "turn_on light.kitchen"


def large() -> Inventory:
    """The demonstration home with 40 further rooms of 8 devices."""
    home, kinds = demonstration(), ("ceiling light", "floor lamp", "AC", "blinds", "socket", "fan", "speaker", "spot")
    domains = ("light", "light", "climate", "cover", "switch", "fan", "media_player", "light")
    rooms = [f"room {n}" for n in range(100, 140)]
    areas = [Area(id=room.replace(" ", "_"), names={"en": [room], "zh": [f"第{room[5:]}间"]}) for room in rooms]
    devices = [
        Entry(
            entity=f"{domain}.{area.id}_{kind.replace(' ', '_')}",
            area=area.id,
            names={"en": [f"{area.names['en'][0]} {kind}", kind]},
        )
        for area in areas
        for domain, kind in zip(domains, kinds, strict=True)
    ]
    return Inventory(areas=[*home.areas, *areas], devices=[*home.devices, *devices], scenes=home.scenes)


def test_a_home_of_300_devices_takes_no_longer() -> None:
    mine = Interpreter(large())
    mine.warm()
    took = []
    for language in ("en", "zh"):
        for area, text, _ in rows(f"held_out.{language}.tsv"):
            began = time.process_time()
            mine.interpret(text, language, area=area)
            took.append(time.process_time() - began)
    assert sum(took) / len(took) < 0.02  # measured: 0.002 on the average, 0.015 at worst
    assert max(took) < 0.2


def test_names_with_signs_of_the_template_language_are_only_names() -> None:
    home = Inventory(devices=[Entry(entity="light.odd", names={"en": ["lamp [old] {x} <y> (z|w)"]})])
    mine = Interpreter(home)
    assert mine.interpret("turn on lamp [old] {x} <y> (z|w)", "en").wishes[0].entity == "light.odd"


def test_an_interpreter_is_kept_as_long_as_its_home() -> None:
    one = interpreter(demonstration())
    assert interpreter(demonstration().model_copy()) is one
    for n in range(KEPT):
        interpreter(Inventory(areas=[Area(id=f"room{n}")]))
    assert interpreter(demonstration()) is not one


def test_a_language_without_sentences_of_ours_has_those_of_its_community() -> None:
    home = Inventory(
        languages=["de", "tlh"],
        areas=[Area(id="kueche", names={"de": ["Küche"]})],
        devices=[
            Entry(entity="light.kueche", area="kueche", names={"de": ["Küchenlampe"]}),
            Entry(entity="lock.haus", names={"de": ["Haustür"]}),
        ],
    )
    mine = Interpreter(home)
    assert mine.interpret("schalte die Küchenlampe ein", "de").wishes[0].payload["action"] == "turn_on"
    assert mine.interpret("schalte das Licht in der Küche aus", "de").wishes[0].payload["action"] == "turn_off"
    assert mine.interpret("verriegle die Haustür", "de").wishes[0].payload["action"] == "lock"
    assert mine.interpret("entriegle die Haustür", "de").confirm
    assert mine.interpret("foo", "tlh").problem == "not_understood"


def test_an_empty_home_understands_and_knows_nobody() -> None:
    mine = Interpreter(Inventory())
    assert mine.interpret("turn on the light", "en").problem == "no_such_device"
    assert mine.interpret("打开灯", "zh").problem == "no_such_device"


def test_a_kind_of_device_that_nobody_here_has_heard_of_is_told_and_asked_nothing() -> None:
    odd = [Entry(entity="vacuum.robot", names={"en": ["robot"], "zh": ["机器人"]})]
    mine = Interpreter(Inventory(devices=odd))
    for said, language in (("is the robot on", "en"), ("turn on the robot", "en"), ("机器人开着吗", "zh")):
        assert mine.interpret(said, language).problem == "not_understood", said
    assert mine.interpret("what is the robot doing", "en").wishes[0].payload == {"entity": "vacuum.robot"}
