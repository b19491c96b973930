"""`fire`: a run begins once, under the term of the latest leader, and stays under way until it is done."""

from typing import Any

import pytest

from tests.redis.scripts_client import FAR, Verbs
from tests.redis.test_schedule import add, change, dues, record, steer

ROW = '{"task_id":"t"}'


def fire(verbs: Verbs, what: str, *args: str | int, term: int = 7) -> Any:
    answer = verbs.run("fire", term, what, *args)
    return answer.decode() if isinstance(answer, bytes) else answer


def due(verbs: Verbs, most: int = 50) -> tuple[dict[str, Any], int]:
    """Those that are due, as they are read; ms until the next one."""
    word, now, left, *found = fire(verbs, "due", most)
    assert word == b"OK"
    assert abs(now - verbs.now()) < 60_000
    return {
        name.decode(): fields.decode()
        if isinstance(fields, bytes)
        else {one.decode(): other.decode() for one, other in zip(fields[::2], fields[1::2], strict=True)}
        for name, fields in found
    }, left


def begin(verbs: Verbs, task: str = "t", *, rev: int = 1, expected: int = 5, following: int | str = FAR) -> str:
    row = ROW if task else ""
    return str(fire(verbs, "begin", "s", rev, expected, task, row, following, following))


def test_what_is_due_is_told_the_oldest_first_and_so_many(verbs: Verbs) -> None:
    for n, name in enumerate(("c", "a", "b")):
        add(verbs, name, due=10 - n)
    add(verbs, "later", due=verbs.now() + 3_600_000)
    found, left = due(verbs, 2)
    assert list(found) == ["b", "a"]
    assert found["b"] == record(verbs, "b")
    assert 3_500_000 < left <= 3_600_000


def test_nothing_is_due_before_its_time(verbs: Verbs) -> None:
    assert due(verbs) == ({}, -1)
    add(verbs, due=FAR)
    found, left = due(verbs)
    assert (found, left > 1_000_000) == ({}, True)


def test_an_index_that_disagrees_is_dropped(verbs: Verbs) -> None:
    add(verbs, due=5)
    verbs.redis.delete(verbs.key("schedule:s"))
    assert due(verbs) == ({}, -1)
    assert verbs.redis.keys("*schedule*") == []


@pytest.mark.parametrize("field", ["paused", "due"])
def test_what_is_paused_or_has_no_instant_is_not_due(verbs: Verbs, field: str) -> None:
    add(verbs, due=5)
    verbs.redis.hset(verbs.key("schedule:s"), field, "1" if field == "paused" else "")
    assert due(verbs) == ({}, -1)
    assert dues(verbs) == {}


def test_a_damaged_one_is_told_and_hides_no_other(verbs: Verbs) -> None:
    add(verbs, "a", due=4)
    add(verbs, "b", due=5)
    verbs.redis.delete(verbs.key("schedule:a"))
    verbs.redis.set(verbs.key("schedule:a"), "no hash")
    found, _ = due(verbs)
    assert "WRONGTYPE" in found["a"]
    assert found["b"]["due"] == "5"


def test_b39_a_run_begins_once_whoever_comes(verbs: Verbs) -> None:
    add(verbs, following=5, due=5)
    assert begin(verbs) == "OK"
    found = record(verbs)
    assert (found["firing"], found["firing_task"], found["next"], found["due"]) == (ROW, "t", str(FAR), str(FAR))
    assert begin(verbs) == "CHANGED"
    assert begin(verbs, "u", expected=FAR) == "CHANGED", "one run at a time"
    assert due(verbs)[0]["s"]["firing"] == ROW, "until it is done, whoever leads finds it"


def test_b37_a_run_that_is_done_comes_no_second_time(verbs: Verbs) -> None:
    add(verbs, following=5, due=5)
    begin(verbs)
    assert fire(verbs, "done", "s", "t", 5) == "OK"
    found = record(verbs)
    assert (found["last"], found["last_task"], found["fired"]) == ("5", "t", "1")
    assert verbs.now() - int(found["last_at"]) < 60_000
    assert "firing" not in found
    assert dues(verbs) == {"s": FAR}
    assert fire(verbs, "done", "s", "t", 5) == "CHANGED"
    assert begin(verbs) == "CHANGED", "of this instant there is no other run"
    assert record(verbs)["fired"] == "1"


def test_only_the_run_under_way_is_done(verbs: Verbs) -> None:
    add(verbs, following=5, due=5)
    begin(verbs)
    assert fire(verbs, "done", "s", "other", 5) == "CHANGED"
    assert record(verbs)["firing_task"] == "t"


def test_what_has_changed_or_is_paused_since_it_was_read_does_not_begin(verbs: Verbs) -> None:
    add(verbs, following=5, due=5)
    change(verbs, 1)
    assert begin(verbs) == "CHANGED"
    assert begin(verbs, rev=2, expected=4) == "CHANGED"
    steer(verbs, "pause")
    assert begin(verbs, rev=2) == "CHANGED"
    assert "firing" not in record(verbs)
    assert begin(verbs, rev=3, expected=6) == "CHANGED"


def test_instants_that_are_left_out_are_passed(verbs: Verbs) -> None:
    add(verbs, following=5, due=5)
    assert begin(verbs, "") == "OK"
    assert (record(verbs)["next"], dues(verbs)) == (str(FAR), {"s": FAR})
    assert "firing" not in record(verbs)


def test_a_schedule_without_a_next_instant_sleeps(verbs: Verbs) -> None:
    add(verbs, following=5, due=5)
    begin(verbs, following="")
    fire(verbs, "done", "s", "t", 5)
    assert dues(verbs) == {}
    assert record(verbs)["next"] == ""


def test_a_pause_within_a_run_holds_after_it(verbs: Verbs) -> None:
    add(verbs, following=5, due=5)
    begin(verbs)
    steer(verbs, "pause")
    fire(verbs, "done", "s", "t", 5)
    assert dues(verbs) == {}


def test_what_is_removed_within_a_run_stays_so(verbs: Verbs) -> None:
    add(verbs, following=5, due=5)
    begin(verbs)
    steer(verbs, "remove")
    assert fire(verbs, "done", "s", "t", 5) == "GONE"
    assert fire(verbs, "begin", "s", 1, 5, "t", ROW, FAR, FAR) == "GONE"
    assert fire(verbs, "trouble", "s", "why", 1) == "OK"
    assert verbs.redis.keys("*schedule*") == []


def test_trouble_is_told_and_puts_it_off(verbs: Verbs) -> None:
    add(verbs, following=5, due=5)
    assert fire(verbs, "trouble", "s", "no worker", 60_000) == "OK"
    assert record(verbs)["trouble"] == "no worker"
    assert due(verbs)[0] == {}
    assert 50_000 < dues(verbs)["s"] - verbs.now() <= 60_000
    begin(verbs)
    fire(verbs, "done", "s", "t", 5)
    assert "trouble" not in record(verbs)


def test_trouble_with_a_damaged_one_puts_it_off_too(verbs: Verbs) -> None:
    add(verbs, following=5, due=5)
    verbs.redis.delete(verbs.key("schedule:s"))
    verbs.redis.set(verbs.key("schedule:s"), "no hash")
    assert fire(verbs, "trouble", "s", "damaged", 60_000) == "OK"
    assert due(verbs)[0] == {}


def test_b38_a_leader_of_an_earlier_term_fires_nothing(verbs: Verbs) -> None:
    add(verbs, following=5, due=5)
    assert due(verbs)[0] != {}
    assert fire(verbs, "due", 50, term=8)[0] == b"OK"
    for args in (
        ("due", 50),
        ("begin", "s", 1, 5, "t", ROW, FAR, FAR),
        ("done", "s", "t", 5),
        ("trouble", "s", "why", 9),
    ):
        assert fire(verbs, *args) == [b"FENCED", 8]
    assert (record(verbs)["next"], dues(verbs)) == ("5", {"s": 5})


def test_the_term_of_another_office_is_another_one(verbs: Verbs) -> None:
    verbs.redis.hset(verbs.key("terms"), "audit", FAR)
    assert fire(verbs, "due", 50)[0] == b"OK"


def test_a_full_redis_lets_runs_end(verbs: Verbs) -> None:
    add(verbs, following=5, due=5)
    verbs.redis.config_set("maxmemory", 1)
    try:
        assert begin(verbs) == "OK"
        assert fire(verbs, "done", "s", "t", 5) == "OK"
    finally:
        verbs.redis.config_set("maxmemory", 0)


def mend(verbs: Verbs, after: str = "", most: int = 50) -> tuple[str, list[str]]:
    word, name, *missing = fire(verbs, "mend", after, most)
    assert word == b"OK"
    return name.decode(), [one.decode() for one in missing]


def test_what_fell_out_of_the_dues_is_put_back(verbs: Verbs) -> None:
    for name in ("a", "b", "c", "d", "e"):
        add(verbs, name, due=7, paused=name == "c")
    verbs.redis.hset(verbs.key("schedule:d"), mapping={"firing": "{}", "paused": "1"})
    verbs.redis.hset(verbs.key("schedule:e"), "due", "")
    verbs.redis.delete(verbs.key("schedule_dues"))
    assert mend(verbs) == ("", ["a", "b", "d"])
    found = dues(verbs)
    assert (found.pop("a"), found.pop("b")) == (7, 7)
    assert abs(found.pop("d") - verbs.now()) < 60_000
    assert found == {}
    assert mend(verbs) == ("", [])


def test_what_stands_among_the_dues_is_left_as_it_is(verbs: Verbs) -> None:
    add(verbs, due=5)
    verbs.redis.zadd(verbs.key("schedule_dues"), {"s": FAR})
    assert mend(verbs) == ("", [])
    assert dues(verbs) == {"s": FAR}, "trouble has put it off"


def test_they_are_mended_a_few_at_a_time_and_a_damaged_one_is_passed_over(verbs: Verbs) -> None:
    for name in ("a", "b", "c"):
        add(verbs, name, due=7)
    verbs.redis.delete(verbs.key("schedule_dues"), verbs.key("schedule:a"))
    verbs.redis.set(verbs.key("schedule:a"), "no hash")
    assert mend(verbs, most=2) == ("b", ["b"])
    assert mend(verbs, "b", 2) == ("", ["c"])


def test_b42_a_run_that_is_dropped_was_none(verbs: Verbs) -> None:
    add(verbs, following=5, due=5)
    assert begin(verbs) == "OK"
    assert fire(verbs, "drop", "s", "another") == "CHANGED"
    assert "firing" in record(verbs)
    assert fire(verbs, "drop", "s", "t") == "OK"
    after = record(verbs)
    assert not {"firing", "firing_task", "fired", "last"} & after.keys()
    assert dues(verbs) == {"s": FAR}
