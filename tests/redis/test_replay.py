"""replay and discard (P22): a dead letter runs again as a new run of the same mission, or goes."""

import pytest

from tests.redis.audit import faults, read
from tests.redis.items import note
from tests.redis.scripts_client import HOUR_MS, New, Taken, Verbs, event


def dead(verbs: Verbs, *, rows: tuple[str, ...] = (), **fields: str) -> Taken:
    """A dead letter, that failed in PAYING."""
    verbs.accept(New("m", **fields))  # type: ignore[arg-type]  # text fields only
    m = verbs.take("w1")["m"]
    verbs.event("m", "e1")
    bury = m.write("bury", consumed=1, status="FAILED", state="FAILED", document="{}", waiting_for="PAYING", rows=rows)
    assert verbs.commit("w1", bury)[0].word == "OK"
    return m


def test_a_new_run_begins_where_it_failed(verbs: Verbs) -> None:
    old = dead(verbs, watcher="front")
    before = verbs.now()
    with verbs.hearing("feed:front") as hear:
        assert verbs.replay("m", deadline_ms=5000, note=note("replayed", by="op", run=2)) == ("OK", 2)
        assert hear()

    record = verbs.record("m")
    fields = {"place": "lane", "status": "WAITING", "state": "PAYING", "run": "2", "document": "{}", "order": "2"}
    assert fields.items() <= record.items()
    assert "failed_in" not in record
    assert before + 5000 <= int(record["deadline"]) <= verbs.now() + 5000
    assert verbs.score("deadlines", "m") == int(record["deadline"])
    last = verbs.log("m")[-1]
    assert (last["data"], last["status"], last["state"]) == (
        {"event": "replayed", "by": "op", "run": 2},
        "WAITING",
        "PAYING",
    )
    assert verbs.result("m") is None
    assert verbs.score("retire", "m") is None
    assert verbs.score("dead_letters", "m") is None
    assert faults(read(verbs.redis)) == []
    m = verbs.take("w1")["m"]
    assert (m.run, m.key_run, m.rev, m.deaths, m.started_at) == (2, 1, 1, 0, old.started_at)
    assert m.fence > old.fence
    assert verbs.commit("w1", m.write("end", events=(event("SUCCEEDED", "DONE"),)))[0].word == "OK"
    assert [one["seq"] for one in verbs.log("m")] == [1, 2, 3]
    assert faults(read(verbs.redis)) == []


def test_from_the_start_it_begins_in_the_first_state(verbs: Verbs) -> None:
    """The document stays: its worker reads from it which visits have been: no key stands for two effects."""
    dead(verbs)
    verbs.replay("m", "start", state="FIRST")

    m = verbs.take("w1")["m"]
    assert (m.state, m.document, m.run, m.key_run) == ("FIRST", b"{}", 2, 1)


def test_its_document_says_that_it_begins_anew_once(verbs: Verbs) -> None:
    """In the first state nothing else tells a replay from the start from one that goes on where it failed."""
    dead(verbs)
    document = b'{"context":{"n":1}}'
    verbs.redis.hset(verbs.key("mission:m"), "document", document)
    verbs.replay("m", "failed_state")
    m = verbs.take("w1")["m"]
    assert m.document == document
    for rev in (m.rev, m.rev + 1):
        verbs.commit("w1", m.write("bury", rev=rev, waiting_for="FIRST"))
        verbs.replay("m", "start", state="FIRST")
        m = verbs.take("w1")["m"]
        assert m.document == b'{"anew":true,"context":{"n":1}}'


@pytest.mark.parametrize(("key", "envelope"), [("new", ""), ("same", '{"corrected":1}')])
def test_its_effects_have_new_keys_if_asked_or_if_the_payload_is_another(verbs: Verbs, key: str, envelope: str) -> None:
    dead(verbs, envelope='{"v":1}')
    verbs.replay("m", key=key, envelope=envelope)
    m = verbs.take("w1")["m"]
    assert (m.run, m.key_run, m.envelope) == (2, 2, (envelope or '{"v":1}').encode())

    for run in (3, 4):
        verbs.commit("w1", m.write("bury", waiting_for="PAYING"))
        verbs.replay("m")
        m = verbs.take("w1")["m"]
        assert (m.run, m.key_run) == (run, 2), "the same keys as the run before"


def test_one_that_never_committed_is_pending_again(verbs: Verbs) -> None:
    verbs.accept(New("m", type="new"))
    verbs.take("w1")
    verbs.redis.hset(verbs.key("mission:m"), "parked_at", 1)
    verbs.set_score("parked:new@1", "m", 1)
    verbs.sweep()
    assert verbs.replay("m", "failed_state") == ("OK", 2)

    record = verbs.record("m")
    assert (record["status"], record["state"], record.get("parked_at")) == ("PENDING", "START", None)
    assert faults(read(verbs.redis)) == []
    verbs.take("w1")
    assert verbs.sweep(park_limit_ms=60_000)[0] == 0, "the limit of parking counts anew"


def test_the_deaths_of_the_run_before_are_forgotten(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    for n in range(3):
        verbs.take(f"solo-{n}", 1)
        verbs.set_score("owners", f"solo-{n}", 1)
        for _ in range(2):
            verbs.claim("other", 0, renew_ms=0)
    assert verbs.place("m") == "ended"
    verbs.replay("m")

    again = verbs.take("solo-9", 1)["m"]
    assert (again.deaths, again.toll) == (0, 0)
    verbs.set_score("owners", "solo-9", 1)
    for _ in range(2):
        verbs.claim("other", 0, renew_ms=0)
    assert verbs.place("m") == "lane"


def test_entries_of_the_run_before_are_no_doubles(verbs: Verbs) -> None:
    dead(verbs)
    verbs.replay("m")

    assert verbs.event("m", "e1")[0] == "OK"
    verbs.set_score("deadlines", "m", 1)
    verbs.sweep()
    assert verbs.unread("m") == ["e1", '{"entry":"deadline"}']


def test_it_takes_its_target_or_waits_for_it(verbs: Verbs) -> None:
    dead(verbs, target="a:lamp")
    verbs.accept(New("holder", target="a:lamp"))
    verbs.replay("m")

    assert verbs.place("m") == "waiters"
    assert faults(read(verbs.redis)) == []


def test_one_that_was_raised_begins_with_its_own_priority(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp"))
    m = verbs.take("w1")["m"]
    verbs.accept(New("urgent", target="a:lamp", lane="urgent:default:a"))
    verbs.commit("w1", m.write("bury", waiting_for="START"))
    verbs.take("w1")
    verbs.replay("m")

    assert (verbs.record("m")["lane"], verbs.record("m").get("base")) == ("normal:default:a", None)
    assert faults(read(verbs.redis)) == []


def test_a_worker_is_woken(verbs: Verbs) -> None:
    dead(verbs)
    with verbs.hearing("wake:default") as hear:
        verbs.replay("m")

        assert hear()


def test_not_before_its_rows_are_carried_out(verbs: Verbs) -> None:
    dead(verbs, rows=("row",))
    before = read(verbs.redis)
    assert verbs.replay("m") == ("ROWS", 1)
    assert read(verbs.redis) == before

    verbs.redis.delete(verbs.key("outbox:m"), verbs.key("outboxes"))
    assert verbs.replay("m") == ("OK", 2)


def test_of_two_replays_one_wins(verbs: Verbs) -> None:
    dead(verbs)

    assert verbs.replay("m") == ("OK", 2)
    before = read(verbs.redis)
    assert verbs.replay("m") == ("RUNNING", 2)
    assert read(verbs.redis) == before


def test_what_is_no_dead_letter_does_not_run_again(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.cancel("m")
    before = read(verbs.redis)

    assert verbs.replay("m") == ("ENDED", 1)
    assert verbs.discard("m") == "ENDED"
    assert verbs.replay("never") == ("GONE", 0)
    assert verbs.discard("never") == "GONE"
    assert read(verbs.redis) == before


def test_a_late_copy_from_the_run_before_is_not_taken_for_one_of_this(verbs: Verbs) -> None:
    m = dead(verbs)
    verbs.replay("m")
    verbs.take("w1")

    assert verbs.commit("w1", m.write("end"))[0].word == "FENCED"
    assert verbs.place("m") == "leased"


def test_a_discarded_dead_letter_goes_at_the_next_retire(verbs: Verbs) -> None:
    dead(verbs)

    assert verbs.discard("m") == "OK"
    assert (verbs.score("retire", "m") or 0) <= verbs.now()
    assert faults(read(verbs.redis)) == []
    assert verbs.replay("m") == ("ENDED", 1)
    assert verbs.retire()[0] == 1
    assert not verbs.redis.keys("*:m")
    assert faults(read(verbs.redis)) == []


def test_what_runs_is_not_discarded(verbs: Verbs) -> None:
    dead(verbs)
    verbs.replay("m")
    before = read(verbs.redis)

    assert verbs.discard("m") == "RUNNING"
    assert read(verbs.redis) == before


def test_a_replayed_mission_is_kept_as_long_as_any_other(verbs: Verbs) -> None:
    dead(verbs)
    verbs.replay("m")
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("end"))

    assert (verbs.score("retire", "m") or 0) <= verbs.now() + HOUR_MS
    assert verbs.replay("m") == ("ENDED", 2)
