"""The kit's shard keeps the guards of the scripts: what they refuse, it refuses."""

from typing import Any

import pytest

from backend_loop.store import LostError
from backend_loop.testing.control import Control
from backend_loop.testing.places import ROOM
from backend_loop.testing.record import Record
from backend_loop.testing.shard import Shard, Write
from backend_loop.testing.skipping import BEGIN, Time
from shared.settings import Settings
from shared.status import Status

SETTINGS = Settings.model_construct()


class Stage:
    """A shard with missions on it."""

    def __init__(self) -> None:
        self.time = Time(BEGIN, 1e9)
        self.shard = Shard(self.time, SETTINGS)
        self.control = Control(self.shard, self.time)

    def accept(self, task_id: str, target: str = "", priority: str = "normal") -> Record:
        record = Record(
            task_id=task_id,
            type="t",
            version=1,
            envelope=b"{}",
            state="START",
            lane=f"{priority}:default:default",
            order=self.shard.next_order(),
            created_at=self.time.now_ms(),
            deadline=self.time.now_ms() + 60_000,
            target=target,
        )
        assert self.shard.accept(record) == "OK"
        return record

    def claim(self, owner: str = "w") -> list[str]:
        return [one.task_id for one in self.shard.claim(owner)]

    def write(self, record: Record, move: str = "stay", **parts: Any) -> Write:
        write = Write(
            record.task_id,
            record.fence,
            record.rev,
            len(record.inbox),
            move,
            Status.RUNNING,
            "NEXT",
            b"{}",
            b'"status":"RUNNING","state":"NEXT","data":null}',
            "",
            "",
            "",
            "",
            b"",
        )
        return write._replace(**parts)


def place(record: Record) -> str:
    return record.place


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_an_id_is_accepted_once(stage: Stage) -> None:
    record = stage.accept("m")
    assert stage.shard.accept(record) == "DUPLICATE"


def test_a_commit_needs_owner_fence_and_rev(stage: Stage) -> None:
    record = stage.accept("m")
    with pytest.raises(LostError, match="FENCED"):
        stage.shard.commit("w", stage.write(record))
    stage.claim()
    refused: list[tuple[str, dict[str, Any]]] = [("x", {}), ("w", {"fence": 7}), ("w", {"rev": 4})]
    for owner, changed in refused:
        with pytest.raises(LostError, match="FENCED"):
            stage.shard.commit(owner, stage.write(record, **changed))
    with pytest.raises(LostError, match="GONE"):
        stage.shard.commit("w", stage.write(record, task_id="nobody"))
    assert (record.rev, len(record.log)) == (0, 1)
    assert stage.shard.commit("w", stage.write(record)).word == "written"
    assert (record.rev, record.state, record.seq) == (1, "NEXT", 2)


def test_the_same_commit_again_is_written_once(stage: Stage) -> None:
    record = stage.accept("m")
    stage.claim()
    write = stage.write(record)
    stage.shard.commit("w", write)
    assert stage.shard.commit("w", write).word == "written"
    assert (record.rev, len(record.log)) == (1, 2)


def test_what_was_posted_meanwhile_is_answered(stage: Stage) -> None:
    record = stage.accept("m")
    stage.claim()
    write = stage.write(record)
    heard: list[str] = []
    stage.shard.posted = heard.append
    assert stage.control.run("m", "event", {"event": "E"}) == "OK"
    answer = stage.shard.commit("w", write)
    assert (answer.word, answer.entries, heard) == ("signalled", (b'{"entry":"event","event":"E"}',), ["m"])
    assert stage.shard.commit("w", stage.write(record)).word == "written"
    assert record.inbox == []


def test_a_newer_command_keeps_it_from_an_act_only(stage: Stage) -> None:
    record = stage.accept("m")
    stage.claim()
    record.newer = True
    for act in ("enters", "begins"):
        assert stage.shard.commit("w", stage.write(record, act=act)).word == "superseded"
    assert stage.shard.commit("w", stage.write(record, act="kept")).word == "written"


def test_who_took_over_has_a_higher_fence(stage: Stage) -> None:
    record = stage.accept("m")
    stage.claim()
    stale = stage.write(record)
    stage.shard.reclaim("w")
    assert (record.place, record.deaths, record.log[-1]["data"]) == ("lane", 1, {"event": "reclaimed", "deaths": 1})
    assert stage.claim("x") == ["m"]
    assert record.fence == 2
    for owner in ("w", "x"):
        with pytest.raises(LostError):
            stage.shard.commit(owner, stale)
    stage.shard.release("w", [("m", 1)])
    assert record.place == "leased", "a dead worker gives nothing back"
    stage.shard.commit("x", stage.write(record))
    assert record.deaths == 0


def test_one_mission_at_a_time_holds_a_target(stage: Stage) -> None:
    first, bulk, urgent = (
        stage.accept("a", "lamp"),
        stage.accept("b", "lamp", "bulk"),
        stage.accept("c", "lamp", "urgent"),
    )
    other = stage.accept("d", "door")
    assert (bulk.place, urgent.place) == ("waiters", "waiters")
    assert set(stage.claim()) == {"a", "d"}
    stage.shard.commit("w", stage.write(first, "wait", wake_at=stage.time.now_ms() + 10, waiting_for="retry"))
    assert stage.claim() == [], "a short wait keeps it"
    stage.time.pass_(1)
    assert stage.claim() == ["a"]
    stage.shard.commit("w", stage.write(first, "leave", waiting_for="event"))
    assert stage.claim() == ["c"], "the best of those that wait"
    stage.shard.commit("w", stage.write(urgent, "end", tail=b'"status":"SUCCEEDED"', status=Status.SUCCEEDED))
    assert stage.claim() == ["b"]
    assert other.place == "leased"


def test_an_entry_counts_once_and_an_inbox_has_room_for_so_many(stage: Stage) -> None:
    record = stage.accept("m")
    stage.claim()
    assert stage.control.run("m", "event", {"event": "E"}, entry_id="event:1") == "OK"
    assert stage.control.run("m", "event", {"event": "E"}, entry_id="event:1") == "DUPLICATE"
    for _ in range(ROOM - 1):
        assert stage.control.run("m", "event", {"event": "E"}) == "OK"
    assert stage.control.run("m", "event", {"event": "E"}) == "FULL"
    assert stage.control.run("m", "cancel", {"reason": "requested"}) == "OK", "there is always room for that"
    assert len(record.inbox) == ROOM + 1


def test_a_word_for_another_run_is_for_nobody(stage: Stage) -> None:
    record = stage.accept("m")
    assert stage.control.run("m", "child", {"run": 2}, run=2) == "ENDED"
    assert stage.control.run("m", "child", {"run": 1}, run=1) == "OK"
    assert stage.control.run("nobody", "cancel", {"reason": "requested"}) == "GONE"
    assert len(record.inbox) == 1


def test_a_pause_of_what_nobody_runs_is_a_move_and_of_what_has_entries_an_entry(stage: Stage) -> None:
    record = stage.accept("m", "lamp")
    other = stage.accept("n", "lamp")
    stage.control.run("m", "pause", {"by": "ada"})
    assert (place(record), record.status, place(other)) == ("paused", "PAUSED", "lane")
    stage.control.run("m", "pause", {"by": "ada"})
    assert len(record.log) == 1, "twice is once"
    stage.control.run("m", "event", {"event": "E"})
    assert place(record) == "paused", "an event rouses nobody"
    stage.control.run("m", "resume", {})
    assert place(record) == "waiters"
    assert record.log[-1]["data"] == {"event": "resumed"}
    stage.control.run("m", "pause", {})
    assert record.inbox[-1] == b'{"entry":"pause"}'


def test_a_deadline_is_told_once_and_ends_what_never_began(stage: Stage) -> None:
    begun, fresh = stage.accept("m"), stage.accept("n")
    fresh.place = "waiters"
    stage.claim()
    stage.time.pass_(61)
    for _ in range(2):
        stage.shard.sweep()
    assert begun.inbox == [b'{"entry":"deadline"}']
    assert (fresh.status, fresh.result is not None and fresh.result["reason"]) == ("CANCELLED", "expired")


def test_a_result_has_the_newest_progress_and_the_times(stage: Stage) -> None:
    record = stage.accept("m")
    stage.claim()
    stage.shard.commit("w", stage.write(record, progress=b'{"done":1}'))
    stage.time.pass_(2)
    stage.shard.commit("w", stage.write(record, "bury", tail=b'"status":"FAILED"', waiting_for="NEXT"))
    assert record.result is not None
    assert (record.result["progress"], record.failed_in) == ({"done": 1}, "NEXT")
    assert record.result["finished_at"] == "2026-01-01T00:00:02.000Z"
