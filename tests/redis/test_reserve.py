"""reserve, and what accept and retire do with a reserved id: a key stands for one command and one id (P16, P17)."""

from typing import Any

import pytest
import redis

from tests.redis.audit import faults, leftovers, read
from tests.redis.scripts_client import FAR, HOUR_MS, New, Verbs
from tests.waiting import until

Reserved = tuple[str, str, str, int]


def ask(verbs: Verbs, task_id: str, key: str = "a:k", *, hash_: str = "h", keep_ms: int = HOUR_MS) -> Any:
    return verbs.run("reserve", key, hash_, task_id, f"a:{task_id}", keep_ms)


def reserve(verbs: Verbs, task_id: str, key: str = "a:k", *, keep_ms: int = HOUR_MS) -> Reserved:
    """The word, the id, its target and until when."""
    word, reserved, target, until_ms = ask(verbs, task_id, key, keep_ms=keep_ms)
    return word.decode(), reserved.decode(), target.decode(), until_ms


def ended(verbs: Verbs, task_id: str, used_until: int | None) -> None:
    """A mission that has run, and whose retention has passed."""
    assert verbs.accept(New(task_id, used_until=used_until)) == ["OK"]
    verbs.commit("w1", verbs.take("w1")[task_id].write("end"))
    verbs.set_score("retire", task_id, 1)


def test_a_key_keeps_the_first_id_that_was_reserved_under_it(verbs: Verbs) -> None:
    before = verbs.now()
    word, task_id, target, until_ms = reserve(verbs, "m")

    assert (word, task_id, target) == ("OK", "m", "a:m")
    assert before + HOUR_MS <= until_ms <= verbs.now() + HOUR_MS
    assert reserve(verbs, "other") == ("REPEATED", "m", "a:m", until_ms)
    assert reserve(verbs, "n", "a:another")[1] == "n"
    assert leftovers(read(verbs.redis)) == []


def test_the_key_of_another_command_is_refused(verbs: Verbs) -> None:
    first = reserve(verbs, "m")

    assert ask(verbs, "other", hash_="another") == b"MISMATCH"
    assert ask(verbs, "other", hash_="another", keep_ms=0) == b"MISMATCH"
    assert reserve(verbs, "other")[1:] == first[1:]


def test_who_only_looks_reserves_nothing(verbs: Verbs) -> None:
    assert ask(verbs, "", keep_ms=0) == b"NONE"
    assert read(verbs.redis).keys == {}
    reserve(verbs, "m")
    assert reserve(verbs, "", keep_ms=0)[:2] == ("REPEATED", "m")


def test_a_key_is_free_again_when_its_time_has_passed(verbs: Verbs) -> None:
    reserve(verbs, "m", keep_ms=1)

    until(lambda: not verbs.redis.exists(verbs.key("idem:a:k")))
    assert reserve(verbs, "n")[:2] == ("OK", "n")


def test_a_repeat_does_not_keep_the_key_longer(verbs: Verbs) -> None:
    until_ms = reserve(verbs, "m", keep_ms=HOUR_MS)[3]

    assert reserve(verbs, "m", keep_ms=2 * HOUR_MS)[3] == until_ms
    assert verbs.redis.pexpiretime(verbs.key("idem:a:k")) == until_ms


def test_a_full_redis_keeps_no_key(verbs: Verbs) -> None:
    verbs.redis.config_set("maxmemory", 1)
    try:
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            ask(verbs, "m")
    finally:
        verbs.redis.config_set("maxmemory", 0)
    assert reserve(verbs, "n")[0] == "OK"


def test_a_retired_mission_with_a_reserved_id_is_not_taken_in_again(verbs: Verbs) -> None:
    used_until = verbs.now() + HOUR_MS
    ended(verbs, "m", used_until)
    created = verbs.record("m")["created_at"]
    assert verbs.retire() == (1, -1)

    assert verbs.place("m") == "gone"
    assert verbs.accept(New("m", used_until=used_until)) == ["DUPLICATE"]
    assert verbs.redis.get(verbs.key("used:m")).decode() == created
    assert verbs.redis.pexpiretime(verbs.key("used:m")) == used_until
    assert leftovers(read(verbs.redis)) == []
    assert verbs.place("m") == "gone", "the bare id is no mission"
    assert verbs.cancel("m")[0] == "GONE"


def test_a_mission_is_known_by_its_record_longer_than_by_its_key(verbs: Verbs) -> None:
    assert verbs.accept(New("m", used_until=verbs.now() + HOUR_MS)) == ["OK"]

    assert verbs.accept(New("m", used_until=1)) == ["DUPLICATE"]


def test_an_id_whose_key_has_lapsed_is_too_old(verbs: Verbs) -> None:
    """Its mission may have run, ended and been forgotten, the bare id too: nobody could tell."""
    assert verbs.accept(New("m", used_until=verbs.now()), New("n")) == ["TOO_OLD", "OK"]

    assert verbs.place("m") == "gone"
    assert faults(read(verbs.redis)) == []


@pytest.mark.parametrize("used_until", [None, 1], ids=["made for this mission alone", "too old by now"])
def test_an_id_that_cannot_come_again_leaves_nothing(verbs: Verbs, used_until: int | None) -> None:
    ended(verbs, "m", None if used_until is None else FAR)
    if used_until is not None:
        verbs.redis.hset(verbs.key("mission:m"), "used_until", used_until)

    assert verbs.retire() == (1, -1)
    assert verbs.redis.keys("*used*") == []
