"""The running home without its wires."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dualloop.home.house import House
from dualloop.home.model import Reading
from dualloop.home.store import Store

LAMP = "light.hall"


class Told:
    """What devices say by themselves."""

    def __init__(self) -> None:
        self.at: list[int] = []

    def shown(self, _entity: str, reading: Reading, _changed: frozenset[str]) -> None:
        self.at.append(reading.observed_at)

    def present(self, _entity: str, *, here: bool) -> None:
        """Nobody comes or goes."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path)) as store:
        yield store


async def test_what_was_read_just_before_a_hand_and_what_it_did_are_of_two_moments(store: Store) -> None:
    """Else the second passes for what a bridge remembers of the first, and nobody hears of the hand."""
    house, told = House(store, lambda: 1_000), Told()
    house.watchers.append(told)
    read = await house.observe(LAMP)
    house.hand(LAMP, {"power": "on", "brightness": 22})
    assert told.at
    assert min(told.at) > read.observed_at


async def test_a_clock_that_is_set_back_is_believed(store: Store) -> None:
    clock = iter((10_000, 5_000, 5_000))
    house = House(store, lambda: next(clock))
    assert [(await house.observe(LAMP)).observed_at for _ in range(3)] == [10_000, 5_000, 5_001]
