"""speak and listen: what is said lies in Redis until it is understood, one listens, and all of it goes by itself."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from tests.redis.scripts_client import HOUR_MS, Verbs
from tests.waiting import until

KEEP_MS, HOLD_MS = 200_000, 100_000
SHARE = 1.0
HEAD = '{"rate":16000}'


def speak(verbs: Verbs, verb: str, *args: str | bytes | int, id_: str = "s", share: float = SHARE) -> str:
    return str(verbs.run("speak", verb, id_, KEEP_MS, share, *args).decode())


def begin(verbs: Verbs, id_: str = "s") -> str:
    return speak(verbs, "open", "front", HEAD, id_=id_)


def push(verbs: Verbs, samples: bytes, most: int = 100, share: float = SHARE) -> str:
    return speak(verbs, "push", most, samples, share=share)


def take(verbs: Verbs, owner: str = "w", hold_ms: int = HOLD_MS, most: int = 10) -> list[bytes]:
    taken: list[bytes] = verbs.run("listen", "take", owner, hold_ms, most)
    return taken


def pull(verbs: Verbs, owner: str = "w", after: int = 0, hold_ms: int = HOLD_MS) -> Any:
    return verbs.run("listen", "pull", owner, hold_ms, "s", after)


def look(verbs: Verbs, *, ended: bool = False) -> Any:
    return verbs.run("listen", "look", "s", KEEP_MS, int(ended))


def say(verbs: Verbs, told: dict[str, Any], *, final: bool, owner: str = "w") -> str:
    return str(verbs.run("listen", "say", owner, "s", json.dumps(told), int(final)).decode())


def drop(verbs: Verbs) -> None:
    verbs.run("listen", "drop", "s")


def lapse(verbs: Verbs) -> None:
    """Make time pass for who listens."""
    verbs.set_score("streams", "s", 1)


def kept(verbs: Verbs) -> set[bytes]:
    return {key.rpartition(b"}:")[2] for key in verbs.redis.keys("*")}


@contextlib.contextmanager
def filled(verbs: Verbs) -> Iterator[None]:
    """Half of the memory is taken; the server is others' too."""
    verbs.redis.config_set("maxmemory", int(verbs.redis.info("memory")["used_memory"]) * 2)
    try:
        yield
    finally:
        verbs.redis.config_set("maxmemory", 0)


def test_what_is_said_is_had_by_who_listens_in_its_order(verbs: Verbs) -> None:
    assert begin(verbs) == "OK"
    assert [push(verbs, piece) for piece in (b"on", b"e ")] == ["OK", "OK"]
    assert take(verbs) == [b"s", HEAD.encode()]
    assert pull(verbs) == [b"OK", b"", [b"on", b"e "]]
    push(verbs, b"two")
    assert pull(verbs, after=2) == [b"OK", b"", [b"two"]]
    assert look(verbs, ended=True) == [b"OK", 0, b""]
    assert pull(verbs, after=3) == [b"OK", b"1", []]


def test_all_of_it_goes_by_itself(verbs: Verbs) -> None:
    begin(verbs)
    push(verbs, b"one")
    assert kept(verbs) == {b"stream:s", b"spoken:s", b"streams"}
    for key in kept(verbs):
        assert 0 < int(verbs.redis.pttl(verbs.key(key.decode()))) <= KEEP_MS


def test_it_stays_as_long_as_its_foreground_looks(verbs: Verbs) -> None:
    begin(verbs)
    push(verbs, b"one")
    for key in kept(verbs):
        verbs.redis.pexpire(verbs.key(key.decode()), HOUR_MS // 1000)
    look(verbs)
    for key in kept(verbs):
        assert int(verbs.redis.pttl(verbs.key(key.decode()))) > HOUR_MS // 1000


def test_who_speaks_is_kept_as_long_as_he_goes_on(verbs: Verbs) -> None:
    begin(verbs)
    verbs.redis.pexpire(verbs.key("stream:s"), HOUR_MS // 1000)
    push(verbs, b"one")
    assert int(verbs.redis.pttl(verbs.key("stream:s"))) > HOUR_MS // 1000


def test_one_listens_at_a_time_and_no_other_takes_part(verbs: Verbs) -> None:
    begin(verbs)
    assert take(verbs, "a")
    assert take(verbs, "b") == []
    assert pull(verbs, "b") == b"GONE"
    assert say(verbs, {"text": "no"}, final=True, owner="b") == "GONE"
    assert look(verbs)[2] == b""


def test_who_pulls_goes_on_to_hold_it(verbs: Verbs) -> None:
    begin(verbs)
    take(verbs, "a")
    lapse(verbs)
    assert pull(verbs, "a")[0] == b"OK"
    assert take(verbs, "b") == []


def test_of_one_who_died_another_takes_it_from_its_first_piece(verbs: Verbs) -> None:
    begin(verbs)
    push(verbs, b"one")
    take(verbs, "a")
    pull(verbs, "a")
    lapse(verbs)
    assert look(verbs)[1] > 0
    assert take(verbs, "b") == [b"s", HEAD.encode()]
    assert pull(verbs, "b")[2] == [b"one"]
    assert pull(verbs, "a") == b"GONE"


def test_who_quits_leaves_it_to_others_at_once(verbs: Verbs) -> None:
    begin(verbs)
    take(verbs, "a")
    verbs.run("listen", "quit", "b", "s")
    assert take(verbs, "b") == []
    with verbs.hearing("speaking") as hear:
        verbs.run("listen", "quit", "a", "s")
        assert hear() == [b"s"]
    assert take(verbs, "b")


def test_no_more_are_taken_than_were_asked_for(verbs: Verbs) -> None:
    for id_ in ("s", "t"):
        begin(verbs, id_)
    assert len(take(verbs, most=1)) == 2
    assert len(take(verbs, most=1)) == 2
    assert take(verbs, most=1) == []


def test_what_has_lapsed_is_taken_by_nobody(verbs: Verbs) -> None:
    begin(verbs)
    verbs.redis.delete(verbs.key("stream:s"))
    assert take(verbs) == []
    assert kept(verbs) == set()


def test_what_was_understood_stays_so_and_nobody_listens_any_more(verbs: Verbs) -> None:
    begin(verbs)
    push(verbs, b"one")
    take(verbs)
    with verbs.hearing("feed:front") as hear:
        assert say(verbs, {"partial": "o"}, final=False) == "OK"
        assert hear() == [b's\n{"partial": "o"}']
        assert look(verbs)[2] == b""
        assert say(verbs, {"text": "one"}, final=True) == "OK"
        assert hear() == [b's\n{"text": "one"}']
    assert look(verbs) == [b"OK", 0, b'{"text": "one"}']
    assert kept(verbs) == {b"stream:s"}
    assert pull(verbs) == b"GONE"
    assert say(verbs, {"text": "two"}, final=True) == "GONE"
    assert push(verbs, b"more") == "OVER"
    assert kept(verbs) == {b"stream:s"}


def test_what_comes_after_the_end_of_what_is_said_is_no_part_of_it(verbs: Verbs) -> None:
    begin(verbs)
    push(verbs, b"one")
    take(verbs)
    assert verbs.run("listen", "over", "another", "s") == b"GONE"
    assert push(verbs, b"two") == "OK"
    assert verbs.run("listen", "over", "w", "s") == b"OK"
    assert push(verbs, b"more") == "OVER"
    assert pull(verbs) == [b"OK", b"1", [b"one", b"two"]]
    assert say(verbs, {"text": "one two"}, final=True) == "OK"


def test_nothing_is_left_of_what_was_dropped(verbs: Verbs) -> None:
    begin(verbs)
    push(verbs, b"one")
    take(verbs)
    with verbs.hearing("ears:w") as hear:
        drop(verbs)
        assert hear() == [b"s"]
    assert kept(verbs) == set()
    assert (push(verbs, b"more"), look(verbs), pull(verbs)) == ("GONE", b"GONE", b"GONE")
    drop(verbs)


def test_who_may_listen_is_told_at_once_and_again_while_nobody_does(verbs: Verbs) -> None:
    with verbs.hearing("speaking") as hear:
        begin(verbs)
        assert hear() == [b"s"]
        lapse(verbs)
        alone = until(lambda: look(verbs)[1], what="nobody has listened for a while")
        assert alone > 0
        assert hear() == [b"s"]


def test_who_listens_is_told_of_more_and_of_the_end_once(verbs: Verbs) -> None:
    begin(verbs)
    take(verbs)
    with verbs.hearing("ears:w") as hear:
        push(verbs, b"one")
        assert hear() == [b"s"]
        look(verbs, ended=True)
        assert hear() == [b"s"]
        look(verbs, ended=True)
        assert hear(0.05) == []


def test_it_has_no_more_bytes_than_it_may(verbs: Verbs) -> None:
    begin(verbs)
    assert push(verbs, b"123", most=4) == "OK"
    assert push(verbs, b"45", most=4) == "LONG"
    take(verbs)
    assert pull(verbs)[2] == [b"123"]


def test_so_many_pieces_come_at_a_time_and_the_end_after_the_last(verbs: Verbs) -> None:
    begin(verbs)
    take(verbs)
    verbs.redis.rpush(verbs.key("spoken:s"), *[b"."] * 600)
    look(verbs, ended=True)
    first = pull(verbs)
    assert (first[1], len(first[2])) == (b"", 500)
    second = pull(verbs, after=500)
    assert (second[1], len(second[2])) == (b"1", 100)


def test_beyond_its_share_of_the_memory_nothing_is_taken(verbs: Verbs) -> None:
    begin(verbs)
    with filled(verbs):
        assert speak(verbs, "open", "front", HEAD, id_="t", share=0.1) == "FULL"
        assert push(verbs, b"one", share=0.1) == "FULL"
        assert push(verbs, b"one", share=1.0) == "OK"
    assert b"stream:t" not in kept(verbs)
