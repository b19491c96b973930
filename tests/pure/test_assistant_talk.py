"""What the assistant decides: whom an utterance answers, which wish begins when, and how all of it ends."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from backend_loop.child_missions import ChildMission
from backend_loop.language.meaning import Meaning, Wish
from backend_loop.missions.assistant_talk import Bearing, Kind, area_of, bears, before, due, ended, language_of, rows
from backend_loop.missions.assistant_words import said
from backend_loop.outcomes import Fail, Go, Stop
from backend_loop.sessions import utterance
from shared.home import check

HOME = check({"areas": [{"id": "kitchen", "names": {"en": ["Kitchen"], "zh": ["厨房"]}}, {"id": "den"}]})
ON, OTHER = (
    Wish(mission="device.control", payload={"entity": entity, "action": "turn_on"}, entity=entity)
    for entity in ("light.a", "light.b")
)
SET = Wish(
    mission="device.control", payload={"entity": "light.a", "action": "set_brightness", "value": 5}, entity="light.a"
)
LOOK = Wish(mission="device.query", payload={"entity": ["sensor.a", "sensor.b"]}, asks="temperature")
SCENE = Wish(
    mission="scene.run", payload={"actions": [{"entity": "light.a", "action": "turn_on"}]}, scene="movie", entity=None
)


def child(
    status: str = "SUCCEEDED", *, code: str | None = None, reason: str | None = None, **more: Any
) -> ChildMission:
    error = None if code is None else {"code": code, "message": f"it is {code}"}
    fields: dict[str, Any] = {"type": "device.control", "result": {"outcome": "confirmed", "value": {}}, **more}
    return ChildMission("t", fields["type"], None, status, fields["result"], error, reason)


DONE, LOST = child(), child("FAILED", code="device_unreachable", result=None)
OVERRIDDEN = child("CANCELLED", reason="overridden")
NEW = Meaning(wishes=[ON])
NOTHING = Meaning(problem="not_understood")


@pytest.mark.parametrize(
    ("kind", "meaning", "filled", "bearing"),
    [
        ("confirm", Meaning(control="yes"), None, "answers"),
        ("confirm", Meaning(control="no"), None, "answers"),
        ("confirm", NEW, None, "withdraws"),
        ("confirm", NOTHING, None, "leaves"),
        ("confirm", Meaning(problem="which_area"), None, "withdraws"),
        ("which_area", NOTHING, NEW, "answers"),
        ("which_area", NOTHING, NOTHING, "leaves"),
        ("which_area", Meaning(control="no"), NOTHING, "answers"),
        ("which_area", Meaning(control="yes"), Meaning(control="yes"), "leaves"),
        ("ambiguous", NEW, NEW, "withdraws"),
        ("ambiguous", Meaning(problem="no_such_device"), NOTHING, "withdraws"),
    ],
)
def test_what_an_utterance_is_to_a_question(
    kind: Kind, meaning: Meaning, filled: Meaning | None, bearing: Bearing
) -> None:
    assert bears(kind, meaning, filled) == bearing


def test_what_is_cancelled_was_said_before() -> None:
    assert before(["c", "b", "a"], "b") == "a"
    assert before(["c", "b", "a"], "d") == "c"
    assert before(["b"], "b") is before([], "b") is None


@pytest.mark.parametrize(
    ("said", "text", "language"),
    [
        ("zh-CN", "lights", "zh"),
        ("ZH_cn", "lights", "zh"),
        ("en-GB", "灯", "en"),
        ("de-DE", "Licht an", "en"),
        ("fr", "灯", "zh"),
        (None, "打开 the light", "zh"),
        (None, "lights", "en"),
    ],
)
def test_the_language_is_the_one_that_was_said_if_it_is_known(said: str | None, text: str, language: str) -> None:
    assert language_of(said, text, ["en", "zh"]) == language


def test_of_two_of_a_family_the_very_one_is_taken() -> None:
    assert language_of("pt-BR", "luz", ["pt", "pt-BR"]) == "pt-BR"


@pytest.mark.parametrize(
    ("said", "area"),
    [("kitchen", "kitchen"), (" KITCHEN", "kitchen"), ("厨房", "kitchen"), ("attic", None), (None, None)],
)
def test_an_area_may_be_named_as_people_call_it(said: str | None, area: str | None) -> None:
    assert area_of(said, HOME) == area


@pytest.mark.parametrize(
    ("wishes", "ordered", "ends", "begins"),
    [
        ([ON, OTHER], False, [None, None], [0, 1]),
        ([ON, OTHER], False, [DONE, LOST], []),
        ([ON, SET], True, [None, None], [0]),
        ([ON, SET], True, [DONE, None], [1]),
        ([ON, SET], True, [LOST, None], []),
        ([ON, SET, OTHER], True, [LOST, None, None], [2]),
        ([ON, OTHER], True, [LOST, None], [1]),
        ([SCENE, LOOK], True, [LOST, None], [1]),
    ],
)
def test_what_begins(wishes: list[Wish], ordered: bool, ends: list[ChildMission | None], begins: list[int]) -> None:
    assert due(Meaning(wishes=wishes, ordered=ordered), ends) == begins


@given(
    some.lists(some.sampled_from([ON, SET, OTHER, LOOK, SCENE]), min_size=1, max_size=6),
    some.booleans(),
    some.data(),
)
def test_all_comes_to_an_end_and_nothing_begins_twice(wishes: list[Wish], ordered: bool, data: some.DataObject) -> None:
    meaning, ends = Meaning(wishes=wishes, ordered=ordered), list[ChildMission | None]([None] * len(wishes))
    for _ in wishes:
        if not (begins := due(meaning, ends)):
            break
        assert {ends[n] for n in begins} == {None}
        for n in begins:
            ends[n] = data.draw(some.sampled_from([DONE, LOST, OVERRIDDEN]))
    assert due(meaning, ends) == []
    end = ended(meaning, ends, {}, 0)
    assert isinstance(end, Go) == all(one is DONE for one in ends)
    assert isinstance(end, Fail) == (LOST in ends)


@pytest.mark.parametrize(
    ("ends", "word"),
    [
        ([DONE, DONE], "answered"),
        ([DONE, OVERRIDDEN], "overridden"),
        ([OVERRIDDEN, LOST], "device_unreachable"),
        ([child("FAILED", code="permanent"), DONE], "child_failed"),
        ([child("FAILED", code="unconfirmed"), None], "unconfirmed"),
    ],
)
def test_it_ends_as_what_was_wished_for_ended(ends: list[ChildMission | None], word: str) -> None:
    end = ended(Meaning(wishes=[ON, OTHER]), ends, {"text": "so"}, 0)
    assert end.result == {"text": "so"}
    match end:
        case Go():
            assert end.event == word
        case Fail():
            assert str(end.code) == word
        case Stop():
            assert str(end.reason) == word


def test_a_scene_of_which_nothing_was_done_ends_as_its_first_plain_failure() -> None:
    actions = [{"entity": "light.a", "action": "turn_on", "outcome": "device_refused"}]
    scene = child("FAILED", code="child_failed", type="scene.run", result={"actions": actions})
    end = ended(Meaning(wishes=[SCENE]), [scene], {}, 0)
    assert isinstance(end, Fail)
    assert str(end.code) == "device_refused"


def test_each_device_has_its_row() -> None:
    looked = {
        "devices": [
            {"entity": "sensor.a", "value": {"temperature": 21}, "error": None, "freshness": {"age_ms": 3}},
            {"entity": "sensor.b", "value": None, "error": "it is offline", "freshness": None},
        ]
    }
    done = {"actions": [{"entity": "light.a", "action": "turn_on", "outcome": "confirmed"}]}
    ends = [DONE, child(type="device.query", result=looked), child(type="scene.run", result=done), None]
    told = rows(Meaning(wishes=[ON, LOOK, SCENE, SCENE]), ends)
    assert [(row["entity"], row["outcome"]) for row in told] == [
        ("light.a", "confirmed"),
        ("sensor.a", "observed"),
        ("sensor.b", "device_unreachable"),
        ("light.a", "confirmed"),
        ("light.a", "not_begun"),
    ]
    assert (told[3]["scene"], told[1]["freshness"]) == ("movie", {"age_ms": 3})
    unseen = rows(
        Meaning(wishes=[LOOK]), [child("FAILED", code="device_unreachable", type="device.query", result=None)]
    )
    assert [(row["entity"], row["outcome"]) for row in unseen] == [
        ("sensor.a", "device_unreachable"),
        ("sensor.b", "device_unreachable"),
    ]


def test_what_microphones_write_alike_is_the_same_utterance() -> None:
    assert utterance("Turn on the LIGHT!") == utterance(" turn on, the light")
    assert utterance("打开 灯。") == utterance("打开灯")
    assert utterance("turn on the light") != utterance("turn off the light")
    assert utterance("调到26度") != utterance("调到27度")


def test_a_language_without_words_of_its_own_is_answered_in_english() -> None:
    assert said("cancelled", "de-DE") == said("cancelled", "en")
    assert not said("cancelled", "zh-TW").isascii()
