"""What a commit causes elsewhere: rows in order, carried by whoever comes, each gone only once it was carried out."""

import json

import pytest

from tests.redis.audit import faults, leftovers, read
from tests.redis.scripts_client import FAR, HOUR_MS, New, Taken, Verbs
from tests.waiting import until

CHILD = New("kid", root="root m 3 77", deadline_ms=FAR)


def begun(verbs: Verbs, task_id: str = "m", **fields: str) -> Taken:
    """A mission under lease of w1."""
    verbs.accept(New(task_id, **fields))  # type: ignore[arg-type]  # text fields only
    return verbs.take("w1")[task_id]


def test_rows_of_a_mission_are_handed_out_in_order_and_held_meanwhile(verbs: Verbs) -> None:
    verbs.commit("w1", begun(verbs).write(rows=("one", "two")))

    due_ms, [(task_id, row, _)] = verbs.carry(hold_ms=5000)
    assert (task_id, row) == ("m", "one")
    assert 0 < due_ms <= 5000
    assert verbs.carry()[1] == [], "it is another one's for now"
    assert verbs.carried("m", "one") == "two"
    assert verbs.rows("m") == ["two"]
    assert verbs.carry()[1] == [], "it is still that one's"
    assert verbs.carried("m", "two") == ""
    assert verbs.carry() == (-1, [])
    assert faults(read(verbs.redis)) == []


def test_rows_of_one_who_died_with_them_are_handed_out_again(verbs: Verbs) -> None:
    verbs.commit("w1", begun(verbs).write(rows=("one",)))
    assert verbs.carry()[1]
    verbs.set_score("outboxes", "m", 1)

    assert [row for _, row, _ in verbs.carry()[1]] == ["one"]


def test_no_more_outboxes_are_handed_out_than_were_asked_for(verbs: Verbs) -> None:
    verbs.accept(*(New(f"m{n}") for n in range(3)))
    verbs.commit("w1", *(one.write(rows=("row",)) for one in verbs.take("w1").values()))

    due_ms, found = verbs.carry(most=2)
    assert len(found) == 2
    assert due_ms == 0, "and the third one's turn is now"


def test_a_row_goes_only_if_it_is_the_oldest(verbs: Verbs) -> None:
    verbs.commit("w1", begun(verbs).write(rows=("one", "two")))
    verbs.carry()
    verbs.carried("m", "one")

    assert verbs.carried("m", "one") == "", "somebody else has carried it on"
    assert verbs.carried("m", "one", "dead", kept="it") == ""
    assert verbs.rows("m") == ["two"]
    assert verbs.redis.exists(verbs.key("dead_rows:m")) == 0


def test_a_row_that_is_put_off_stays_the_next_one(verbs: Verbs) -> None:
    verbs.commit("w1", begun(verbs).write(rows=("one", "two")))
    verbs.carry()

    assert verbs.carried("m", "one", "later", ms=60_000) == ""
    assert verbs.rows("m") == ["one", "two"]
    due_ms, found = verbs.carry()
    assert (0 < due_ms <= 60_000, found) == (True, [])
    assert faults(read(verbs.redis)) == []


def test_a_row_that_was_refused_is_kept_with_the_mission_and_goes_with_it(verbs: Verbs) -> None:
    verbs.commit("w1", begun(verbs).write("end", rows=("one", "two")))
    verbs.carry()

    assert verbs.carried("m", "one", "dead", kept='{"why":"no"}') == "two"
    assert verbs.redis.lrange(verbs.key("dead_rows:m"), 0, -1) == [b'{"why":"no"}']
    verbs.carried("m", "two")
    assert faults(read(verbs.redis)) == []
    verbs.set_score("retire", "m", 1)
    assert verbs.retire()[0] == 1
    assert leftovers(read(verbs.redis)) == []


def test_the_dead_rows_of_a_mission_are_bounded(verbs: Verbs) -> None:
    rows = tuple(f"row {n}" for n in range(120))
    verbs.commit("w1", begun(verbs).write(rows=rows))
    verbs.carry()
    for row in rows:
        verbs.carried("m", row, "dead", kept=row)

    assert verbs.redis.llen(verbs.key("dead_rows:m")) == 100
    assert verbs.redis.lindex(verbs.key("dead_rows:m"), -1) == b"row 119"


def test_an_index_entry_without_rows_is_dropped(verbs: Verbs) -> None:
    verbs.redis.zadd(verbs.key("outboxes"), {"m": 1})

    assert verbs.carry() == (-1, [])
    assert verbs.redis.exists(verbs.key("outboxes")) == 0


def test_an_outbox_that_is_damaged_costs_the_others_nothing(verbs: Verbs) -> None:
    verbs.commit("w1", begun(verbs).write(rows=("one",)))
    verbs.redis.set(verbs.key("outbox:bad"), "no list")
    verbs.redis.zadd(verbs.key("outboxes"), {"bad": 1})

    due_ms, found = verbs.carry()
    assert [task_id for task_id, _, _ in found] == ["m"]
    assert due_ms > 0, "and it is looked at again, not at once"


def test_whoever_carries_is_woken_by_rows_and_by_nothing_else(verbs: Verbs) -> None:
    m = begun(verbs)
    with verbs.hearing("carry") as hear:
        verbs.commit("w1", m.write())
        assert hear(within=0.05) == []
        verbs.commit("w1", m.write(rev=1, rows=("one",)))
        assert hear() == [b""]


def test_a_child_knows_its_root_and_its_parent_and_keeps_its_deadline(verbs: Verbs) -> None:
    verbs.accept(CHILD)

    record = verbs.record("kid")
    assert (record["root"], record["parent"], record["origin"]) == ("root", "m 3", "77")
    assert record["deadline"] == str(FAR), "its parent's, not one that is counted from now"
    assert verbs.take("w1")["kid"].root == "root"


def test_children_of_one_parent_are_as_old_as_their_root_and_never_replace_each_other(verbs: Verbs) -> None:
    latest, old = "a:lamp:power", "root m 1 4096"
    verbs.accept(New("newer", latest=latest))
    verbs.accept(New("kid1", root=old, deadline_ms=FAR, latest=latest))
    verbs.accept(New("kid2", root="root m 1 9000000000000000", deadline_ms=FAR, latest=latest))
    verbs.accept(New("kid3", root="root m 1 9000000000000000", deadline_ms=FAR, latest=latest))
    taken = verbs.take("w1")

    words = {one: verbs.commit("w1", taken[one].write(act=True))[0].word for one in ("kid1", "kid2", "kid3")}
    assert words == {"kid1": "SUPERSEDED", "kid2": "OK", "kid3": "OK"}


def test_what_children_inherit_is_the_age_of_their_root(verbs: Verbs) -> None:
    root = begun(verbs)
    verbs.commit("w1", root.write(rows=("row",)))
    record = verbs.record("m")
    [(_, _, origin)] = verbs.carry()[1]
    assert origin == int(record["created_at"]) * 4096 + int(record["order"]) % 4096

    verbs.accept(New("kid", root=f"m m 1 {origin}", deadline_ms=FAR))
    verbs.commit("w1", verbs.take("w1")["kid"].write(rows=("row",)))
    assert verbs.carry()[1] == [("kid", "row", origin)]


def test_a_root_with_a_latest_rule_hands_its_own_intent_on(verbs: Verbs) -> None:
    verbs.commit("w1", begun(verbs, latest="a:lamp:power").write(rows=("row",)))

    assert verbs.carry()[1] == [("m", "row", int(verbs.record("m")["intent"]))]


def test_a_replay_is_as_new_as_it_is_said(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write("bury", waiting_for="START"))
    created = int(verbs.record("m")["created_at"])
    until(lambda: verbs.now() > created)
    verbs.replay("m")
    verbs.commit("w1", verbs.take("w1")["m"].write(rows=("row",)))

    [(_, _, origin)] = verbs.carry()[1]
    assert origin // 4096 > created
    assert origin % 4096 == int(verbs.record("m")["order"]) % 4096


ROW = {"row": "end", "parent": "m", "run": 3, "child": "kid", "child_run": 1}


def _told(verbs: Verbs) -> dict[str, object]:
    [row] = verbs.rows("kid")
    told: dict[str, object] = json.loads(row)
    document = told.pop("document")
    assert document == verbs.result("kid")
    assert faults(read(verbs.redis)) == []
    return told


def test_the_end_of_a_child_is_a_row_for_its_parent(verbs: Verbs) -> None:
    verbs.accept(CHILD)
    verbs.commit("w1", verbs.take("w1")["kid"].write("end"))

    assert _told(verbs) == ROW


def test_so_is_an_end_that_is_no_workers(verbs: Verbs) -> None:
    verbs.accept(CHILD)
    with verbs.hearing("carry") as hear:
        verbs.cancel("kid")
        assert hear() == [b""]

    assert _told(verbs) == ROW


def test_the_end_of_a_later_run_says_so(verbs: Verbs) -> None:
    verbs.accept(CHILD)
    verbs.commit("w1", verbs.take("w1")["kid"].write("bury", waiting_for="START"))
    verbs.carry()
    verbs.carried("kid", verbs.rows("kid")[0])
    verbs.replay("kid")
    verbs.commit("w1", verbs.take("w1")["kid"].write("end"))

    assert _told(verbs) == ROW | {"child_run": 2}


def test_a_mission_without_a_parent_tells_nobody(verbs: Verbs) -> None:
    verbs.commit("w1", begun(verbs).write("end"))
    verbs.accept(New("n"))
    verbs.cancel("n")

    assert read(verbs.redis).keys.get("outbox") is None


def test_children_of_one_that_no_worker_ended_are_cancelled(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write("yield", rows=('{"row":"accept","child":"kid"}',)))
    verbs.claim("w2", 1, knows=("r@1",))
    verbs.redis.hset(verbs.key("mission:m"), "parked_at", 1)
    verbs.set_score("parked:t@1", "m", 1)
    verbs.sweep(knows=("r@1",), park_limit_ms=1)

    assert verbs.place("m") == "ended"
    assert [json.loads(row)["row"] for row in verbs.rows("m")] == ["accept", "cancel_all"]
    assert faults(read(verbs.redis)) == []


def test_one_that_has_spawned_nobody_cancels_nobody(verbs: Verbs) -> None:
    verbs.commit("w1", begun(verbs).write("yield", rows=('{"row":"webhook"}',)))
    verbs.claim("w2", 1, knows=("r@1",))
    verbs.redis.hset(verbs.key("mission:m"), "parked_at", 1)
    verbs.set_score("parked:t@1", "m", 1)
    verbs.sweep(knows=("r@1",), park_limit_ms=1)

    assert verbs.rows("m") == ['{"row":"webhook"}']


@pytest.mark.parametrize("how", ["commit", "cancel"])
def test_an_outbox_that_is_damaged_ends_nothing_by_half(verbs: Verbs, how: str) -> None:
    verbs.accept(CHILD)
    verbs.redis.set(verbs.key("outbox:kid"), "no list")
    if how == "commit":
        kid = verbs.take("w1")["kid"]
        assert verbs.commit("w1", kid.write("end"))[0].word == "ERROR"
        assert verbs.place("kid") == "leased"
    else:
        with pytest.raises(Exception, match="WRONGTYPE"):
            verbs.cancel("kid")
        assert verbs.place("kid") == "lane"
    assert verbs.result("kid") is None
    assert len(verbs.log("kid")) == (how == "commit")


def test_a_cancel_that_is_about_another_run_ends_nothing(verbs: Verbs) -> None:
    verbs.accept(CHILD)

    assert verbs.control("kid", "cancel", "c", reason="requested", run=2).word == "ENDED"
    assert verbs.place("kid") == "lane"
    assert verbs.control("kid", "cancel", "c", reason="requested", run=1).word == "OK"
    assert verbs.place("kid") == "ended"


def test_rows_outlive_the_retention_of_the_result(verbs: Verbs) -> None:
    verbs.accept(CHILD)
    verbs.commit("w1", verbs.take("w1")["kid"].write("end"), retention_ms=1)
    verbs.redis.delete(verbs.key("result:kid"))

    assert json.loads(verbs.rows("kid")[0])["document"]["status"] == "SUCCEEDED"
    assert verbs.carry(HOUR_MS)[1]
