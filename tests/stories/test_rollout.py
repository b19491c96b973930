"""Gadgets are flashed by the hundred: a few first, so many at once, stopped in time, and back where that was said."""

from collections import Counter
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.gadgets import ENDED, Gadgets, gadgets_of
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


def named(first: int, count: int) -> list[str]:
    return [f"gadget.{n:04}" for n in range(first, first + count)]


async def test_a_rollout_takes_canaries_first_and_tells_of_each(field: Gadgets) -> None:
    where = {"prefix": "gadget.00", "model": "lock"}
    document = await field.end(await field.roll_out("2.1.0", where, canaries=3, at_once=8, patience_s=0))
    result = document["result"]
    assert document["status"] == "SUCCEEDED"
    assert (result["gadgets"], result["not_begun"]) == (25, 0)
    assert result["ended"] == {"confirmed": 24, "device_unreachable": 1}
    assert [line["gadget"] for line in result["failures"]] == ["gadget.0042"]
    assert document["progress"] == {"done": 25, "total": 25, "message": None}
    answer = await field.front.client.get(result["report"])
    assert len(answer.text.splitlines()) == 25
    lines = field.report(document)
    assert Counter(line["said"] for line in lines) == result["ended"]
    assert len({line["gadget"] for line in lines}) == 25
    at = {line["gadget"]: flashes[-1]["at"] for line in lines if (flashes := field.flashes(line["gadget"]))}
    canaries = [at.pop(line["gadget"]) for line in lines[:3]]
    assert max(canaries) < min(at.values()), "the others came after them"


async def test_nobody_follows_canaries_that_are_not_well(field: Gadgets) -> None:
    gadgets = named(101, 9)
    field.hand("gadget.0105", bricked=True)
    document = await field.end(await field.roll_out("2.0.0", gadgets, canaries=1))
    assert (document["status"], document["error"]["code"]) == ("FAILED", "child_failed")
    assert "gadget.0105" in document["error"]["message"]
    assert (document["result"]["ended"], document["result"]["not_begun"]) == ({"device_refused": 1}, 8)
    assert set(field.versions(gadgets).values()) == {"1.0.0"}


async def test_a_spent_budget_stops_it_and_a_replay_goes_on_where_it_is_mended(field: Gadgets) -> None:
    gadgets, bad = named(121, 20), named(121, 3)
    for gadget in bad:
        field.hand(gadget, bricked=True)
    root = await field.roll_out("2.0.0", gadgets, canaries=0, at_once=4, budget={"count": 2})
    document = await field.end(root)
    result = document["result"]
    assert (document["status"], document["error"]["code"]) == ("FAILED", "child_failed")
    assert result["ended"]["device_refused"] == 3, "one more than may"
    assert result["not_begun"] >= 20 - 3 - 4
    assert await field.over(root), "who was told to end has ended before it was told of"
    begun = {line["gadget"]: line["status"] for line in field.report(document)}
    assert ENDED.issuperset(begun.values())
    assert set(field.versions([one for one in gadgets if one not in begun]).values()) == {"1.0.0"}
    for gadget in bad:
        field.hand(gadget, bricked=False)
    answer = await field.front.client.post(f"/v1/dead-letters/{root}/replay", json={"from": "start"})
    assert answer.status_code == 202, answer.text
    again = await field.end(root)
    assert (again["status"], again["run"]) == ("SUCCEEDED", 2)
    assert set(field.versions(gadgets).values()) == {"2.0.0"}
    assert {len(field.flashes(gadget)) for gadget in gadgets} == {1}, "those that were done are not done again"


async def test_a_cancel_leaves_what_is_flashed_and_begins_nothing_more(field: Gadgets) -> None:
    gadgets = named(151, 40)
    root = await field.roll_out("2.0.0", gadgets, canaries=0, at_once=4)
    await eventually(lambda: field.done(root, 4), what="some are flashed")
    await field.front.cancel(root)
    document = await field.end(root)
    assert (document["status"], document["reason"]) == ("CANCELLED", "requested")
    await eventually(lambda: field.over(root), what="nobody is under way")
    journals = {gadget: len(field.flashes(gadget)) for gadget in gadgets}
    assert set(journals.values()) == {0, 1}
    assert list(journals.values()).count(0) >= 20


async def test_with_rollback_all_is_as_before_but_what_somebody_else_has_changed(field: Gadgets) -> None:
    gadgets = named(201, 12) + named(214, 18)
    field.hand("gadget.0203", version="1.5.0")
    root = await field.roll_out("2.0.0", gadgets, canaries=0, at_once=5, rollback=True)
    await eventually(lambda: field.done(root, 8), what="some are flashed")
    field.hand("gadget.0201", version="9.0.0")
    await field.front.cancel(root)
    document = await field.end(root)
    assert document["status"] == "CANCELLED"
    assert document["result"]["undone"] == ["NOTING"]
    assert await field.over(root), "an undo waits for who was under way, and for who goes back"
    shown = field.versions(gadgets)
    assert (shown.pop("gadget.0201"), shown.pop("gadget.0203")) == ("9.0.0", "1.5.0")
    assert set(shown.values()) == {"1.0.0"}
    assert len(field.flashes("gadget.0202")) == 2, "there and back"


async def test_a_pause_holds_back_who_has_not_begun(field: Gadgets) -> None:
    gadgets = named(241, 30)
    root = await field.roll_out("2.0.0", gadgets, canaries=0, at_once=3)
    await eventually(lambda: field.done(root, 3), what="some are flashed")
    assert (await field.front.client.post(f"/v1/commands/{root}/pause")).status_code == 202
    await eventually(lambda: field.over(root), what="who has begun has ended")
    begun = len(await field.updates(root))
    assert begun < 30
    assert (await field.front.result(root, wait=0))["status"] == "PAUSED"
    assert (await field.front.client.post(f"/v1/commands/{root}/resume")).status_code == 202
    assert (await field.end(root))["result"]["ended"] == {"confirmed": 30}


async def test_nonsense_is_refused_at_the_door_and_nothing_to_do_is_said(field: Gadgets) -> None:
    wrong = [
        {"version": "2.0.0"},
        {"version": "", "gadgets": ["gadget.0001"]},
        {"version": "2.0.0", "gadgets": []},
        {"version": "2.0.0", "gadgets": ["../etc"]},
        {"version": "2.0.0", "gadgets": {"prefixes": "gadget."}},
        {"version": "2.0.0", "gadgets": {}, "budget": {"share": 2}},
    ]
    for payload in wrong:
        answer = await field.front.client.post("/v1/commands", json={"type": "firmware.rollout", "payload": payload})
        assert answer.status_code == 422, payload
    document = await field.end(await field.roll_out("2.0.0", {"prefix": "gizmo."}))
    assert (document["status"], document["error"]["code"]) == ("FAILED", "permanent")
    assert document["error"]["message"] == "NoGadgetsError: there is no gadget whose name begins with 'gizmo.'"
