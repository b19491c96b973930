"""Gadgets are flashed one by one: which are left alone, which cannot be had, and that a flash is had once."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.gadgets import Gadgets, gadgets_of
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_field(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gadgets]:
    async with gadgets_of(module_redis_url, tmp_path_factory.mktemp("field")) as field:
        yield field


@pytest.fixture
def field(shared_field: Gadgets) -> Gadgets:
    """All well there; each test has gadgets of its own."""
    shared_field.outside.faults("gadgets")
    return shared_field


async def test_a_gadget_is_flashed_and_looked_at_again(field: Gadgets) -> None:
    document = await field.ends("firmware.update", gadget="gadget.0001", version="2.0.0")
    assert document["status"] == "SUCCEEDED"
    result = {"outcome": "confirmed", "gadget": "gadget.0001", "version": "2.0.0", "before": "1.0.0"}
    assert document["result"] == result
    assert document["freshness"]["verified"] is True
    again = await field.ends("firmware.update", gadget="gadget.0001", version="2.0.0")
    assert again["result"]["outcome"] == "already_done"
    assert len(field.flashes("gadget.0001")) == 1


@pytest.mark.parametrize(
    ("gadget", "code"),
    [("gadget.0013", "device_refused"), ("gadget.0042", "device_unreachable"), ("gadget.9999", "device_refused")],
)
async def test_some_cannot_be_flashed_and_it_says_why(field: Gadgets, gadget: str, code: str) -> None:
    document = await field.ends("firmware.update", gadget=gadget, version="2.0.0", patience_s=0.2)
    assert (document["status"], document["error"]["code"]) == ("FAILED", code)
    assert gadget in document["error"]["message"]


async def test_one_that_comes_back_in_time_is_flashed(field: Gadgets) -> None:
    field.hand("gadget.0002", online=False)
    one = await field.front.send("firmware.update", payload={"gadget": "gadget.0002", "version": "2.0.0"})

    async def away() -> bool:
        return bool((await field.front.result(one, wait=0))["waiting_for"] == "timer")

    await eventually(away, what="it is waited for")
    field.hand("gadget.0002", online=True)
    assert (await field.front.end(one))["result"]["outcome"] == "confirmed"


async def test_what_a_person_has_flashed_since_is_left_alone(field: Gadgets) -> None:
    field.hand("gadget.0003", online=False)
    one = await field.front.send("firmware.update", payload={"gadget": "gadget.0003", "version": "2.0.0"})
    field.hand("gadget.0003", version="3.0.0")
    field.hand("gadget.0003", online=True)
    document = await field.front.end(one)
    assert (document["status"], document["reason"]) == ("CANCELLED", "overridden")
    assert field.look("gadget.0003")["version"] == "3.0.0"
    forced = await field.ends(
        "firmware.update", gadget="gadget.0003", version="2.0.0", replaces="1.0.0", command={"conflict": "force"}
    )
    assert forced["result"]["outcome"] == "confirmed"
    other = await field.ends("firmware.update", gadget="gadget.0003", version="4.0.0", replaces="1.0.0")
    assert other["reason"] == "overridden", "it does not show what was to be replaced"


async def test_a_flash_whose_answers_are_lost_is_had_once(field: Gadgets) -> None:
    field.outside.faults("gadgets", lose_reply=True, times=3)
    document = await field.ends("firmware.update", gadget="gadget.0004", version="2.0.0")
    assert document["result"]["outcome"] == "confirmed"
    assert len(field.flashes("gadget.0004")) == 1
