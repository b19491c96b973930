"""The sentence of missions that real workers have brought where they stand."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.stories.operating import Hand, operated
from tests.stories.stack import MISSIONS


@pytest.fixture
async def hand(redis_url: str, tmp_path: Path) -> AsyncIterator[Hand]:
    missions = f"{MISSIONS},tests.missions.parcel,tests.missions.queueing"
    async with operated(redis_url, tmp_path, DUALLOOP_MISSIONS=missions) as hand:
        yield hand


async def says(hand: Hand, task_id: str, words: str) -> str:
    """The whole sentence, as soon as these words are in it."""
    found = await hand.until(task_id, lambda mission: words in mission["why"], words)
    return str(found["why"])


async def test_who_waits_for_a_permit_is_told_of_whom_and_behind_how_many(hand: Hand) -> None:
    served = await hand.submit("test.desk")
    await hand.in_state(served, "SERVING", "leased")
    first, second = [await hand.submit("test.desk") for _ in range(2)]
    told = await says(hand, first, "all that the type test.desk may have are taken")
    assert told.startswith("WAITING in SERVING for a permit until ")
    assert "in front of it" not in told
    told = await says(hand, second, "all that the type test.desk may have are taken, 1 mission in front of it")
    assert "; one that comes free wakes it earlier; " in told
    await hand.post(f"/v1/commands/{served}/cancel")
    await says(hand, first, "RUNNING in SERVING on worker ")


async def test_who_finds_a_breaker_open_is_told_whose_and_until_when(hand: Hand) -> None:
    told = await says(hand, await hand.submit("test.shopping", deadline_s=1000), "the breaker of shop is open")
    assert told.startswith("WAITING in BUYING for a permit until ")
    assert re.search(r" \(in (10|9|8) min", told)
    assert "; then it asks again; " in told


async def test_who_goes_before_others_is_told_who_lends_it_that(hand: Hand) -> None:
    holder = await hand.submit("test.slow", {"seconds": 600, "entity": "light.a"}, priority="bulk")
    await hand.in_state(holder, "ACTING", "leased")
    behind = await hand.submit("test.slow", {"entity": "light.a"}, priority="urgent")
    told = await says(hand, holder, "it goes before others as urgent")
    assert "which those lend it that wait for the target light.a; its own is bulk" in told
    assert (await says(hand, behind, "held by")).startswith(
        f"PENDING: waits for the target light.a, held by {holder}; "
    )


async def test_who_is_about_to_be_superseded_is_told_by_what(hand: Hand) -> None:
    holder = await hand.submit("test.slow", {"seconds": 600, "entity": "light.a"})
    await hand.in_state(holder, "ACTING", "leased")
    older, dims, newer = [
        await hand.submit("test.switch", {"entity": "light.a", "action": action, "works": True})
        for action in ("turn_on", "dim", "turn_off")
    ]
    told = await says(hand, older, "newer")
    assert "; a newer command sets the power of the target light.a, so it ends before it acts; " in told
    for other in (dims, newer):
        assert "newer" not in (await hand.mission(other))["why"]
    await hand.post(f"/v1/commands/{holder}/cancel")
    assert (await hand.ended(older))["reason"] == "superseded"
    assert (await says(hand, older, "CANCELLED")).endswith(": a newer command replaced it.")


async def test_what_is_still_unread_is_named(hand: Hand) -> None:
    slow = await hand.submit("test.slow", {"seconds": 600})
    await hand.in_state(slow, "ACTING", "leased")
    await hand.post(f"/v1/commands/{slow}/pause")
    told = await says(hand, slow, "1 entry of its inbox is unread (pause)")
    assert told.startswith("RUNNING in ACTING on worker ")
