"""The grammar of the embedded engine: what a home can be told, word by word."""

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from backend_loop.language.interpreters import interpreter
from backend_loop.speech.grammar import _FIXED, _KINDS, Grammar, spoken_form
from backend_loop.speech.numerals import words_of, written
from backend_loop.speech.pronunciation import by_letter, by_rule, is_initials
from backend_loop.speech.sentences import Expression, parsed
from backend_loop.speech.sphinx import confidence
from shared.home import Area, Entry, Inventory, read

ROOT = Path(__file__).parent.parent.parent
DEMONSTRATION = read((ROOT / "dualloop" / "home" / "inventory.json").read_bytes())
HOME = Grammar(DEMONSTRATION)


def rows(name: str) -> list[list[str]]:
    lines = (ROOT / "tests" / "language" / name).read_text().splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def told(row: list[str]) -> str:
    form = spoken_form(row[2])
    assert form is not None
    return form


@pytest.mark.parametrize("row", [row for row in rows("commands.tsv") if row[1] == "en"], ids=lambda row: row[0])
def test_each_english_command_is_a_sentence_of_it(row: list[str]) -> None:
    assert HOME.accepts(told(row))


@pytest.mark.parametrize(
    "sentence",
    [
        "please turn off all the lights in the kitchen",
        "could you close the bedroom curtains please",
        "turn on the kitchen light and the oven",
        "unlock the front door",
        "is the front door locked",
        "turn on the living room AC and set it to twenty one point five degrees",
        "set the volume to thirty percent",
        "how warm is it in the study",
        "turn off all the lights except the hall",
        "did we lock the front door",
        "which lights are on",
        "in the bedroom",
        "cancel that",
        "yes please",
    ],
)
def test_families_say_this(sentence: str) -> None:
    assert HOME.accepts(sentence)


@pytest.mark.parametrize("sentence", ["", "turn on", "turn on the", "lock the bedroom light", "please yes", "hello"])
def test_nobody_says_this(sentence: str) -> None:
    assert not HOME.accepts(sentence)


def test_a_home_is_told_only_what_it_has() -> None:
    bare = Grammar(Inventory())
    assert bare.accepts("cancel that")
    assert not bare.accepts("turn on the light")
    lamp = Entry(entity="light.one", names={"en": ["reading lamp 2", "Ümläut", "灯"], "zh": ["台灯"]})
    one = Grammar(Inventory(devices=[lamp]))
    assert one.accepts("turn on the reading lamp two")
    assert one.accepts("turn off everything in here")
    assert not one.accepts("close the reading lamp two")
    assert "灯" not in one.jsgf
    roomy = Grammar(Inventory(areas=[Area(id="den", names={"en": ["den"]})], devices=[lamp]))
    assert roomy.accepts("turn on the reading lamp two in the den")


def test_no_rule_hides_another() -> None:
    rules = [rule for kind in _KINDS.values() for rule in kind]
    assert len({*rules, *_KINDS, *_FIXED}) == len(rules) + len(_KINDS) + len(_FIXED)
    for body in HOME.rules.values():
        for name in names_in(parsed(body)):
            assert name in HOME.rules or name == "VOID"


def names_in(one: Expression) -> set[str]:
    return {one.word} if one.kind == "rule" else set().union(*map(names_in, one.parts))


def test_brackets_match() -> None:
    with pytest.raises(ValueError, match="is not closed"):
        parsed("(a | b")
    with pytest.raises(ValueError, match="too many"):
        parsed("a ] b")


def said(one: Expression, rules: Mapping[str, Expression], dice: random.Random) -> list[str]:
    """Any sentence of a rule."""
    match one.kind:
        case "word":
            return [one.word]
        case "rule":
            return said(rules[one.word], rules, dice)
        case "any":
            return said(dice.choice(one.parts), rules, dice)
        case "maybe" if dice.random() < 0.5:
            return []
    return [word for part in one.parts for word in said(part, rules, dice)]


def test_whatever_it_can_hear_is_a_sentence_with_words_that_are_known() -> None:
    rules = {name: parsed(body) for name, body in HOME.rules.items()}
    dice = random.Random(7)
    for _ in range(300):
        words = said(rules["told"], rules, dice)
        assert set(words) <= set(HOME.words)
        assert HOME.accepts(" ".join(words)), words
    assert set(HOME.telling) < set(HOME.words)
    assert {"bedroom", "AC", "twenty", "night"} <= set(HOME.telling)
    assert not {"the", "turn", "please"} & set(HOME.telling)


def test_what_it_hears_is_understood_nearly_always() -> None:
    rules, dice = {name: parsed(body) for name, body in HOME.rules.items()}, random.Random(11)
    told = [rule for kind in _KINDS.values() for rule in kind if rule != "room"]  # that answers a question
    lost = []
    for rule in told * 6:
        sentence = written(" ".join(said(rules[rule], rules, dice)))
        if interpreter(DEMONSTRATION).interpret(sentence, "en").problem == "not_understood":
            lost.append(sentence)
    assert len(lost) <= len(told) * 6 / 5, lost


@pytest.mark.parametrize("number", range(101))
def test_numbers_are_said_and_written(number: int) -> None:
    words = words_of(str(number))
    assert words is not None
    assert written(f"set it to {words} degrees") == f"set it to {number} degrees"
    assert HOME.accepts(f"volume {words} percent") == (number > 0)
    assert HOME.accepts(f"make it {words} degrees") == (0 < number < 40)


def test_only_numbers_are_written_in_digits() -> None:
    assert written("turn on one light and a hundred and twenty six point five") == ("turn on 1 light and 100 and 26.5")
    assert written("a point in the twenty") == "a point in the 20"
    assert (words_of("101"), words_of("9999999999")) == (None, None)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("Living-room AC", "living room AC"),
        ("mum's lamp", "mum's lamp"),
        ("Mum’s lamp!", "mum's lamp"),
        ("lamp_2", "lamp two"),
        ("TV", "TV"),
        ("客厅", None),
        ("lamp 2026", None),
        ("…", None),
    ],
)
def test_names_are_said_word_by_word(name: str, form: str | None) -> None:
    assert spoken_form(name) == form


def test_words_that_no_dictionary_has_are_said_as_they_are_written() -> None:
    assert by_letter("AC") == "EY S IY"
    assert [is_initials(word) for word in ("TV", "dvd", "lamp")] == [True, True, False]
    assert by_rule("zigbee") == "Z IH G B IY"
    assert by_rule("shelly") == "SH EH L IY"
    assert by_rule("hive") == "HH AY V"
    phones = " ".join(map(by_rule, ("quixotic", "xylophone", "rhythmbox", "o'neill", "jazzy"))).split()
    assert all(phone.isupper() and len(phone) <= 2 for phone in phones)


def test_confidence_falls_with_the_worst_word_and_with_a_sentence_that_has_no_end() -> None:
    good = confidence(worst=2.5, mean=2.0, covered=1.0, whole=True)
    assert good > 0.95
    assert confidence(worst=2.5, mean=2.0, covered=1.0, whole=False) < 0.5
    assert confidence(worst=5.5, mean=2.5, covered=1.0, whole=True) < 0.1, "one wrong name, all else right"
    assert confidence(worst=2.5, mean=5.5, covered=1.0, whole=True) < 0.1
    assert confidence(worst=2.5, mean=2.0, covered=0.3, whole=True) < 0.4
    assert confidence(worst=2.5, mean=2.0, covered=1.4, whole=True) == good
