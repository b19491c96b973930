"""Where an unforeseen error was raised is told wherever the command line tells the error."""

from typing import Any, cast

import pytest

from dualloop.cli import dead_letters
from dualloop.cli.send import end
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
