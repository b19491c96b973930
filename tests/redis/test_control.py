"""control: what clients want of a mission; an end if it never began, else an entry that no worker can miss."""

import pytest

from tests.redis.audit import faults, read
from tests.redis.scripts_client import FAR, New, Taken, Verbs


def begun(verbs: Verbs, **fields: str) -> Taken:
    """A mission that has committed once, under lease of w1."""
    verbs.accept(New("m", **fields))  # type: ignore[arg-type]  # text fields only
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write())
    return m._replace(rev=1)


def test_a_mission_that_never_began_is_cancelled_here(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp", root="r p 1 77", deadline_ms=FAR, type="t"))

    assert verbs.cancel("m", reason="disconnected") == ("OK", "CANCELLED")

    result = verbs.result("m")
    assert result is not None
    expected = {
        "seq": 1,
        "correlation_id": "r",
        "task_id": "m",
        "type": "t",
        "status": "CANCELLED",
        "state": "CANCELLED",
        "result": None,
        "error": None,
        "reason": "disconnected",
        "waiting_for": None,
        "run": 1,
        "progress": None,
        "freshness": None,
        "started_at": None,
    }
    assert expected.items() <= result.items()
    assert set(result) - set(expected) == {"created_at", "finished_at", "expires_at"}
    assert verbs.log("m")[-1]["data"] == {"reason": "disconnected"}
    assert verbs.holder("a:lamp") is None
    assert faults(read(verbs.redis)) == []


def test_a_root_is_its_own_correlation(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.cancel("m")

    assert (verbs.result("m") or {})["correlation_id"] == "m"


def test_a_leased_mission_is_never_ended_here(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.take("w1")

    assert verbs.cancel("m") == ("OK", "RUNNING")
    assert verbs.place("m") == "leased"
    assert verbs.unread("m") == ['{"entry":"cancel","id":"cancel"}']
    assert faults(read(verbs.redis)) == []


def test_a_mission_that_committed_is_never_ended_here(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.release("w1", ("m", m.fence))

    assert verbs.cancel("m") == ("OK", "WAITING")
    assert verbs.place("m") == "lane"
    assert len(verbs.unread("m")) == 1
    assert faults(read(verbs.redis)) == []


@pytest.mark.parametrize("verb", ["cancel", "event"])
def test_what_waits_is_moved_towards_its_lane_in_the_same_step(verbs: Verbs, verb: str) -> None:
    m = begun(verbs, target="a:lamp")
    verbs.commit("w1", m.write("leave", wake_at=FAR))

    assert (verbs.cancel("m") if verb == "cancel" else verbs.event("m", "e1")) == ("OK", "WAITING")
    assert verbs.place("m") == "lane"
    assert verbs.holder("a:lamp") == "m"
    assert faults(read(verbs.redis)) == []
    assert len(verbs.take("w1")["m"].unread) == 1


def test_a_worker_is_woken_for_what_waited(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write("leave"))
    with verbs.hearing("wake:default") as hear:
        verbs.event("m", "e1")

        assert hear()


def test_an_event_of_a_held_target_moves_the_mission_to_the_waiters(verbs: Verbs) -> None:
    m = begun(verbs, target="a:lamp")
    verbs.commit("w1", m.write("leave", wake_at=FAR))
    verbs.accept(New("n", target="a:lamp"))

    assert verbs.event("m", "e1") == ("OK", "WAITING")
    assert verbs.place("m") == "waiters"
    assert faults(read(verbs.redis)) == []


def test_an_event_before_the_first_claim_is_kept(verbs: Verbs) -> None:
    verbs.accept(New("m"))

    assert verbs.event("m", "e1") == ("OK", "PENDING")
    assert verbs.take("w1")["m"].unread == ("e1",)


def test_an_entry_id_is_taken_once_a_run(verbs: Verbs) -> None:
    m = begun(verbs)
    assert verbs.event("m", "e1")[0] == "OK"
    assert verbs.event("m", "e1")[0] == "DUPLICATE"
    verbs.commit("w1", m.write(consumed=1))

    assert verbs.event("m", "e1")[0] == "DUPLICATE"
    assert verbs.cancel("m", "e1")[0] == "DUPLICATE"
    assert verbs.unread("m") == []
    assert faults(read(verbs.redis)) == []


def test_at_most_sixty_four_events_are_unread(verbs: Verbs) -> None:
    m = begun(verbs)
    assert {verbs.event("m", f"e{n}")[0] for n in range(64)} == {"OK"}

    assert verbs.event("m", "one more") == ("FULL", "RUNNING")
    assert len(verbs.unread("m")) == 64
    verbs.commit("w1", m.write(consumed=64))
    assert verbs.event("m", "one more")[0] == "OK", "what was refused is not a double"


def test_what_a_worker_had_is_told_and_not_ended_though_nothing_was_committed(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.release("w1", ("m", verbs.take("w1")["m"].fence))

    assert verbs.cancel("m") == ("OK", "PENDING")
    assert (verbs.place("m"), verbs.unread("m")) == ("lane", ['{"entry":"cancel","id":"cancel"}'])
    assert faults(read(verbs.redis)) == []


def test_cancel_and_deadline_have_room_in_a_full_inbox(verbs: Verbs) -> None:
    begun(verbs)
    for n in range(64):
        verbs.event("m", f"e{n}")

    assert verbs.cancel("m")[0] == "OK"
    verbs.set_score("deadlines", "m", 1)
    verbs.sweep()
    assert verbs.unread("m")[-2:] == ['{"entry":"cancel","id":"cancel"}', '{"entry":"deadline"}']
    assert faults(read(verbs.redis)) == []


def test_the_lease_holder_is_signalled(verbs: Verbs) -> None:
    begun(verbs)
    with verbs.hearing("signal:w1") as hear:
        verbs.event("m", "e1")

        assert hear() == [b"m"]
    assert verbs.renew("w1") == {"m"}


def test_watchers_hear_of_a_cancel(verbs: Verbs) -> None:
    with verbs.hearing("feed:front") as hear:
        verbs.accept(New("m", watcher="front"))
        verbs.cancel("m")

        lines = hear()[0].split(b"\n")
        assert [line[:1] for line in lines] == [b"m", b"E", b"R"]


def test_nothing_reaches_an_ended_mission(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write("end"))
    before = read(verbs.redis)

    assert verbs.cancel("m") == ("ENDED", "SUCCEEDED")
    assert verbs.event("m", "e1") == ("ENDED", "SUCCEEDED")
    assert read(verbs.redis) == before


def test_nothing_reaches_a_mission_that_is_gone(verbs: Verbs) -> None:
    assert verbs.cancel("m") == ("GONE", "")
    assert verbs.event("m", "e1") == ("GONE", "")
    assert read(verbs.redis).keys == {}
