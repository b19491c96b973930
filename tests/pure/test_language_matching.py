"""Cutting templates never changes what hassil reads; and what a clause leaves out it borrows of its neighbours."""

from dataclasses import replace

import pytest
from hassil import recognize_all

from backend_loop.language.clauses import apart
from backend_loop.language.frame import Frame, Verb, together
from backend_loop.language.grammar import _stock, grammar, lists_of
from backend_loop.language.matching import Reading, readings
from backend_loop.language.names import book, outermost
from backend_loop.language.numbers import digits
from backend_loop.language.text import fold
from backend_loop.language.tongues import TONGUES
from shared.home import Area, Entry, Inventory
from tests.pure.meant import demonstration, rows


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_cut_away_could_not_have_matched(language: str) -> None:
    known = grammar(language)
    names = book(demonstration(), language, known.kinds)
    found = 0
    for _, said, _ in rows(f"second.{language}.tsv")[::7]:
        text = digits(fold(said), language).rstrip("?!.,，。 ")
        lists = lists_of(text, names)
        for intents in (known.own, known.stock):
            assert intents is not None
            mine = {(one.intent, str(sorted(one.slots.items()))) for one in readings(text, intents, lists)}
            theirs = {
                (one.intent.name, str(sorted((name, entity.value) for name, entity in one.entities.items())))
                for one in recognize_all(text, replace(intents, skip_words=[]), dict(lists))
            }
            assert mine == theirs, said
            found += len(mine)
    assert found > 5, "some of them mean something"


def test_a_sentence_of_the_community_that_says_more_than_is_understood_is_none() -> None:
    names = book(demonstration(), "en")
    said = {"area": "kitchen", "domain": "cover"}
    assert _stock(Reading("HassTurnOn", said, {}, None), names) == Frame(Verb.ON, area="kitchen", kind="cover")
    assert _stock(Reading("HassTurnOn", {**said, "device_class": "gate"}, {}, None), names) is None
    assert _stock(Reading("HassTurnOn", {**said, "effect": "disco"}, {}, None), names) is None


def test_the_longest_name_wins_and_no_word_is_cut() -> None:
    home = Inventory(
        areas=[Area(id="hall", names={"en": ["hall"]})],
        devices=[
            Entry(entity="light.hall", names={"en": ["hall light"]}),
            Entry(entity="fan.a", names={"en": ["all"]}),
        ],
    )
    names = book(home, "en")
    assert [span.text for span in outermost(names.spans("the hall light, all of it, hallway, small"))] == [
        "hall light",
        "all",
    ]


LIGHT = Frame(Verb.OFF, kind="light")


KITCHEN, HALL = Frame(Verb.BARE, area="kitchen"), Frame(Verb.BARE, area="hall")
IN_KITCHEN = Frame(Verb.OFF, kind="light", area="kitchen")
AC = Frame(Verb.OFF, kind="climate", area="hall")


@pytest.mark.parametrize(
    ("clauses", "want"),
    [
        # turn off the lights in the kitchen and the hall
        ([IN_KITCHEN, HALL], [("light", "kitchen"), ("light", "hall")]),
        # hall and kitchen lights off
        ([HALL, IN_KITCHEN], [("light", "hall"), ("light", "kitchen")]),
        # the light and the blinds in the hall
        ([LIGHT, Frame(Verb.BARE, kind="cover", area="hall")], [("light", "hall"), ("cover", "hall")]),
        # turn off the lights, in the hall
        ([LIGHT, HALL], [("light", "hall")]),
        # turn off the AC in the hall and the lights
        ([AC, LIGHT], [("climate", "hall"), ("light", "hall")]),
        # turn off the AC in the hall and all lights
        ([AC, Frame(Verb.OFF, kind="light", every=True)], [("climate", "hall"), ("light", None)]),
    ],
)
def test_a_clause_borrows_what_it_leaves_out(clauses: list[Frame], want: list[tuple[str, str | None]]) -> None:
    frames = together(clauses)
    assert frames is not None
    assert [(frame.kind, frame.area) for frame in frames] == want
    assert {frame.verb for frame in frames} == {Verb.OFF}


def test_a_value_is_that_of_the_device_before() -> None:
    frames = together([Frame(Verb.ON, name="ac", area="hall"), Frame(Verb.SET, number=24, degrees=True)])
    assert frames is not None
    assert (frames[1].name, frames[1].area, frames[1].number) == ("ac", "hall", 24)


def test_nobody_to_borrow_from_is_no_command() -> None:
    assert together([HALL, KITCHEN]) is None
    assert together([Frame(Verb.SCENE, scene="home"), KITCHEN]) is None


def test_only_what_is_said_in_a_breath_is_cut_where_nothing_stands_between() -> None:
    tongue, names = TONGUES["en"], book(demonstration(), "en")
    said = "turn on the kitchen light turn off the hall light"
    assert next(apart(said, tongue, names)) == ["turn on the kitchen light", "turn off the hall light"]
    assert list(apart(said + " please" * 20, tongue, names)) == []
