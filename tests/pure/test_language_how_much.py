"""More or less of what may be either: it is asked how much, and the next sentence says it."""

import pytest

from backend_loop.language import answers
from backend_loop.language.wording import CHINESE, ENGLISH
from backend_loop.missions.assistant_command import AssistantCommand
from backend_loop.missions.assistant_talk import bears
from backend_loop.missions.device_control import DeviceControl
from backend_loop.missions.device_query import DeviceQuery
from backend_loop.missions.scene_run import SceneRun
from backend_loop.testing import Bench
from tests.pure.meant import demonstration, interpreter, line

UP = {"en": "turn the bedroom AC up", "zh": "卧室空调开大一点"}


def _bench() -> Bench:
    home = {"climate.bedroom": {"power": "on", "mode": "cool", "temperature": 22}}
    return Bench(AssistantCommand, DeviceControl, DeviceQuery, SceneRun, home=home, inventory=demonstration())


@pytest.mark.parametrize(
    ("language", "answer", "means"),
    [
        ("en", "26 degrees", "set_temperature climate.bedroom 26"),
        ("en", "to 26, please", "set_temperature climate.bedroom 26"),
        ("en", "twenty six", "set_temperature climate.bedroom 26"),
        ("en", "2 degrees", "change_temperature climate.bedroom 2"),
        ("en", "by 6 degrees", "change_temperature climate.bedroom 6"),
        ("en", "a bit", "change_temperature climate.bedroom 1"),
        ("en", "turn the bedroom AC to 24 degrees", "set_temperature climate.bedroom 24"),
        ("en", "20%", "!how_much"),
        ("en", "turn off the hall light", "!how_much"),
        ("zh", "26度", "set_temperature climate.bedroom 26"),
        ("zh", "调到二十六度", "set_temperature climate.bedroom 26"),
        ("zh", "两度", "change_temperature climate.bedroom 2"),
        ("zh", "一点", "change_temperature climate.bedroom 1"),
    ],
)
def test_the_answer_to_how_much_is_a_value_or_by_how_much(language: str, answer: str, means: str) -> None:
    asked = interpreter().interpret(UP[language], language)
    assert (line(asked), asked.candidates) == ("!how_much", ["climate.bedroom"])
    assert answers.question(asked, language) == {"en": ENGLISH, "zh": CHINESE}[language].phrases["relative"]
    assert line(interpreter().fill(asked, answer)) == means


def test_less_is_by_so_much_less() -> None:
    asked = interpreter().interpret("turn the bedroom AC down", "en")
    assert line(interpreter().fill(asked, "2 degrees")) == "change_temperature climate.bedroom -2"


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", ("turn the AC up", "the bedroom", "26 degrees")), ("zh", ("空调开大一点", "卧室", "26度"))],
)
def test_where_and_how_much_are_asked_one_after_the_other(language: str, said: tuple[str, str, str]) -> None:
    first, where, much = said
    mission = _bench().run({"text": first, "locale": language})
    assert mission.log[-2]["data"]["question"] == "which_area"
    mission.event("ANSWERED", {"text": where}).run()
    assert (mission.state, mission.log[-2]["data"]["question"]) == ("ASKING", "how_much")
    mission.event("ANSWERED", {"text": much}).run()
    told = [call.body for call in mission.calls if call.path.endswith("/act")]
    assert (mission.status, [(one["action"], one["value"]) for one in told]) == (
        "SUCCEEDED",
        [("set_temperature", 26)],
    )


def test_an_utterance_is_the_answer_and_not_a_command_for_where_it_was_said() -> None:
    asked = interpreter().interpret("turn the AC up", "en")
    room = interpreter().fill(asked, "the bedroom")
    assert bears("which_area", interpreter().interpret("the bedroom", "en"), room) == "answers"
    own = interpreter().interpret("26 degrees", "en", area="study")
    assert line(own) == "set_temperature climate.study 26"
    assert bears("how_much", own, interpreter().fill(room, "26 degrees")) == "answers"
    other = interpreter().interpret("turn off the hall light", "en")
    assert bears("how_much", other, interpreter().fill(room, "turn off the hall light")) == "withdraws"
    again = interpreter().interpret("turn the study AC up", "en")
    assert bears("how_much", again, interpreter().fill(room, "turn the study AC up")) == "withdraws"
    assert bears("which_area", again, interpreter().fill(asked, "turn the study AC up")) == "withdraws"
    none = interpreter().interpret("banana", "en")
    assert bears("how_much", none, interpreter().fill(room, "banana")) == "leaves"


@pytest.mark.parametrize(
    ("text", "language"),
    [("调高两度", "zh"), ("再高两度", "zh"), ("2 degrees higher", "en"), ("turn it up 2 degrees", "en")],
)
def test_degrees_more_of_nothing_named_are_of_an_air_conditioner(text: str, language: str) -> None:
    anywhere = interpreter().interpret(text, language)
    assert (line(anywhere), anywhere.candidates) == ("!which_area", ["living_room", "bedroom", "study"])
    here = interpreter().interpret(text, language, area="study")
    assert line(here) == "change_temperature climate.study 2"
