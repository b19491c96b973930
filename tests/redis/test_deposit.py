"""deposit: a recording lies where its mission will, for as long as that may need it and no longer."""

import contextlib
from collections.abc import Iterator
from typing import Literal

import pytest

from tests.redis.scripts_client import New, Verbs

KEEP_MS = 60_000
WAV = b"RIFF\x00\xff\r\n and so on"


LEAST = 65_536
"""What a small one counts for."""


def deposit(  # noqa: PLR0917  of the verb
    verbs: Verbs,
    task_id: str = "m",
    recording: bytes = WAV,
    share: float = 0.8,
    most: int = 10**9,
    keep_ms: int = KEEP_MS,
) -> str:
    return str(verbs.run("deposit", task_id, keep_ms, share, most, recording).decode())


def kept(verbs: Verbs, task_id: str = "m") -> bytes | None:
    found: bytes | None = verbs.redis.get(verbs.key(f"audio:{task_id}"))
    return found


@contextlib.contextmanager
def _maxmemory(verbs: Verbs, size: int) -> Iterator[None]:
    """The server is others' too."""
    verbs.redis.config_set("maxmemory", size)
    try:
        yield
    finally:
        verbs.redis.config_set("maxmemory", 0)


def test_a_recording_expires_by_itself(verbs: Verbs) -> None:
    assert deposit(verbs) == "OK"
    assert kept(verbs) == WAV
    assert 0 < int(verbs.redis.pttl(verbs.key("audio:m"))) <= KEEP_MS


def test_a_mission_that_was_taken_in_has_had_its_recording(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    assert deposit(verbs) == "DUPLICATE"
    assert kept(verbs) is None


def test_one_that_was_retired_has_none_any_more(verbs: Verbs) -> None:
    verbs.redis.set(verbs.key("used:m"), 1, px=KEEP_MS)
    assert deposit(verbs) == "DUPLICATE"
    assert kept(verbs) is None


def test_the_end_of_its_mission_is_the_end_of_a_recording(verbs: Verbs) -> None:
    deposit(verbs)
    verbs.accept(New("m"))
    taken = verbs.take("w")["m"]
    assert verbs.commit("w", taken.write("stay"))[0].word == "OK"
    assert kept(verbs) == WAV
    assert verbs.commit("w", taken.write("end", rev=1))[0].word == "OK"
    assert kept(verbs) is None


def test_so_is_an_end_that_no_worker_makes(verbs: Verbs) -> None:
    deposit(verbs)
    verbs.accept(New("m"))
    assert verbs.cancel("m") == ("OK", "CANCELLED")
    assert kept(verbs) is None


def test_beyond_its_share_of_the_memory_none_is_taken(verbs: Verbs) -> None:
    used = int(verbs.redis.info("memory")["used_memory"])
    with _maxmemory(verbs, used * 2):
        assert deposit(verbs, share=0.1) == "FULL"
        assert kept(verbs) is None
        verbs.accept(New("n"))  # there is room for commands
        assert deposit(verbs, share=1.0) == "OK"


def test_beyond_what_all_of_them_may_have_none_is_taken(verbs: Verbs) -> None:
    large = bytes(2 * LEAST)
    assert [deposit(verbs, id_, large, most=5 * LEAST) for id_ in ("a", "b", "c")] == ["OK", "OK", "CROWDED"]
    assert kept(verbs, "c") is None
    verbs.accept(New("n"))  # there is room for commands
    assert deposit(verbs, "c", most=5 * LEAST) == "OK"


def test_small_ones_count_as_well(verbs: Verbs) -> None:
    assert deposit(verbs, "d", most=LEAST - 1) == "CROWDED"
    assert [deposit(verbs, id_, most=2 * LEAST) for id_ in ("a", "b", "c")] == ["OK", "OK", "CROWDED"]


def test_who_says_it_again_has_its_own_place(verbs: Verbs) -> None:
    assert [deposit(verbs, most=LEAST) for _ in range(2)] == ["OK", "OK"]


def test_who_says_it_again_and_is_refused_is_counted_still(verbs: Verbs) -> None:
    assert [deposit(verbs, id_, most=2 * LEAST) for id_ in ("m", "n")] == ["OK", "OK"]
    assert deposit(verbs, "m", most=LEAST) == "CROWDED"
    assert kept(verbs) == WAV
    assert deposit(verbs, "o", most=2 * LEAST) == "CROWDED"


def counted(verbs: Verbs) -> tuple[list[bytes], dict[bytes, int]]:
    """The list of them, and what each counts for."""
    listed = verbs.redis.zrange(verbs.key("recordings"), 0, -1)
    return list(listed), {id_: int(size) for id_, size in verbs.redis.hgetall(verbs.key("recorded")).items()}


@pytest.mark.parametrize("end", ["commit", "cancel"])
def test_what_waits_no_longer_makes_room(verbs: Verbs, end: Literal["commit", "cancel"]) -> None:
    deposit(verbs, "m", most=LEAST)
    deposit(verbs, "n", bytes(LEAST + 1), most=3 * LEAST)
    verbs.accept(New("m"))
    assert deposit(verbs, "o", most=3 * LEAST) == "CROWDED"
    if end == "commit":
        assert verbs.commit("w", verbs.take("w")["m"].write("end"))[0].word == "OK"
    else:
        assert verbs.cancel("m") == ("OK", "CANCELLED")
    assert deposit(verbs, "o", most=3 * LEAST) == "OK"
    assert counted(verbs) == ([b"n", b"o"], {b"": 2 * LEAST + 1, b"n": LEAST + 1, b"o": LEAST})


def test_an_end_without_a_recording_is_one_too(verbs: Verbs) -> None:
    deposit(verbs, "n")
    verbs.accept(New("m"))
    taken = verbs.take("w")["m"]
    assert verbs.cancel("m")[0] == "OK"
    assert verbs.commit("w", taken.write("end", consumed=1))[0].word == "OK"
    assert counted(verbs) == ([b"n"], {b"": LEAST, b"n": LEAST})


def test_one_that_lapses_makes_room(verbs: Verbs) -> None:
    deposit(verbs, "long")
    deposit(verbs, "short", most=2 * LEAST)
    verbs.redis.zadd(verbs.key("recordings"), {"short": 1})  # its time is over
    assert deposit(verbs, "o", most=2 * LEAST) == "OK"
    assert counted(verbs) == ([b"long", b"o"], {b"": 2 * LEAST, b"long": LEAST, b"o": LEAST})


def test_the_list_of_them_goes_with_the_last_one(verbs: Verbs) -> None:
    deposit(verbs, "m", keep_ms=KEEP_MS)
    deposit(verbs, "n", keep_ms=1_000)
    for key in ("recordings", "recorded"):
        assert 1_000 < int(verbs.redis.pttl(verbs.key(key))) <= KEEP_MS


def test_the_list_goes_with_its_sum_and_not_before(verbs: Verbs) -> None:
    """Else what stood in it would count for as long as others come."""
    deposit(verbs, "m", keep_ms=KEEP_MS)
    verbs.accept(New("m"))
    assert verbs.cancel("m") == ("OK", "CANCELLED")
    deposit(verbs, "n", keep_ms=1_000)
    assert 1_000 < int(verbs.redis.pttl(verbs.key("recordings"))) <= KEEP_MS
