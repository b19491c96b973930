"""The renewal thread tells a process that was frozen from an event loop that is dead."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from backend_loop import lease
from backend_loop.lease import Renewal

LEASE_S = 6.0


class _Clock:
    """Boot time as a test wants it; stands in for the thread's waiting too."""

    def __init__(self, waits: list[float]) -> None:
        self.now, self._waits = 0.0, iter(waits)

    def wait(self, pause: float) -> bool:
        over = next(self._waits, None)
        self.now += pause + (over or 0.0)
        return over is None

    def is_set(self) -> bool:
        return False

    def set(self) -> None:
        return None


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[list[float]], list[int]]]:
    """Run the thread's loop with these oversleeps, one a round; the exits it asked for."""
    loop = asyncio.new_event_loop()

    def go(waits: list[float]) -> list[int]:
        clock, exits = _Clock(waits), list[int]()
        monkeypatch.setattr(lease, "boottime", lambda: clock.now)
        monkeypatch.setattr("os._exit", exits.append)
        renewal = Renewal("unix:///nowhere", [], LEASE_S, loop)
        monkeypatch.setattr(renewal, "_ending", clock)
        renewal.run()
        return exits

    yield go
    loop.close()


def test_a_frozen_process_is_not_ended_when_it_thaws(run: Callable[[list[float]], list[int]]) -> None:
    assert run([0.0, 100.0, 0.0]) == []


def test_a_loop_that_never_ticks_ends_the_process(run: Callable[[list[float]], list[int]]) -> None:
    assert lease.STUCK in run([0.0] * 12)
