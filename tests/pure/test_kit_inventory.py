"""The kit's home: handlers ask what is where and what it is called, as a test furnishes it."""

import pytest

from backend_loop.testing import Bench
from shared.home import EMPTY, Inventory, InventoryError, check
from tests.missions.household import Household

HALL = {"areas": [{"id": "hall", "names": {"en": ["hall"]}}]}


@pytest.mark.parametrize("inventory", [HALL, check(HALL)], ids=["document", "inventory"])
def test_a_handler_is_told_of_the_home_that_a_bench_has(inventory: Inventory) -> None:
    mission = Bench(Household, inventory=inventory).run()
    assert mission.result == {"revision": check(HALL).revision, "areas": ["hall"]}


def test_without_one_it_is_empty() -> None:
    assert Bench(Household).run().result == {"revision": EMPTY.revision, "areas": []}


def test_one_that_a_foreground_would_refuse_ends_the_test() -> None:
    with pytest.raises(InventoryError, match="/rooms: there is no such field"):
        Bench(Household, inventory={"rooms": []})
