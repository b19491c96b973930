"""Whatever is lost, doubled, late or out of order: a client gets the log in order, then the result, each once.

Of progress it gets the newest, never an older one after it, and none after the result.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from frontend_loop.session import AHEAD, News, Watch, seq_of
from tests.pure.telling import acked, event, events, final, hint, progress, result

# What happens, one thing at a time


def test_hints_in_order_need_no_reading() -> None:
    watch = acked()
    assert watch.hear(hint(1)) == events(1)
    assert watch.hear(hint(2, 3, end=True)) == [*events(2, 3), final(3)]
    assert watch.done
    assert watch.ask() is None


def test_nothing_is_told_before_the_ack() -> None:
    watch = Watch(None)
    assert watch.hear(hint(1)) == []
    assert watch.hear(hint(2, end=True)) == []
    assert watch.ask() is None, "there is nothing to read that was not heard"
    assert watch.ack() == [*events(1, 2), final(2)]


def test_doubles_are_dropped() -> None:
    watch = acked()
    assert watch.hear(hint(1, 2)) == events(1, 2)
    assert watch.hear(hint(1, 2)) == []
    assert watch.hear(hint(2, 3)) == events(3)
    assert watch.ask() is None


def test_a_gap_is_read_from_the_cursor_on() -> None:
    watch = acked()
    watch.hear(hint(1))
    assert watch.hear(hint(3)) == []
    assert watch.ask() == 1
    assert watch.ask() is None, "one reading at a time"
    assert watch.read([event(2), event(3)], None, whole=True) == events(2, 3)
    assert watch.ask() is None


def test_hints_that_overtake_a_reading_wait_for_it() -> None:
    watch = acked()
    watch.hear(hint(2))
    assert watch.ask() == 0
    assert watch.hear(hint(3)) == []
    assert watch.hear(hint(4, end=True)) == []
    assert watch.read([event(1), event(2)], None, whole=True) == [*events(1, 2, 3, 4), final(4)]


def test_the_result_waits_for_its_event() -> None:
    watch = acked()
    assert watch.hear([b"R" + result(2)]) == []
    assert watch.ask() == 0
    assert watch.read([event(1), event(2)], result(2), whole=True) == [*events(1, 2), final(2)]


def test_the_result_is_told_once() -> None:
    watch = acked()
    assert watch.hear(hint(1, end=True))[-1] == final(1)
    assert watch.hear(hint(1, end=True)) == []
    watch.doubt()
    assert watch.ask() is None
    assert watch.read([], result(1), whole=True) == []


def test_a_watch_begins_with_a_reading() -> None:
    watch = Watch(2)
    assert watch.hear(hint(3)) == [], "what the client misses may lie before it"
    assert watch.ask() == 2
    assert watch.read([event(3)], None, whole=True) == events(3)
    assert watch.hear(hint(4)) == events(4)


def test_a_watch_of_what_has_ended_gets_the_rest_and_the_result() -> None:
    watch = Watch(1)
    watch.ask()
    assert watch.read([event(2), event(3)], result(3), whole=True) == [*events(2, 3), final(3)]


def test_a_client_that_has_all_events_gets_the_result_alone() -> None:
    watch = Watch(3)
    watch.ask()
    assert watch.read([], result(3), whole=True) == [final(3)]


def test_a_long_log_is_read_slice_by_slice_and_the_result_comes_last() -> None:
    watch = Watch(0)
    assert watch.ask() == 0
    assert watch.read([event(1), event(2)], result(3), whole=False) == events(1, 2)
    assert watch.ask() == 2
    assert watch.read([event(3)], result(3), whole=True) == [*events(3), final(3)]


def test_a_doubt_is_cleared_by_reading() -> None:
    watch = acked()
    watch.doubt()
    assert watch.ask() == 0
    assert watch.read([event(1)], None, whole=True) == events(1)
    assert watch.ask() is None


def test_a_doubt_during_a_reading_is_not_cleared_by_it() -> None:
    watch = Watch(0)
    watch.ask()
    watch.doubt()
    assert watch.ask() is None
    watch.read([], None, whole=True)
    assert watch.ask() == 0


def test_a_reading_that_failed_is_asked_for_again() -> None:
    watch = Watch(4)
    assert watch.ask() == 4
    watch.unread()
    assert watch.ask() == 4


@pytest.mark.parametrize("line", [b"", b"E", b"E{}", b'E{"seq":', b'E{"seq":x,', b"Rnonsense"])
def test_a_hint_that_cannot_be_read_counts_as_lost(line: bytes) -> None:
    watch = acked()
    assert watch.hear([line, *hint(1)]) == events(1)
    assert watch.ask() == 1


def test_memory_is_bounded_while_a_gap_is_open() -> None:
    watch = acked()
    last = 10 * AHEAD
    for seq in range(2, last + 1):
        watch.hear(hint(seq))
    assert len(watch._ahead) == AHEAD
    assert watch.hear(hint(1)) == events(*range(1, AHEAD + 2))
    assert watch.ask() == AHEAD + 1, "what did not fit is known to be there"
    rest = range(AHEAD + 2, last + 1)
    assert watch.read(map(event, rest), None, whole=True) == events(*rest)


def test_what_redis_forgot_is_not_waited_for() -> None:
    watch = acked()
    watch.hear(hint(1))
    watch.hear(hint(3))  # a master that failed took 2 and 3 with it
    assert watch.ask() == 1
    assert watch.read([], None, whole=True) == []
    assert watch.ask() is None, "the log is the truth, and says that there is no more"
    again = [b"E" + event(2, "again"), b"R" + result(2)]
    assert watch.hear(again) == [News(2, event(2, "again")), final(2)]


def test_a_result_whose_log_is_gone_is_told_all_the_same() -> None:
    watch = Watch(0)
    watch.ask()
    assert watch.read([], result(7), whole=True) == [final(7)]


def test_numbers_stand_first_in_every_line() -> None:
    assert seq_of(event(12)) == 12
    with pytest.raises(ValueError, match="begins with"):
        seq_of(b'{"at":"t","seq":1}')


# What happens, in any order

SLICE = 3


class AnyOrder(RuleBasedStateMachine):
    """A mission goes on, its hints go anywhere, readings take their time; the client must never notice."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[bytes] = []
        self.ended = False
        self.lines: list[bytes] = []
        self.far: list[bytes] = []
        self.heard = 0
        self.reading: int | None = None
        self.snapshot: tuple[list[bytes], bytes | None, bool, bytes | None] | None = None
        self.all: list[News] = []

    @initialize(before=st.integers(0, 5), after=st.integers(0, 5), submitted=st.booleans())
    def begin(self, before: int, after: int, submitted: bool) -> None:
        if submitted:
            self.after, self.watch, self.acked = 0, Watch(None), False
            return
        for _ in range(before):
            self.commit()
        self.after, self.acked = min(before, after), True
        self.watch = Watch(self.after)

    @property
    def expected(self) -> list[News]:
        whole = [News(number, body) for number, body in enumerate(self.log[self.after :], self.after + 1)]
        return [*whole, final(len(self.log))] if self.ended else whole

    @property
    def told(self) -> list[News]:
        return [news for news in self.all if not news.passing]

    def commit(self, end: bool = False) -> None:
        self.log.append(event(len(self.log) + 1))
        self.lines.append(b"E" + self.log[-1])
        if end:
            self.ended = True
            self.lines.append(b"R" + result(len(self.log)))

    @precondition(lambda self: not self.ended)
    @rule(steps=st.integers(1, 4), end=st.booleans())
    def go_on(self, steps: int, end: bool) -> None:
        for step in range(1, steps + 1):
            self.commit(end=end and step == steps)

    @precondition(lambda self: not self.ended)
    @rule()
    def report(self) -> None:
        """The handler says how far it is; the newest word stands in the record."""
        self.far.append(progress(len(self.far) + 1))
        self.lines.append(b"P" + self.far[-1])

    @precondition(lambda self: not self.acked)
    @rule()
    def acknowledge(self) -> None:
        self.acked = True
        self.all += self.watch.ack()

    @precondition(lambda self: self.lines)
    @rule(data=st.data(), size=st.integers(1, 4))
    def hear(self, data: Any, size: int) -> None:
        """Any lines that were ever sent, in any order: what is never drawn is lost, what is drawn again is doubled."""
        lines = data.draw(st.lists(st.sampled_from(self.lines), min_size=1, max_size=size))
        self.listen(lines)

    @precondition(lambda self: self.lines)
    @rule(last=st.integers(1, 4))
    def hear_the_newest(self, last: int) -> None:
        """What mostly happens."""
        self.listen(self.lines[-last:])

    def listen(self, lines: list[bytes]) -> None:
        self.heard = max(self.heard, *(seq_of(line[1:]) for line in lines if not line.startswith(b"P")), 0)
        self.all += self.watch.hear(lines)

    @rule()
    def doubt(self) -> None:
        self.watch.doubt()

    @precondition(lambda self: self.reading is None)
    @rule()
    def ask(self) -> None:
        self.reading = self.watch.ask()
        if self.reading is None and self.acked and not self.watch.done:
            assert self.watch.cursor >= self.heard, "it knows of more than it told, and does not ask"

    @precondition(lambda self: self.reading is not None and self.snapshot is None)
    @rule()
    def look(self) -> None:
        """Redis makes the reading; the answer is under way."""
        assert self.reading is not None
        part = self.log[self.reading : self.reading + SLICE]
        far = self.far[-1] if self.far else None
        self.snapshot = (part, result(len(self.log)) if self.ended else None, len(part) < SLICE, far)

    @precondition(lambda self: self.snapshot is not None)
    @rule()
    def answer(self) -> None:
        assert self.snapshot is not None
        part, ended, whole, far = self.snapshot
        self.reading = self.snapshot = None
        self.all += self.watch.read(part, ended, whole=whole, progress=far)

    @precondition(lambda self: self.reading is not None)
    @rule()
    def lose_the_reading(self) -> None:
        self.reading = self.snapshot = None
        self.watch.unread()

    @invariant()
    def what_was_told_is_the_beginning_of_the_truth(self) -> None:
        if hasattr(self, "watch"):
            assert self.told == self.expected[: len(self.told)]
            assert self.watch.done == any(news.final for news in self.told)
            assert self.acked or not self.told
            assert len(self.watch._ahead) <= AHEAD

    @invariant()
    def progress_goes_forward_and_never_follows_the_result(self) -> None:
        bodies = [news.body for news in self.all if news.passing]
        assert bodies == sorted(set(bodies))
        assert not any(news.final for news in self.all[:-1])
        assert self.all == [] or self.acked

    def teardown(self) -> None:
        """With one more look at the truth, everything has been told."""
        if not hasattr(self, "watch"):
            return
        if self.reading is not None:
            self.lose_the_reading()
        if not self.acked:
            self.acknowledge()
        self.catch_up()
        if self.far and not self.ended:
            assert [news.body for news in self.all if news.passing][-1] == self.far[-1]
        if not self.ended:
            self.commit(end=True)
        self.catch_up()
        assert self.told == self.expected
        assert self.watch.done

    def catch_up(self) -> None:
        self.watch.doubt()
        for _ in range(len(self.log) + 2):
            self.reading = self.watch.ask()
            if self.reading is None:
                break
            self.look()
            self.answer()


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(
    max_examples=300, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
