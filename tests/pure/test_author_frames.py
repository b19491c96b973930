"""An error that nobody foresaw is told with the line of the author's file that it came from."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from backend_loop import step_frames
from backend_loop.author_frames import own_file, raised_in
from backend_loop.mission import Mission, outcome_of, state, undo
from backend_loop.outcomes import Fail, Go, Outcome, Retry
from backend_loop.retry import Retry as Policy
from backend_loop.testing import Bench
from frontend_loop import standing
from tests.pure.exporting import exported

TWICE = Policy(tries=2, base_s=0.01)


class Careless(Mission):
    """Reads what is not there, where its payload says so."""

    type = "test.careless"
    permanent = (LookupError,)
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "TAKING": {"done": "GIVING"},
        "GIVING": {"done": "SUCCEEDED"},
    }

    class Payload(BaseModel):
        """What goes wrong."""

        how: str = "bug"

    @state("TAKING")
    async def take(self, _tools: Any) -> Outcome:
        return Go("done")

    @undo("TAKING", retry=TWICE)
    async def put_back(self, tools: Any) -> None:
        if tools.payload.how == "undo":
            json.loads("no JSON")

    @state("GIVING", retry=TWICE)
    async def give(self, tools: Any) -> Outcome:
        if tools.payload.how == "foreseen":
            raise LookupError("nobody is there")
        if tools.payload.how == "undo":
            return Fail("no")
        return _give("no JSON")


def _give(text: str) -> Outcome:
    json.loads(text)
    return Go("done")


def line_of(code: Any) -> int:
    """Of its second one, which raises."""
    return int(code.__code__.co_firstlineno) + 1


PLACE = f"test_author_frames.py, line {line_of(_give)}, in _give"


def bench() -> Bench:
    return Bench(Careless)


def test_each_failed_try_and_the_end_say_where() -> None:
    mission = bench().run({})
    retry, undoing, end = [event["data"] for event in mission.log[-3:]]
    assert (retry["event"], retry["at"]) == ("retry", PLACE)
    assert (undoing["event"], undoing["at"], end["at"]) == ("undo", PLACE, PLACE)
    assert mission.document is not None
    assert mission.document["error"]["at"] == PLACE
    assert mission.document["error"]["message"].startswith("JSONDecodeError: ")


def test_so_does_an_undo_that_fails() -> None:
    mission = bench().run({"how": "undo"})
    assert mission.document is not None
    assert mission.document["error"]["code"] == "compensation_failed"
    assert mission.document["error"]["at"].endswith(", in put_back")
    assert [event["data"]["at"] for event in mission.log[-2:]] == [mission.document["error"]["at"]] * 2


def test_of_what_the_type_foresees_the_sentence_is_enough() -> None:
    mission = bench().run({"how": "foreseen"})
    assert mission.document is not None
    assert "at" not in mission.document["error"]
    assert all("at" not in (event["data"] or {}) for event in mission.log)


def test_lines_that_have_moved_are_no_difference_in_a_replay() -> None:
    mission = bench().run({})
    file = json.loads(
        json.dumps(exported(mission), default=str).replace(PLACE, "test_author_frames.py, line 7, in _give")
    )
    replayed = bench().replay(file)
    assert replayed.same, replayed.difference


def test_it_comes_through_the_pipe_of_a_child_process() -> None:
    try:
        _give("")
    except ValueError as error:
        outcome = outcome_of(error, Careless.definition)
    assert isinstance(outcome, Retry)
    assert outcome.at == PLACE
    told = step_frames.told(outcome)
    assert told is not None
    heard = step_frames.heard(told)
    assert isinstance(heard, Retry)
    assert (heard, heard.at) == (outcome, PLACE)


def test_two_outcomes_are_the_same_wherever_they_came_from() -> None:
    assert Retry("no", at="hold.py, line 3, in give") == Retry("no")
    assert Fail("no", at="hold.py, line 3, in give") == Fail("no")


def test_nothing_is_said_of_files_of_others() -> None:
    assert own_file(json.__file__) is None
    assert own_file(pytest.__file__) is None
    assert own_file(standing.__file__) is None
    assert own_file("<string>") is None
    with pytest.raises(ZeroDivisionError) as caught:
        eval(compile("1/0", "<string>", "eval"), {})  # noqa: S307  a place that is no file
    assert (raised_in(caught.value) or "").startswith("test_author_frames.py, line ")
    assert raised_in(ValueError("never raised")) is None


def test_the_sentence_of_a_mission_names_the_line() -> None:
    error = {
        "code": "retries_exhausted",
        "state": "GIVING",
        "message": "KeyError: 'to'",
        "at": "hold.py, line 3, in give",
    }
    assert standing._failure({"error": error}, {}) == (
        "retries_exhausted in GIVING: hold.py, line 3, in give: KeyError: 'to'"
    )
    tried = {"data": {"event": "retry", "error": "KeyError: 'to'", "at": "hold.py, line 3, in give"}}
    assert standing._last_trouble([tried]) == "hold.py, line 3, in give: KeyError: 'to'"
