"""progress (P18): how far a mission is, as its handler says while it runs; the newest value only, and no event."""

import json
from typing import Any

import pytest

from tests.redis.audit import faults, read
from tests.redis.scripts_client import FAR, New, Taken, Verbs, event

HALF, ALL = (f'{{"done":{n},"total":4,"message":"item"}}' for n in (2, 4))


def begun(verbs: Verbs, name: str = "m") -> Taken:
    """A mission under lease of w1."""
    verbs.accept(New(name, watcher="front"))
    return verbs.take("w1")[name]


def told(verbs: Verbs, m: Taken, said: str = HALF, owner: str = "w1", rev: int = 0) -> str:
    (word,) = verbs.progress(owner, (m.task_id, m.fence, rev, said))
    return word


def standing(verbs: Verbs) -> str | None:
    return verbs.record("m").get("progress")


def test_the_newest_stands_in_the_record_and_is_no_event(verbs: Verbs) -> None:
    m = begun(verbs)
    before = verbs.record("m")
    assert [told(verbs, m, said) for said in (HALF, ALL)] == ["OK", "OK"]

    record = verbs.record("m")
    assert abs(int(record.pop("progress_at")) - verbs.now()) < 5000
    assert record == before | {"progress": ALL}
    assert len(verbs.log("m")) == 1
    assert faults(read(verbs.redis)) == []


def test_watchers_are_told_in_a_line_of_its_own(verbs: Verbs) -> None:
    m = begun(verbs)
    with verbs.hearing("feed:front") as hear:
        told(verbs, m)
        [line] = hear()
    head, _, body = line.decode().partition("\nP")
    at = json.loads(body)["at"]
    assert head == "m"
    assert body == f'{{"status":"RUNNING","state":"START","at":"{at}","progress":{HALF}}}'


def test_what_is_gone_is_gone(verbs: Verbs) -> None:
    assert verbs.progress("w1", ("m", 1, 0, HALF)) == ["GONE"]
    assert verbs.record("m") == {}


def test_another_owner_has_nothing_to_say(verbs: Verbs) -> None:
    m = begun(verbs)
    assert told(verbs, m, owner="w2") == "FENCED"
    assert standing(verbs) is None


def test_nor_has_who_was_taken_over_by_himself(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.release("w1", ("m", m.fence))
    verbs.take("w1")
    assert told(verbs, m) == "FENCED"
    assert standing(verbs) is None


def test_nor_who_has_handed_it_back(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.release("w1", ("m", m.fence))
    assert told(verbs, m) == "FENCED"
    assert standing(verbs) is None


def test_a_late_word_does_not_hide_what_a_commit_has_said_since(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write(progress=ALL))
    assert told(verbs, m) == "FENCED"
    assert standing(verbs) == ALL
    assert told(verbs, m, HALF, rev=1) == "OK"


def test_one_that_breaks_never_fails_its_neighbours(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.redis.set(verbs.key("mission:broken"), "no hash")
    words = verbs.progress("w1", ("broken", 1, 0, HALF), ("m", m.fence, 0, HALF))
    assert words == ["ERROR", "OK"]
    assert standing(verbs) == HALF


# by a commit


@pytest.mark.parametrize("move", ["stay", "yield", "wait", "leave", "pause"])
def test_a_commit_carries_it(verbs: Verbs, move: Any) -> None:
    m = begun(verbs)
    with verbs.hearing("feed:front") as hear:
        verbs.commit("w1", m.write(move, wake_at=FAR, progress=HALF, events=(event(),)))
        lines = hear()[0].decode().split("\n")[1:]
    assert standing(verbs) == HALF
    assert abs(int(verbs.record("m")["progress_at"]) - verbs.now()) < 5000
    assert [line[0] for line in lines] == ["E", "P"]
    record, passing = verbs.record("m"), json.loads(lines[1][1:])
    assert (passing["status"], passing["state"], passing["progress"]) == (
        record["status"],
        record["state"],
        json.loads(HALF),
    )


def test_one_that_says_nothing_of_it_leaves_it(verbs: Verbs) -> None:
    m = begun(verbs)
    told(verbs, m)
    at = verbs.record("m")["progress_at"]
    with verbs.hearing("feed:front") as hear:
        verbs.commit("w1", m.write(events=(event(),)))
        assert b"\nP" not in hear()[0]
    assert (standing(verbs), verbs.record("m")["progress_at"]) == (HALF, at)


# at the end


@pytest.mark.parametrize("said", ["", ALL])
@pytest.mark.parametrize("move", ["end", "bury"])
def test_the_result_has_the_newest(verbs: Verbs, move: Any, said: str) -> None:
    m = begun(verbs)
    told(verbs, m)
    with verbs.hearing("feed:front") as hear:
        verbs.commit("w1", m.write(move, progress=said, events=(event("SUCCEEDED", "DONE"),)))
        assert [line[:1] for line in hear()[0].split(b"\n")[1:]] == [b"E", b"R"]  # it is in the result
    result = verbs.result("m")
    assert result is not None
    assert result["progress"] == json.loads(said or HALF)


@pytest.mark.parametrize("move", ["end", "bury"])
def test_what_is_no_json_is_left_out_of_it(verbs: Verbs, move: Any) -> None:
    m = begun(verbs)
    verbs.redis.hset(verbs.key("mission:m"), "progress", '{"done":')
    verbs.commit("w1", m.write(move))
    result = verbs.result("m")
    assert result is not None
    assert result["progress"] is None


def test_so_has_that_of_one_which_no_worker_has_ended(verbs: Verbs) -> None:
    m = begun(verbs)
    told(verbs, m)
    verbs.redis.hset(verbs.key("mission:m"), mapping={"solo_deaths": 2, "owner": "solo-1"})
    verbs.redis.smove(verbs.key("held:w1"), verbs.key("held:solo-1"), "m")
    verbs.redis.zadd(verbs.key("owners"), {"solo-1": 1})
    for _ in range(2):
        verbs.claim("w2", 0, renew_ms=0)

    result = verbs.result("m")
    assert result is not None
    assert (result["status"], result["progress"]) == ("FAILED", json.loads(HALF))


def test_who_has_said_nothing_has_none(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write("end"))
    verbs.accept(New("other"))
    verbs.cancel("other")
    for name in ("m", "other"):
        result = verbs.result(name)
        assert result is not None
        assert result["progress"] is None


def test_a_new_run_begins_without(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write("bury", waiting_for="START", progress=ALL))
    assert verbs.replay("m") == ("OK", 2)
    assert not {"progress", "progress_at"} & set(verbs.record("m"))
