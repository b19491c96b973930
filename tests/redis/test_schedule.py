"""`schedule` and `steer`: schedules are taken in, changed, paused, resumed and removed, each step under its guard."""

from typing import Any

import pytest
import redis

from tests.redis.scripts_client import FAR, Verbs

PLAN = '{"cron":"* * * * *"}'


def add(
    verbs: Verbs, name: str = "s", *, paused: bool = False, following: int = FAR, due: int = FAR, most: int = 10
) -> Any:
    return verbs.run("schedule", name, "", PLAN, "1" if paused else "", following, due, most)


def change(verbs: Verbs, rev: int, plan: str = PLAN, following: int | str = "", due: int | str = "") -> Any:
    return verbs.run("schedule", "s", rev, plan, "", following, due, 0)


def steer(verbs: Verbs, verb: str, *args: str | int, name: str = "s") -> str:
    return str(verbs.run("steer", name, verb, *args).decode())


def record(verbs: Verbs, name: str = "s") -> dict[str, str]:
    return {
        field.decode(): value.decode() for field, value in verbs.redis.hgetall(verbs.key(f"schedule:{name}")).items()
    }


def dues(verbs: Verbs) -> dict[str, float]:
    return {name.decode(): due for name, due in verbs.redis.zrange(verbs.key("schedule_dues"), 0, -1, withscores=True)}


def under_way(verbs: Verbs, name: str = "s") -> None:
    """As a leader leaves it that dies in the middle."""
    key = verbs.key(f"schedule:{name}")
    verbs.redis.hset(key, mapping={"firing": "{}", "firing_task": "t"})


def test_a_new_schedule_waits_for_its_instant(verbs: Verbs) -> None:
    before = verbs.now()
    with verbs.hearing("planned") as hear:
        assert add(verbs, following=FAR, due=FAR + 5) == [b"OK", 1]
        assert hear() == [b"s"]
    found = record(verbs)
    assert before <= int(found.pop("created_at")) == int(found.pop("changed_at")) <= verbs.now()
    assert found == {"plan": PLAN, "rev": "1", "next": str(FAR), "due": str(FAR + 5)}
    assert dues(verbs) == {"s": FAR + 5}
    assert verbs.redis.zrange(verbs.key("schedules"), 0, -1) == [b"s"]


def test_a_new_one_may_begin_paused(verbs: Verbs) -> None:
    add(verbs, paused=True)
    assert record(verbs)["paused"] == "1"
    assert dues(verbs) == {}


def test_a_name_is_taken_once(verbs: Verbs) -> None:
    add(verbs)
    before = record(verbs)
    assert add(verbs, due=1) == b"EXISTS"
    assert (record(verbs), dues(verbs)) == (before, {"s": FAR})


def test_there_are_so_many_at_most(verbs: Verbs) -> None:
    assert add(verbs, "a", most=1) == [b"OK", 1]
    assert add(verbs, "b", most=1) == [b"FULL", 1]
    assert record(verbs, "b") == {}


def test_a_change_is_of_what_was_read(verbs: Verbs) -> None:
    add(verbs)
    assert change(verbs, 1, '{"new":1}', 77, 78) == [b"OK", 2]
    assert (record(verbs)["plan"], record(verbs)["next"], dues(verbs)) == ('{"new":1}', "77", {"s": 78})
    assert change(verbs, 1, "{}") == b"CHANGED"
    assert record(verbs)["plan"] == '{"new":1}'


def test_a_change_of_what_it_sends_leaves_when(verbs: Verbs) -> None:
    add(verbs)
    assert change(verbs, 1, '{"new":1}') == [b"OK", 2]
    assert (record(verbs)["next"], dues(verbs)) == (str(FAR), {"s": FAR})


def test_a_change_ends_trouble_and_what_put_it_off(verbs: Verbs) -> None:
    add(verbs, due=5)
    verbs.run("fire", 1, "trouble", "s", "no worker", 60_000)
    change(verbs, 1, '{"new":1}')
    assert "trouble" not in record(verbs)
    assert dues(verbs) == {"s": 5}


def test_a_change_of_a_paused_one_lets_it_sleep(verbs: Verbs) -> None:
    add(verbs, paused=True)
    change(verbs, 1, PLAN, 77, 78)
    assert (record(verbs)["due"], dues(verbs)) == ("78", {})


def test_a_change_waits_for_the_run_under_way(verbs: Verbs) -> None:
    add(verbs, due=5)
    under_way(verbs)
    change(verbs, 1, PLAN, FAR, FAR)
    assert (record(verbs)["due"], dues(verbs)) == (str(FAR), {"s": 5})


def test_what_is_gone_is_not_changed(verbs: Verbs) -> None:
    assert change(verbs, 1) == b"GONE"
    assert [steer(verbs, *args) for args in (("pause",), ("resume", 1, 1, 1), ("remove",), ("ran", "t", "eve"))] == [
        "GONE"
    ] * 4
    assert verbs.redis.keys("*") == []


def test_a_full_redis_takes_no_schedule_in_and_lets_go_of_those_it_has(verbs: Verbs) -> None:
    add(verbs)
    verbs.redis.config_set("maxmemory", 1)
    try:
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            add(verbs, "t")
        assert steer(verbs, "pause") == "OK"
        assert steer(verbs, "remove") == "OK"
    finally:
        verbs.redis.config_set("maxmemory", 0)


def test_a_paused_one_is_not_due_and_nothing_that_was_read_of_it_holds(verbs: Verbs) -> None:
    add(verbs)
    assert steer(verbs, "pause") == "OK"
    assert (record(verbs)["paused"], record(verbs)["rev"], dues(verbs)) == ("1", "2", {})
    assert steer(verbs, "pause") == "OK"
    assert record(verbs)["rev"] == "2", "twice is once"


def test_a_pause_lets_the_run_under_way_be_carried_out(verbs: Verbs) -> None:
    add(verbs, due=5)
    under_way(verbs)
    steer(verbs, "pause")
    assert dues(verbs) == {"s": 5}


def test_a_resumed_one_goes_on_from_now(verbs: Verbs) -> None:
    add(verbs, due=5)
    steer(verbs, "pause")
    with verbs.hearing("planned") as hear:
        assert steer(verbs, "resume", 2, 77, 78) == "OK"
        assert hear() == [b"s"]
    assert (record(verbs)["next"], record(verbs)["rev"], dues(verbs)) == ("77", "3", {"s": 78})
    assert "paused" not in record(verbs)


def test_a_resume_is_of_what_was_read(verbs: Verbs) -> None:
    add(verbs, paused=True)
    change(verbs, 1)
    assert steer(verbs, "resume", 1, 77, 78) == "CHANGED"
    assert record(verbs)["paused"] == "1"


def test_a_resume_of_one_that_is_not_paused_moves_nothing(verbs: Verbs) -> None:
    add(verbs)
    before = record(verbs)
    assert steer(verbs, "resume", 1, 77, 78) == "OK"
    assert (record(verbs), dues(verbs)) == (before, {"s": FAR})


def test_a_resume_waits_for_the_run_under_way(verbs: Verbs) -> None:
    add(verbs, due=5)
    under_way(verbs)
    steer(verbs, "pause")
    steer(verbs, "resume", 2, FAR, FAR)
    assert (record(verbs)["due"], dues(verbs)) == (str(FAR), {"s": 5})


def test_a_removed_one_leaves_nothing(verbs: Verbs) -> None:
    add(verbs)
    assert steer(verbs, "remove") == "OK"
    assert verbs.redis.keys("*") == []


def test_a_damaged_one_can_be_removed(verbs: Verbs) -> None:
    add(verbs)
    verbs.redis.delete(verbs.key("schedule:s"))
    verbs.redis.set(verbs.key("schedule:s"), "no hash")
    assert steer(verbs, "remove") == "OK"
    assert verbs.redis.keys("*") == []


def test_a_run_by_hand_is_noted_and_moves_nothing(verbs: Verbs) -> None:
    add(verbs)
    before = record(verbs)
    assert steer(verbs, "ran", "t1", "eve") == "OK"
    after = record(verbs)
    assert verbs.now() - int(after.pop("ran_at")) < 60_000
    assert (after.pop("ran_task"), after.pop("ran_by")) == ("t1", "eve")
    assert (after, dues(verbs)) == (before, {"s": FAR})
