"""How the command line tells an end: with the line that raised, and how long it took, where it lay dead in between."""

import time
from typing import Any, cast

import pytest

from dualloop.cli import dead_letters, output
from dualloop.cli.asking import ask
from dualloop.cli.send import Replayed, end
from dualloop.client_faults import ClientProblem
from dualloop.errors import Refusal

AT = "hold.py, line 3, in give"
ERROR = {"code": "retries_exhausted", "state": "GIVING", "message": "KeyError: 'to'", "at": AT}
TIMES = {"created_at": "2026-11-29T18:00:00.000Z", "finished_at": "2026-11-29T18:00:01.000Z"}
RESULT: dict[str, Any] = {"type": "shop.hold", "task_id": "04A", "status": "FAILED", "error": ERROR, **TIMES}
RESULT |= {"result": None, "freshness": None, "progress": None}


def test_the_last_line_of_a_watch_says_it() -> None:
    with pytest.raises(Refusal) as caught:
        end(RESULT, json=False)
    assert str(caught.value) == f"shop.hold FAILED with retries_exhausted in GIVING: {AT}: KeyError: 'to'."


@pytest.mark.parametrize("kept", [True, False])
def test_a_dead_letter_says_it_with_its_result_and_without(monkeypatch: pytest.MonkeyPatch, *, kept: bool) -> None:
    letter = {"code": ERROR["code"], "message": ERROR["message"], "failed_in": "GIVING", "undone": [], "outbox": 0}
    history = [{"data": None}, {"data": {"code": ERROR["code"], "error": ERROR["message"], "at": AT}}]
    mission = {"dead_letter": letter | {"kept_until": None}, "result": RESULT if kept else None, "history": history}
    facts: dict[str, str] = {}
    monkeypatch.setattr(dead_letters, "ask", lambda _work: {**mission, "envelope_base64": None})
    monkeypatch.setattr(dead_letters, "everything", lambda _mission, more: facts.update(more))
    cast("Any", dead_letters.show)("04A")
    assert facts["Error"] == f"retries_exhausted: {AT}: KeyError: 'to'"


def test_what_lay_dead_took_the_time_since_its_replay(capsys: pytest.CaptureFixture[str]) -> None:
    replayed = Replayed()
    event = {"op": "event", "at": "2026-11-29T18:00:00.000Z", "status": "RUNNING", "state": "GIVING"}
    for data in (None, {"event": "retry"}):
        replayed.take({**event, "data": data})
    assert replayed.at is None
    replayed.take({**event, "data": {"event": "replayed"}, "at": "2026-11-29T18:00:00.580Z"})
    replayed.take({**event, "op": "progress", "progress": {"done": 1}})
    done = RESULT | {"status": "SUCCEEDED", "error": None}
    end(done, json=False, replayed=replayed.at)
    assert capsys.readouterr().out.startswith("SUCCEEDED after 420 ms, counted from its replay\n")
    end(done, json=False)
    assert capsys.readouterr().out.startswith("SUCCEEDED after 1.0 s\n")


WORDS = RESULT | {"type": "assistant.command", "status": "SUCCEEDED", "error": None}
SORRY: dict[str, Any] = {"text": "Sorry, I did not understand that.", "problem": "not_understood", "candidates": []}


@pytest.mark.parametrize("json", [False, True])
def test_words_that_came_to_nothing_are_no_success_for_a_script(
    capsys: pytest.CaptureFixture[str], *, json: bool
) -> None:
    with pytest.raises(Refusal) as caught:
        end(WORDS | {"result": SORRY}, json=json)
    assert str(caught.value) == "Nothing was done: not_understood."
    said = capsys.readouterr().out
    assert str(SORRY["text"]) in said, "what was answered is there all the same"
    assert ('"status": "SUCCEEDED"' in said) is json


@pytest.mark.parametrize(
    "result",
    [
        WORDS | {"result": {"text": "The hall light is on.", "devices": []}},
        WORDS | {"result": {"text": "All right.", "answers": "04B"}},
        WORDS | {"type": "shop.hold", "result": {"problem": "of an author's own, who calls it a success"}},
        WORDS | {"type": "shop.hold", "result": None},
    ],
    ids=["done", "answer", "author", "nothing"],
)
def test_all_else_that_succeeded_is_one(result: dict[str, Any]) -> None:
    end(result, json=False)


def test_where_redis_is_away_it_says_who_looks_for_the_cause() -> None:
    async def away(_client: Any) -> None:
        raise ClientProblem({"code": "redis_unavailable", "status": 503, "detail": "Redis is not connected"})

    with pytest.raises(Refusal, match=r"^Redis is not connected\. dualloop doctor looks for the cause\.$"):
        ask(away)


@pytest.mark.parametrize(
    ("here", "told"),
    [("UTC0", ""), ("CST-8", "UTC+08:00"), ("IST-5:30", "UTC+05:30"), ("<-03>3", "UTC-03:00")],  # no zone file needed
)
def test_a_reader_is_told_whose_time_it_is_where_that_is_not_that_of_the_sentence(
    monkeypatch: pytest.MonkeyPatch, here: str, told: str
) -> None:
    try:
        with monkeypatch.context() as there:
            there.setenv("TZ", here)
            time.tzset()
            assert output.zone() == told
    finally:
        time.tzset()
