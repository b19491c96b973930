"""What the sentence of a mission is made of: read from a record, a document and a log, damaged ones too."""

from typing import Any

import pytest

from frontend_loop.standing import Around, Rules, standing
from frontend_loop.why import Standing, why

NOW = 1_795_975_445_123  # 2026-11-29T18:04:05.123Z
AT = "2026-11-29T18:04:00.000Z"


def read(
    record: dict[str, str] | None = None,
    course: dict[str, Any] | None = None,
    history: tuple[dict[str, Any] | None, ...] = (),
    result: dict[str, Any] | None = None,
    **around: Any,
) -> Standing:
    """Of a mission that waits, unless the record says otherwise."""
    fields = {
        "place": "waiting",
        "status": "WAITING",
        "state": "PAY",
        "type": "t",
        "version": "1",
        "lane": "bulk:default:a",
    }
    near: dict[str, Any] = {"now": NOW, "workers": 1, "lease_end": None, "holder": None, "holds": False, "waiters": 0}
    near |= {
        "ahead": None,
        "newer": 0,
        "known_at": None,
        "dead_since": None,
        "kept_until": None,
        "outbox": 0,
        "entries": (),
    }
    events = [{"seq": n, "at": AT, "status": "WAITING", "state": "PAY", "data": data} for n, data in enumerate(history)]
    rules = Rules(tries=5, undo_tries=1000, future=False, pause_limit=1000, park_limit=2000, lease=6000)
    return standing(
        "04A", fields | (record or {}), Around(**(near | around)), course or {}, events, result or {}, rules
    )


def test_the_last_pause_says_who_it_was() -> None:
    pause = {"event": "paused", "by": "anna"}
    assert read(history=(pause, {"event": "resumed", "by": "bob"}, {"event": "paused", "by": "eve"})).paused_by == "eve"
    assert read(history=(pause, {"event": "paused", "by": None})).paused_by is None
    assert read(history=(None, {})).paused_by is None


def test_a_cancel_says_who_it_was_and_why() -> None:
    said = {"reason": "requested", "by": "ada", "note": "no more."}
    ended = {"place": "ended", "status": "CANCELLED"}
    result = {"reason": "requested", "finished_at": AT}
    undone: dict[str, Any] = {"reason": "requested"}
    assert why(read(ended, history=(said,), result=result)).endswith(" UTC: ada asked for it (no more).")
    assert why(read(ended, history=(said, undone), result=result)).endswith(" UTC: ada asked for it (no more).")
    assert why(read(ended, history=(said | {"by": "parent", "note": None},), result=result)).endswith(
        " UTC: its parent asked for it."
    )
    earlier = (said, {"event": "replayed", "by": "bob"}, undone)
    assert why(read(ended, history=earlier, result=result)).endswith(" UTC: somebody asked for it.")
    told = read(ended, history=(said,), result=result | {"reason": "superseded"})
    assert why(told).endswith(" UTC: a newer command replaced it.")


def test_a_pause_says_why() -> None:
    paused = {"place": "paused", "status": "PAUSED"}
    told = read(paused, history=({"event": "paused", "by": "anna", "note": "a look\nfirst"},))
    assert ": anna said pause (a look first); let it go on with: " in why(told)


def test_a_permit_is_that_of_the_record_and_a_breaker_that_of_the_log() -> None:
    told = {"event": "no_permit", "why": "bank is left alone: open"}
    assert read(history=(told, None)).blocked == "bank is left alone: open"
    assert (
        read({"queued": "dep:hub:default:light.a 1795"}, history=(told,)).blocked
        == "no permit of dep:hub:default:light.a is free"
    )
    assert read({"queued": ""}).blocked is None


def test_what_is_undone_and_what_is_left_comes_from_the_document() -> None:
    ending = {
        "status": "FAILED",
        "state": "SHIP",
        "data": {},
        "error": {"code": "permanent", "state": "SHIP", "message": "no"},
    }
    course = {"done": [["BOOK", 1, False], ["PAY", 2, True]], "undone": [["SHIP", 1, False]], "ending": ending}
    found = read({"status": "COMPENSATING"}, course)
    assert (found.undone, found.left) == (("SHIP",), ("PAY", "BOOK"))
    assert found.ending == "FAILED with permanent in SHIP: no"
    cancelled = read({"status": "COMPENSATING"}, course | {"ending": {"status": "CANCELLED", "reason": "superseded"}})
    assert cancelled.ending == "CANCELLED (superseded)"


def test_the_tries_of_an_undo_are_its_own() -> None:
    undoing = {"attempt": 6, "ending": {"status": "CANCELLED", "reason": "requested"}}
    for status in ("COMPENSATING", "PAUSED"):
        assert read({"status": status}, undoing).tries == 1000
    assert read({"status": "RUNNING"}, {"attempt": 2}).tries == 5
    told = read({"status": "COMPENSATING", "waiting_for": "retry"}, undoing)
    assert " for its retry (attempt 6 of 1000)" in why(told)


def test_who_gave_up_waiting_was_taken_by_a_worker() -> None:
    asked = {"progress": '{"done":0,"total":null,"message":"In which room?"}'}
    ended = {"place": "ended", "status": "CANCELLED"} | asked
    result = {"reason": "expired", "finished_at": AT}
    told = why(read(ended | {"started_at": "1"}, result=result))
    assert told.endswith(" UTC: what it waited for did not come in time; it said last: In which room?")
    assert " UTC: its deadline came before a worker took it; " in why(read(ended, result=result))
    assert "; it said 4.0 s ago: In which room?" in why(read(asked | {"progress_at": str(NOW - 4000)}))


def test_after_the_end_the_result_says_what_was_not_undone() -> None:
    error = {"code": "compensation_failed", "state": "PAY", "message": "no", "not_undone": ["PAY", "BOOK"]}
    error |= {"reason": "requested"}
    found = read(
        {"place": "ended", "status": "FAILED", "state": "FAILED"},
        {"undone": [["SHIP", 1, False]], "done": [["BOOK", 1, False]], "ending": {"status": "FAILED"}},
        result={"error": error, "finished_at": AT},
        dead_since=NOW,
        kept_until=NOW + 1000,
    )
    assert (found.undone, found.left, found.ending) == (("SHIP",), ("PAY", "BOOK"), "CANCELLED (requested)")
    assert found.kept_until == NOW + 1000
    assert read({"place": "ended"}, result={"result": {"undone": ["PAY"]}}).undone == ("PAY",)
    assert read({"place": "ended"}, kept_until=NOW).kept_until is None


@pytest.mark.parametrize(("ago", "known"), [(0, True), (12_000, True), (12_001, False), (None, False)])
def test_a_parked_type_is_known_while_a_worker_that_knows_it_has_come_by_lately(
    ago: int | None, *, known: bool
) -> None:
    assert read({"place": "parked"}, known_at=None if ago is None else NOW - ago).known is known


def test_a_newer_command_matters_until_the_mission_acts() -> None:
    record = {"latest": "default:light.a:power", "intent": "7", "target": "default:light.a"}
    assert (read(record, newer=2).aspect, read(record, newer=2).newer) == ("power", 2)
    assert read(record | {"acted": "1"}, newer=2).newer == 0
    assert read(record | {"place": "ended"}, newer=2).newer == 0


def test_a_lent_priority_has_its_own_one_beside_it() -> None:
    found = read({"lane": "urgent:default:a", "base": "bulk"})
    assert (found.lane, found.base) == ("urgent", "bulk")


@pytest.mark.parametrize("odd", [None, 7, "x", [], [7], [[]], {}, {"status": None}])
def test_a_damaged_document_gives_a_sentence_all_the_same(odd: Any) -> None:
    for place in ("waiting", "ended", "paused", "leased"):
        course = {"done": odd, "undone": odd, "ending": odd}
        found = read(
            {"place": place}, course, (odd if isinstance(odd, dict) else None,), {"error": None, "result": odd}
        )
        assert why(found).endswith(".")


def test_how_far_it_is_and_when_it_said_so() -> None:
    said = {"progress": '{"done":3,"total":4,"message":"row 3.\\nof a file"}', "progress_at": str(NOW - 250_000)}
    assert read(said).progress == "3 of 4 (75 %) done, row 3. of a file, as it said 4 min 10 s ago"
    assert read({"progress": '{"done":3}'}).progress == "3 done"
    assert read({"progress": "{", "progress_at": "1"}).progress is None
    assert "; 3 of 4 (75 %) done, row 3. of a file, as it said 4 min 10 s ago." in why(read(said))
    for status in ("FAILED", "CANCELLED"):
        assert "; it had come to 3 of 4 (75 %), row 3" in why(read(said | {"place": "ended", "status": status}))
    assert "had come" not in why(read(said | {"place": "ended", "status": "SUCCEEDED"}))


def test_the_pool_that_nobody_serves_is_that_of_its_lane() -> None:
    assert read({"lane": "urgent:speech:a"}, served=False).unserved == "speech"
    assert read({"lane": "urgent:speech:a"}, served=True).unserved is None
    assert read({"lane": "?"}, served=False).unserved == ""


def test_one_that_was_given_up_amid_its_undos_still_has_the_end_that_it_was_to_come_to() -> None:
    """A replay goes on with them; of one whose undo has failed nothing is left to go on with."""
    ended = {"place": "ended", "status": "FAILED", "state": "FAILED"}
    assert read(ended, {"undone": [["SHIP", 1, False]], "ending": {"status": "FAILED"}}).amid is True
    assert read(ended, {"undone": [["SHIP", 1, False]]}).amid is False
    assert read({"status": "COMPENSATING"}, {"ending": {"status": "FAILED"}}).amid is False


def test_of_a_worker_that_was_lost_on_the_way_forward_no_other_end_is_told() -> None:
    error = {"code": "worker_lost", "state": "PAY", "message": "it killed three", "not_undone": ["PAY", "BOOK"]}
    found = read({"place": "ended", "status": "FAILED", "state": "FAILED"}, result={"error": error})
    assert (found.left, found.ending) == (("PAY", "BOOK"), None)
