"""Progress has no seq and is never waited for: the newest is told, in its place among the events, and never twice."""

import pytest

from frontend_loop.session import News, Watch
from tests.pure.telling import acked, event, events, final, hint, passing, progress, result


def test_progress_is_told_when_it_is_heard_once_and_needs_no_reading() -> None:
    watch = acked()
    assert watch.hear([b"P" + progress(1)]) == [passing(1, 0)]
    assert watch.hear([b"P" + progress(1)]) == []
    assert watch.hear([b"P" + progress(1, at=5)]) == [], "it says nothing new"
    assert watch.hear([*hint(1), b"P" + progress(6), *hint(2)]) == [*events(1, 2), passing(6, 2)]
    assert watch.ask() is None


def test_only_the_newest_progress_of_a_hint_is_told() -> None:
    watch = acked()
    assert watch.hear([b"P" + progress(n) for n in (1, 3, 2)]) == [passing(3, 0)]
    assert watch.hear([b"P" + progress(2)]) == []


def test_progress_waits_for_the_ack() -> None:
    watch = Watch(None)
    assert watch.hear([b"P" + progress(1), *hint(1)]) == []
    assert watch.ack() == [*events(1), passing(1, 1)]


def test_progress_waits_for_the_events_before_it_and_keeps_none_waiting() -> None:
    watch = acked()
    assert watch.hear([*hint(2), b"P" + progress(1)]) == []
    assert watch.hear([b"P" + progress(2)]) == []
    assert watch.hear(hint(1)) == [*events(1, 2), passing(2, 2)]
    assert watch.hear([*hint(4), b"P" + progress(3)]) == []
    assert watch.ask() == 2
    assert watch.read([event(3), event(4)], None, whole=True, progress=progress(4)) == [*events(3, 4), passing(4, 4)]


def test_a_watch_tells_the_newest_progress_after_the_last_slice() -> None:
    watch = Watch(0)
    assert watch.hear([b"P" + progress(1)]) == []
    watch.ask()
    assert watch.read([event(1)], None, whole=False, progress=progress(2)) == events(1)
    watch.ask()
    assert watch.read([event(2)], None, whole=True, progress=progress(2)) == [*events(2), passing(2, 2)]


def test_a_reading_brings_what_no_hint_told_and_repeats_nothing() -> None:
    watch = acked()
    watch.hear([b"P" + progress(1)])
    for known, told in ((1, []), (2, [passing(2, 0)]), (2, [])):
        watch.doubt()
        watch.ask()
        assert watch.read([], None, whole=True, progress=progress(known)) == told


def test_a_late_hint_does_not_turn_progress_back() -> None:
    watch = Watch(0)
    watch.ask()
    assert watch.hear([b"P" + progress(1)]) == []
    assert watch.read([], None, whole=True, progress=progress(2)) == [passing(2, 0)]
    assert watch.hear([b"P" + progress(1)]) == []
    watch.doubt()
    watch.ask()
    assert watch.hear([b"P" + progress(4)]) == []
    assert watch.read([], None, whole=True, progress=progress(3)) == [passing(4, 0)]


def test_what_a_reading_says_holds_even_if_redis_forgot_what_was_told() -> None:
    watch = acked()
    watch.hear([b"P" + progress(9)])
    watch.doubt()
    watch.ask()
    assert watch.read([], None, whole=True, progress=progress(2)) == [passing(2, 0)]
    assert watch.hear([b"P" + progress(3)]) == [passing(3, 0)]
    assert watch.hear([*hint(2), b"P" + progress(4)]) == []
    watch.ask()
    assert watch.read([], None, whole=True, progress=None) == []


def test_a_record_that_does_not_say_when_gives_way_to_what_was_heard_since() -> None:
    unknown = b'{"status":"RUNNING","state":"S","at":null,"progress":{"done":1}}'
    watch = Watch(0)
    watch.ask()
    assert watch.read([], None, whole=True, progress=unknown) == [News(0, unknown, passing=True)]
    watch.doubt()
    watch.ask()
    watch.hear([b"P" + progress(2)])
    assert watch.read([], None, whole=True, progress=unknown) == [passing(2, 0)]


def test_no_progress_follows_the_result() -> None:
    watch = acked()
    assert watch.hear([b"P" + progress(1), *hint(1, end=True), b"P" + progress(2)]) == [*events(1), final(1)]
    assert watch.hear([b"P" + progress(3)]) == []
    late = Watch(0)
    late.ask()
    late.hear([b"P" + progress(1)])
    assert late.read([event(1)], result(1), whole=True, progress=progress(2)) == [*events(1), final(1)]


@pytest.mark.parametrize("line", [b"P", b"P{}", b'P{"status":"RUNNING"}', b"Pnonsense", b'P{"status":1,"progress":3}'])
def test_progress_that_cannot_be_read_counts_as_lost(line: bytes) -> None:
    watch = acked()
    assert watch.hear([line, *hint(1)]) == events(1)
    assert watch.ask() == 1
