"""commit: the one guarded write. Each test is a guard, named by the rule: it fails where the guard is taken out."""

import json

import pytest

from shared.clock import parse_rfc3339
from tests.redis.audit import faults, read
from tests.redis.scripts_client import FAR, Move, New, Taken, Verbs, Write, event
from tests.waiting import until


def begun(verbs: Verbs, **fields: str) -> Taken:
    """A mission under lease of w1."""
    verbs.accept(New("m", **fields))  # type: ignore[arg-type]  # text fields only
    return verbs.take("w1")["m"]


def test_a_commit_is_written_whole(verbs: Verbs) -> None:
    m = begun(verbs)
    write = m.write("wait", state="B", document="{}", wake_at=FAR, waiting_for="timer", events=(event(), event()))

    assert verbs.commit("w1", write) == [("OK", 3, ())]

    record = verbs.record("m")
    expected = {"place": "waiting", "status": "WAITING", "state": "B", "document": "{}", "rev": "1", "seq": "3"}
    assert expected.items() <= record.items()
    assert (record["wake_at"], record["waiting_for"]) == (str(FAR), "timer")
    assert [one["seq"] for one in verbs.log("m")] == [1, 2, 3]
    assert faults(read(verbs.redis)) == []


def test_an_empty_document_leaves_the_old_one(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write(document="kept"))
    verbs.commit("w1", m.write(rev=1))

    assert verbs.record("m")["document"] == "kept"


def test_a_new_version_of_the_document_is_recorded(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write(version="3"))
    assert verbs.record("m")["version"] == "3"
    verbs.commit("w1", m.write("yield", rev=1))

    assert verbs.take("w1", knows=("t@3",))["m"].version == 3


def test_a_commit_that_goes_on_stays_leased(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write("stay"))

    assert verbs.place("m") == "leased"
    assert faults(read(verbs.redis)) == []


def test_a_stale_fence_is_fenced(verbs: Verbs) -> None:
    old = begun(verbs)
    verbs.release("w1", ("m", old.fence))
    new = verbs.take("w1")["m"]
    assert new.fence > old.fence

    assert verbs.commit("w1", old.write("end")) == [("FENCED", 0, ())]
    assert verbs.place("m") == "leased"
    assert verbs.commit("w1", new.write("end"))[0].word == "OK"


def test_a_stale_rev_is_fenced(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write())
    verbs.commit("w1", m.write(rev=1))

    assert verbs.commit("w1", m.write("end", rev=0)) == [("FENCED", 0, ())]
    assert verbs.commit("w1", m.write("end", rev=3)) == [("FENCED", 0, ())]
    assert verbs.place("m") == "leased"


def test_another_owner_is_fenced(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.claim("w2", 0)

    assert verbs.commit("w2", m.write("end")) == [("FENCED", 0, ())]
    assert verbs.place("m") == "leased"


def test_what_was_released_is_fenced(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.release("w1", ("m", m.fence))

    assert verbs.commit("w1", m.write("end")) == [("FENCED", 0, ())]
    assert verbs.place("m") == "lane"


@pytest.mark.parametrize("move", ["stay", "wait", "leave", "yield", "end"])
def test_the_same_commit_again_is_a_duplicate(verbs: Verbs, move: Move) -> None:
    m = begun(verbs, target="a:lamp")
    write = m.write(move, events=(event(),), rows=("row",))
    assert verbs.commit("w1", write)[0].word == "OK"
    before = read(verbs.redis)

    assert verbs.commit("w1", write) == [("DUPLICATE", 0, ())]
    assert read(verbs.redis) == before


def test_a_double_within_one_flush_is_a_duplicate(verbs: Verbs) -> None:
    write = begun(verbs).write("leave", events=(event(),))

    assert [one.word for one in verbs.commit("w1", write, write)] == ["OK", "DUPLICATE"]
    assert len(verbs.log("m")) == 2


def test_a_late_copy_is_fenced_once_somebody_has_claimed(verbs: Verbs) -> None:
    write = begun(verbs).write("yield")
    verbs.commit("w1", write)
    verbs.take("w1")

    assert verbs.commit("w1", write) == [("FENCED", 0, ())]


def test_a_late_copy_after_retirement_is_gone(verbs: Verbs) -> None:
    write = begun(verbs).write("end")
    verbs.commit("w1", write)
    verbs.set_score("retire", "m", 1)
    verbs.retire()

    assert verbs.commit("w1", write) == [("GONE", 0, ())]
    assert verbs.record("m") == {}


@pytest.mark.parametrize("move", ["stay", "wait", "leave", "yield", "end"])
def test_an_unread_entry_is_signalled_to_every_commit(verbs: Verbs, move: Move) -> None:
    m = begun(verbs)
    verbs.event("m", "e1")
    verbs.cancel("m", "c1")
    before = read(verbs.redis)

    answer = verbs.commit("w1", m.write(move))[0]
    assert answer == ("SIGNALLED", 0, ("e1", '{"entry":"cancel","id":"c1"}'))
    assert read(verbs.redis) == before


def test_an_entry_that_came_after_the_read_is_signalled(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.event("m", "e1")
    verbs.event("m", "e2")

    assert verbs.commit("w1", m.write(consumed=1))[0] == ("SIGNALLED", 0, ("e1", "e2"))
    assert verbs.commit("w1", m.write(consumed=2))[0].word == "OK"


def test_consumed_entries_leave_the_inbox_and_the_signals(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.event("m", "e1")
    assert verbs.renew("w1") == {"m"}

    verbs.commit("w1", m.write(consumed=1))

    assert verbs.unread("m") == []
    assert verbs.record("m")["unread"] == "0"
    assert verbs.renew("w1") == set()
    assert faults(read(verbs.redis)) == []


def test_a_consumed_id_stays_known_to_the_end_of_the_run(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.event("m", "e1")
    verbs.commit("w1", m.write(consumed=1))

    assert verbs.event("m", "e1")[0] == "DUPLICATE"
    verbs.commit("w1", m.write("end", rev=1))
    assert not verbs.redis.exists(verbs.key("inbox_ids:m"))


def test_a_kept_hold_stays_through_the_wait(verbs: Verbs) -> None:
    m = begun(verbs, target="a:lamp")
    verbs.accept(New("next", target="a:lamp"))
    verbs.commit("w1", m.write("wait", wake_at=FAR))

    assert verbs.holder("a:lamp") == "m"
    assert verbs.place("next") == "waiters"
    assert faults(read(verbs.redis)) == []


@pytest.mark.parametrize("move", ["leave", "end"])
def test_a_hold_given_up_goes_to_the_best_waiter(verbs: Verbs, move: Move) -> None:
    m = begun(verbs, target="a:lamp")
    verbs.accept(New("bulk", target="a:lamp", lane="bulk:default:a"), New("late", target="a:lamp"))
    verbs.accept(New("urgent", target="a:lamp", lane="urgent:default:a"), New("later", target="a:lamp"))
    verbs.commit("w1", m.write(move))

    order = []
    for _ in range(4):
        (one,) = verbs.take("w1").values()
        assert verbs.holder("a:lamp") == one.task_id
        order.append(one.task_id)
        verbs.commit("w1", one.write("end"))
    assert order == ["urgent", "late", "later", "bulk"]
    assert verbs.holder("a:lamp") is None
    assert faults(read(verbs.redis)) == []


def test_a_wait_with_a_wake_time_stands_in_the_timers(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write("leave", wake_at=FAR))

    assert verbs.score("timers", "m") == FAR


def test_a_wait_for_an_event_alone_has_no_timer(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write("leave", waiting_for="event"))

    assert verbs.place("m") == "waiting"
    assert faults(read(verbs.redis)) == []


def test_a_yield_goes_to_the_lane_with_a_new_age_and_its_hold(verbs: Verbs) -> None:
    m = begun(verbs, target="a:lamp")
    ready_at = int(verbs.record("m")["ready_at"])
    until(lambda: verbs.now() > ready_at)
    verbs.commit("w1", m.write("yield"))

    record = verbs.record("m")
    assert (record["place"], record["order"]) == ("lane", "1")
    assert int(record["ready_at"]) > ready_at
    assert verbs.holder("a:lamp") == "m"
    assert faults(read(verbs.redis)) == []


def test_nobody_runs_in_a_lane(verbs: Verbs) -> None:
    """RUNNING means that a worker holds a live lease on it: what yields waits for a worker."""
    m = begun(verbs)
    verbs.commit("w1", m.write("yield", status="RUNNING"))
    assert verbs.record("m")["status"] == "WAITING"

    again = verbs.take("w1")["m"]
    verbs.commit("w1", again.write("yield", status="COMPENSATING"))
    assert verbs.record("m")["status"] == "COMPENSATING"
    assert faults(read(verbs.redis)) == []


def test_an_end_writes_log_result_and_expiry_together(verbs: Verbs) -> None:
    m = begun(verbs)
    before = verbs.now()
    write = m.write("end", state="DONE", events=(event("SUCCEEDED", "DONE"),), middle='"status":"SUCCEEDED","run":1')
    assert verbs.commit("w1", write, retention_ms=60_000) == [("OK", 2, ())]

    result = verbs.result("m")
    assert result is not None
    assert (result["seq"], result["status"], result["run"]) == (2, "SUCCEEDED", 1)
    told = {"created_at", "started_at", "finished_at", "expires_at", "progress"}
    assert set(result) == {"seq", "status", "run"} | told
    assert verbs.log("m")[-1]["at"] == result["finished_at"]
    assert parse_rfc3339(result["expires_at"]) - parse_rfc3339(result["finished_at"]) == 60_000
    assert 0 < verbs.redis.pttl(verbs.key("result:m")) <= 60_000
    retire_at = verbs.score("retire", "m")
    assert retire_at is not None
    assert before + 60_000 <= retire_at <= verbs.now() + 60_000
    assert verbs.score("deadlines", "m") is None
    assert faults(read(verbs.redis)) == []


def test_outbox_rows_are_written_in_order(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write(rows=("one", "two")))
    first = verbs.score("outboxes", "m")
    until(lambda: verbs.now() > (first or 0))
    verbs.commit("w1", m.write("end", rev=1, rows=("three",)))

    assert verbs.redis.lrange(verbs.key("outbox:m"), 0, -1) == [b"one", b"two", b"three"]
    assert verbs.score("outboxes", "m") == first, "the index has the oldest row's time"


def test_counts_follow_status_and_state(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write(state="B"))
    verbs.commit("w1", m.write(rev=1, state="B"))
    verbs.commit("w1", m.write("leave", rev=2, state="B"))

    assert verbs.redis.hget(verbs.key("counts"), "t|WAITING|B") == b"1"
    assert faults(read(verbs.redis)) == []


def test_watchers_hear_events_and_result_in_one_hint(verbs: Verbs) -> None:
    m = begun(verbs, watcher="front")
    with verbs.hearing("feed:front") as hear:
        verbs.commit("w1", m.write("end", events=(event(), event("SUCCEEDED", "SUCCEEDED"))))

        head, *lines = hear()[0].split(b"\n")
        assert head == b"m"
        assert [line[:1] for line in lines] == [b"E", b"E", b"R"]
        assert [json.loads(line[1:]) for line in lines] == [*verbs.log("m")[1:], verbs.result("m")]


def test_a_commit_without_events_tells_nothing(verbs: Verbs) -> None:
    m = begun(verbs, watcher="front")
    with verbs.hearing("feed:front") as hear:
        verbs.commit("w1", m.write("leave"))

        assert not hear(0.01)


def test_lapsed_watchers_are_told_nothing(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.redis.hset(verbs.key("mission:m"), "watchers", f"gone {verbs.now() - 1}")
    with verbs.hearing("feed:gone") as hear:
        verbs.commit("w1", m.write("end"))

        assert not hear(0.01)


def test_a_failed_item_changes_nothing_and_never_fails_its_neighbours(verbs: Verbs) -> None:
    for what in ("log", "outbox"):
        verbs.redis.set(verbs.key(f"{what}:no {what}"), "of another type")
    bad = ("no log", "no outbox", "no time", "no result")
    verbs.accept(*(New(one) for one in ("a", *bad, "z")))
    verbs.redis.hset(verbs.key("mission:no log"), "started_at", 1)  # so that its claim writes no event
    taken = verbs.take("w1")
    for one in bad:
        verbs.event(one, "e1")
        taken[one] = taken[one]._replace(unread=("e1",))
    before = {one: dump(verbs, one) for one in bad}

    answers = verbs.commit(
        "w1",
        taken["a"].write(),
        taken["no log"].write("leave", events=(event(),), rows=("row",)),
        taken["no outbox"].write("leave", events=(event(),), rows=("row",)),
        taken["no time"].write("leave", events=(event(),), wake_at="soon"),
        taken["no result"].write("end", events=(event(),), middle=""),
        taken["z"].write(),
    )

    assert [one.word for one in answers] == ["OK", "ERROR", "ERROR", "ERROR", "ERROR", "OK"]
    assert "WRONGTYPE" in answers[1].unread[0]
    assert "wake_at is no time: soon" in answers[3].unread[0]
    assert {one: dump(verbs, one) for one in bad} == before
    assert verbs.redis.hgetall(verbs.key("counts")) == {b"t|RUNNING|START": b"4", b"t|RUNNING|NEXT": b"2"}
    assert verbs.renew("w1") == set(bad)


def dump(verbs: Verbs, task_id: str) -> list[object]:
    """All keys of a mission, whatever their type."""
    kinds = ("mission", "log", "inbox", "inbox_ids", "outbox", "result")
    return [verbs.redis.dump(verbs.key(f"{kind}:{task_id}")) for kind in kinds]


def test_a_batch_is_answered_item_by_item(verbs: Verbs) -> None:
    verbs.accept(New("ok"), New("stale"), New("told"), New("again"))
    taken = verbs.take("w1")
    verbs.event("told", "e1")
    again = taken["again"].write()
    verbs.commit("w1", again)
    writes = (taken["ok"].write(), taken["stale"].write(rev=7), taken["told"].write(), again)
    gone = Write("never", 1, 0)

    words = [one.word for one in verbs.commit("w1", *writes, gone)]
    assert words == ["OK", "FENCED", "SIGNALLED", "DUPLICATE", "GONE"]


def test_a_hold_freed_in_a_batch_is_seen_by_a_later_item(verbs: Verbs) -> None:
    """P4: nothing that a later item reads may be put off to the end of the script."""
    verbs.accept(New("a", target="a:lamp"), New("b", target="a:lamp"), New("c", target="a:fan"))
    taken = verbs.take("w1")
    verbs.commit("w1", taken["a"].write("end"), taken["c"].write("end"))

    assert verbs.holder("a:lamp") == "b"
    assert verbs.take("w1").keys() == {"b"}
    assert faults(read(verbs.redis)) == []


def test_fifty_commits_go_in_one_script(verbs: Verbs) -> None:
    verbs.accept(*(New(f"m{n:02}") for n in range(50)))
    taken = verbs.take("w1")
    answers = verbs.commit("w1", *(one.write("end", events=(event(),)) for one in taken.values()))

    assert [one.seq for one in answers] == [2] * 50
    assert faults(read(verbs.redis)) == []
    assert verbs.redis.zcard(verbs.key("retire")) == 50
