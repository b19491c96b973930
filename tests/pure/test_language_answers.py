"""What is said back, in both languages: only what was seen, and each end in words of its own."""

from typing import Any

import pytest

from backend_loop.child_missions import ChildMission
from backend_loop.language import answers
from backend_loop.language.meaning import Meaning
from backend_loop.language.wording import CHINESE, ENGLISH
from shared.actions import ACTIONS, CHANGES
from shared.status import ErrorCode, Reason
from tests.pure.meant import interpreter

FAILED = ("contradicted", "unconfirmed", "device_unreachable", "device_refused", "deadline")
CANCELLED = ("overridden", "requested", "superseded", "expired")
OUTCOMES = ("confirmed", "already_done", *FAILED, *CANCELLED)


def heard(text: str, language: str) -> Meaning:
    meaning = interpreter().interpret(text, language)
    assert meaning.problem is None
    return meaning


def child(outcome: str) -> ChildMission:
    if outcome in CANCELLED:
        return ChildMission("t", "device.control", None, "CANCELLED", None, None, outcome)
    if outcome in ("confirmed", "already_done"):
        return ChildMission("t", "device.control", None, "SUCCEEDED", {"outcome": outcome}, None, None)
    return ChildMission("t", "device.control", None, "FAILED", None, {"code": outcome, "message": "…"}, None)


def look(value: dict[str, Any], age_ms: int = 20, code: str | None = None) -> ChildMission:
    error = None if code is None else {"code": code, "message": "…"}
    status = "SUCCEEDED" if code is None else "FAILED"
    return ChildMission("t", "device.query", None, status, {"value": value}, error, None, {"age_ms": age_ms})


def said(text: str, language: str, *outcomes: str) -> str:
    meaning = heard(text, language)
    ends = [child(one) for one in outcomes] * (len(meaning.wishes) // len(outcomes))
    return answers.answer(meaning, ends, language)


def seen(text: str, language: str, *looks: ChildMission) -> str:
    return answers.answer(heard(text, language), looks, language)


def test_at_once_it_is_said_what_is_under_way_and_not_that_it_is_done() -> None:
    assert answers.ack(heard("turn on the kitchen light", "en"), "en") == "OK, turning on the kitchen light."
    assert (
        answers.ack(heard("打开客厅空调，调到26度", "zh"), "zh") == "好的，正在打开客厅空调，然后把客厅空调调到26度。"
    )
    assert answers.ack(heard("卧室多少度", "zh"), "zh") == "我看一下。"
    assert answers.ack(heard("I'm home", "en"), "en") == "OK, running “home”."
    assert answers.ack(heard("cancel that", "en"), "en") == "OK, I will stop that."


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_end_is_another_sentence(language: str) -> None:
    text = {"en": "turn on the kitchen light", "zh": "打开厨房灯"}[language]
    sentences = [said(text, language, outcome) for outcome in OUTCOMES]
    assert len(set(sentences)) >= len(OUTCOMES) - 1  # expired and deadline are one thing to who asked
    assert sum("on." in one for one in sentences) <= 3


@pytest.mark.parametrize(
    ("outcome", "english", "chinese"),
    [
        ("confirmed", "The kitchen light is on.", "厨房灯现在开着。"),
        ("already_done", "The kitchen light was on already.", "厨房灯本来就开着。"),
        (
            "contradicted",
            "The kitchen light is not on: somebody has changed it by hand since.",
            "没能打开厨房灯：之后有人手动改过。",
        ),
        (
            "unconfirmed",
            "I have told the kitchen light, but cannot confirm that it is on.",
            "已经告诉厨房灯了，但没法确认现在是否开着。",
        ),
        ("device_unreachable", "I cannot reach the kitchen light.", "联系不上厨房灯。"),
        ("device_refused", "The kitchen light refused.", "厨房灯拒绝了。"),
    ],
)
def test_what_became_of_it_is_said_as_it_was_seen(outcome: str, english: str, chinese: str) -> None:
    assert said("turn on the kitchen light", "en", outcome) == english
    assert said("打开厨房灯", "zh", outcome) == chinese


def test_the_same_of_several_is_one_sentence_and_another_is_another() -> None:
    both = "turn off the kitchen light and the hall light"
    assert said(both, "en", "confirmed") == "The kitchen light and the hall light are off."
    assert (
        said(both, "en", "confirmed", "device_unreachable")
        == "The kitchen light is off. I cannot reach the hall light."
    )
    assert said("关掉所有的灯", "zh", "confirmed") == "5个灯现在都关着。"
    assert said("close the kitchen blinds", "en", "confirmed") == "The kitchen blinds are closed."


def test_a_device_told_twice_is_told_of_once() -> None:
    text = "turn on the bedroom AC and set it to 24 degrees"
    assert said(text, "en", "confirmed") == "The bedroom AC is set to 24 degrees."
    assert said(text, "en", "device_unreachable") == "I cannot reach the bedroom AC."
    assert said(text, "en", "confirmed", "unconfirmed").startswith("The bedroom AC is on. I have told")


def test_what_never_began_is_said() -> None:
    meaning = heard("turn on the bedroom AC and set it to 24 degrees", "en")
    told = answers.answer(meaning, [child("device_refused"), None], "en")
    assert told == "The bedroom AC refused. I did not set the bedroom AC to 24 degrees, because of what failed before."


def test_a_scene_says_what_did_not_work() -> None:
    meaning = heard("我回家了", "zh")
    rows = [
        {"entity": act["entity"], "action": act["action"], "outcome": "confirmed"}
        for act in meaning.wishes[0].payload["actions"]
    ]
    done = ChildMission("t", "scene.run", None, "SUCCEEDED", {"actions": rows}, None, None)
    assert answers.answer(meaning, [done], "zh") == "“回家”都做好了。"
    rows[1]["outcome"] = "device_unreachable"
    assert answers.answer(meaning, [done], "zh") == "“回家”做好了一部分。联系不上客厅灯。"
    failed = ChildMission("t", "scene.run", None, "FAILED", None, {"code": "child_failed", "message": "…"}, None)
    assert answers.answer(meaning, [failed], "zh") == "“回家”没有成功。"


def test_a_reading_is_told_and_an_old_one_with_its_age() -> None:
    air = {"temperature": 21.5, "humidity": 45.0}
    assert seen("what's the temperature in the kitchen", "en", look(air)) == "It is 21.5 degrees in the kitchen."
    assert seen("厨房的湿度是多少", "zh", look(air)) == "厨房的湿度是45%。"
    assert seen("厨房多少度", "zh", look(air, 10_000)) == "厨房现在21.5度。"
    assert seen("厨房多少度", "zh", look(air, 65_000)) == "厨房现在21.5度。这是1分钟前的读数。"
    assert seen("how warm is it in the kitchen", "en", look(air, 7_300_000)).endswith("That was 2 hours ago.")


def test_a_yes_or_no_question_has_a_yes_or_a_no() -> None:
    on, off = look({"power": "on"}), look({"power": "off"})
    assert seen("is the kitchen light on", "en", on) == "Yes, the kitchen light is on."
    assert seen("is the kitchen light on", "en", off) == "No, the kitchen light is off."
    assert seen("大门锁了吗", "zh", look({"lock": "unlocked"})) == "没有，大门没锁。"
    assert seen("are the kitchen blinds closed", "en", look({"position": 30})) == "No, the kitchen blinds are open."
    assert seen("which lights are on", "en", on, off, off, off, on).startswith(
        "Only the living room light and the hall"
    )
    assert seen("灯都关了吗", "zh", *[off] * 5) == "是的，5个灯都关着。"
    assert seen("are all the lights off", "en", *[on] * 5) == "No, all 5 lights are on."
    assert seen("有灯开着吗", "zh", *[off] * 5) == "没有，5个灯都关着。"
    assert seen("卧室和书房的灯开着吗", "zh", on, on) == "是的，卧室灯和书房灯都开着。"
    assert seen("大门锁了吗", "zh", look({"lock": "locked"})) == "是的，大门锁着。"
    assert seen("大门开着吗", "zh", look({"contact": "closed"})) == "没有，大门关着。"
    assert seen("is the front door open", "en", look({"contact": "open"})) == "Yes, the front door is open."
    unlike = seen("is the music playing", "en", look({"playback": "idle"}))
    assert unlike.startswith("No, ")


def test_what_cannot_be_reached_is_not_made_up_but_what_is_remembered_has_its_age() -> None:
    silent = look({"temperature": 20.0}, 300_000, "device_unreachable")
    told = seen("what's the temperature in the kitchen", "en", silent)
    assert told == "I cannot reach the kitchen air sensor. 5 minutes ago it was at 20 degrees."
    never = ChildMission(
        "t", "device.query", None, "FAILED", None, {"code": "device_unreachable", "message": "…"}, None
    )
    assert seen("厨房多少度", "zh", never) == "联系不上厨房温度计。"


def test_an_air_conditioner_without_a_thermometer_tells_what_it_is_set_to() -> None:
    set_to = look({"power": "on", "temperature": 24, "mode": "cool"})
    assert seen("what's the temperature in the study", "en", set_to) == "The study AC is set to 24 degrees."


def test_questions_are_asked_in_the_speakers_language() -> None:
    rooms = interpreter().interpret("打开灯", "zh")
    assert answers.question(rooms, "zh") == "哪个房间？客厅、卧室、厨房、书房还是门厅？"
    assert (
        answers.question(heard("unlock the front door", "en"), "en")
        == "Do you really want me to unlock the front door?"
    )
    garage = interpreter().interpret("turn on the garage light", "en")
    assert answers.question(garage, "en") == "I know nothing here by the name of garage light."
    near = interpreter().interpret("turn on the kotchen light", "en")
    assert answers.question(near, "en").endswith("Did you mean the kitchen light?")
    assert answers.question(interpreter().interpret("foo bar", "en"), "en") == "Sorry, I did not understand that."
    assert answers.ack(rooms, "zh") == answers.question(rooms, "zh")


@pytest.mark.parametrize(
    ("text", "language", "told"),
    [
        ("set the bedroom AC to 90 degrees", "en", "I can only set the temperature in degrees from 5 to 35."),
        ("卧室空调调到九十度", "zh", "温度（度）只能设在5到35之间。"),
        ("set the kitchen light to 150 percent", "en", "I can only set the brightness in percent from 1 to 100."),
        ("turn off the oven in ten minutes", "en", ENGLISH.phrases["later"]),
        ("if it rains close the kitchen blinds", "en", ENGLISH.phrases["later"]),
        ("turn on the hall light at 7", "en", ENGLISH.phrases["later"]),
        ("十分钟后打开厨房灯", "zh", CHINESE.phrases["later"]),
        ("明天打开厨房灯", "zh", CHINESE.phrases["later"]),
        ("turn up the AC in the study", "en", ENGLISH.phrases["relative"]),
        ("turn the heating up a bit in the study", "en", ENGLISH.phrases["relative"]),
        ("客厅空调开大一点", "zh", CHINESE.phrases["relative"]),
        ("what time is it", "en", ENGLISH.phrases["not_understood"]),
        ("don't turn on the kitchen light", "en", ENGLISH.phrases["not_understood"]),
    ],
)
def test_where_it_is_known_why_nothing_is_done_that_is_said(text: str, language: str, told: str) -> None:
    meaning = interpreter().interpret(text, language)
    assert meaning.wishes == []
    assert answers.question(meaning, language) == told


def test_every_action_and_end_has_words_in_every_language() -> None:
    for words in (ENGLISH, CHINESE):
        assert words.actions.keys() == ACTIONS.keys()
        assert words.changes.keys() == CHANGES.keys()
        assert words.outcomes.keys() >= set(OUTCOMES)
        assert words.looks.keys() == ENGLISH.looks.keys()
        assert words.states.keys() == ENGLISH.states.keys()
        assert words.phrases.keys() == ENGLISH.phrases.keys()
        assert words.values.keys() == {name for name, action in ACTIONS.items() if action.between}
    assert {*FAILED} <= set(ErrorCode)
    assert {*CANCELLED} <= set(Reason)


def test_a_language_without_words_is_answered_in_english() -> None:
    assert answers.ack(heard("turn on the kitchen light", "en"), "de") == "OK, turning on the kitchen light."


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("unlock the front door and is the kitchen light on", "to unlock the front door?"),
        ("unlock the front door and run the night scene", "to unlock the front door, turn off 8 devices"),
        ("unlock the front door, what's the temperature in the kitchen", "to unlock the front door?"),
    ],
)
def test_what_is_dangerous_is_named_by_the_question_whatever_else_is_wanted(text: str, named: str) -> None:
    meaning = interpreter().interpret(text, "en")
    assert (meaning.confirm, named in answers.question(meaning, "en")) == (True, True), answers.question(meaning, "en")
