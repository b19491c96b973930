"""deposit: a recording lies where its mission will, for as long as that may need it and no longer."""

import contextlib
from collections.abc import Iterator

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


def test_what_waits_no_longer_makes_room(verbs: Verbs) -> None:
    deposit(verbs, "m", most=LEAST)
    deposit(verbs, "n", most=2 * LEAST)
    verbs.accept(New("m"))
    assert deposit(verbs, "o", most=2 * LEAST) == "CROWDED"
    assert verbs.cancel("m") == ("OK", "CANCELLED")
    assert deposit(verbs, "o", most=2 * LEAST) == "OK"
    assert verbs.redis.zcard(verbs.key("recordings")) == 2


def test_the_list_of_them_goes_with_the_last_one(verbs: Verbs) -> None:
    deposit(verbs, "m", keep_ms=KEEP_MS)
    deposit(verbs, "n", keep_ms=1_000)
    assert 1_000 < int(verbs.redis.pttl(verbs.key("recordings"))) <= KEEP_MS
