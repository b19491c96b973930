"""Moments that are easy to forget: what a deadline meets, what a drain cuts, what a replay begins with."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.processes.commands import tally
from tests.stories.operating import Document, Hand, operated
from tests.waiting import eventually

LIMIT = 20_000


@pytest.fixture
async def hand(redis_url: str, tmp_path: Path) -> AsyncIterator[Hand]:
    env = {
        "DUALLOOP_MISSIONS": "tests.missions.plain,tests.missions.edges",
        "DUALLOOP_TEST_TALLY": str(tmp_path / "tally"),
        "DUALLOOP_MAX_OUTPUT": str(LIMIT),
        "DUALLOOP_DRAIN_S": "2",
    }
    async with operated(redis_url, tmp_path, **env) as hand:
        yield hand


async def test_b53_what_finds_no_room_beside_a_context_near_the_limit_fails_and_stops_nobody(hand: Hand) -> None:
    fat = await hand.submit("test.fat", {"bytes": LIMIT - 300})
    document = await hand.ended(fat)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "too_large")
    assert (await hand.ended(await hand.submit("test.noop")))["status"] == "SUCCEEDED"


async def late_and_paused(hand: Hand) -> str:
    """A mission that was paused, and whose deadline has passed since."""
    task_id = await hand.submit("test.patient", {"wait_s": 600})
    await hand.in_state(task_id, "LISTENING", "waiting")
    await hand.post(f"/v1/commands/{task_id}/pause")
    hand.stack.expire(task_id)
    await hand.until(task_id, lambda m: "its deadline passed" in m["why"], "the deadline has passed")
    return task_id


async def test_p14_what_was_completed_by_hand_in_a_pause_is_done_though_its_deadline_has_passed(hand: Hand) -> None:
    task_id = await late_and_paused(hand)
    await hand.post(f"/v1/missions/{task_id}/complete", {"result": {"by": "hand"}})
    await hand.post(f"/v1/commands/{task_id}/resume")
    document = await hand.ended(task_id)
    assert (document["status"], document["result"]) == ("SUCCEEDED", {"by": "hand"})


async def test_p14_a_cancel_in_a_pause_is_a_cancel_though_the_deadline_has_passed(hand: Hand) -> None:
    task_id = await late_and_paused(hand)
    await hand.post(f"/v1/commands/{task_id}/cancel")
    document = await hand.ended(task_id)
    assert (document["status"], document["reason"]) == ("CANCELLED", "requested")


@pytest.mark.parametrize("verb", ["cancel", "deadline"])
async def test_p21_what_a_drain_cut_in_its_first_act_is_undone_though_nothing_was_committed(
    hand: Hand, verb: str
) -> None:
    task_id = await hand.submit("test.reserving")
    await eventually(lambda: len(tally(hand.stack)) == 1)
    assert await hand.stack.workers[0].stop() == 0
    if verb == "cancel":
        assert (await hand.post(f"/v1/commands/{task_id}/cancel"))["status"] == "PENDING"
    else:
        hand.stack.expire(task_id)
    await hand.stack.workers[0].start()
    document = await hand.ended(task_id)
    assert document["result"] == {"undone": ["RESERVING"]}
    assert tally(hand.stack)[-1][0] == "perhaps"


@pytest.mark.parametrize("before", ["pause", "drain"])
async def test_p11_what_rests_before_it_acts_has_replaced_nothing(hand: Hand, before: str) -> None:
    older = await hand.submit("test.dial", {"dial": "light.a"})
    await hand.post(f"/v1/commands/{older}/pause")
    await hand.until(older, lambda m: m["place"] == "paused", "the older one rests")
    newer = await hand.submit("test.dial", {"dial": "light.a"})
    await eventually(lambda: ["run", newer, "LOOKING"] in [line[:3] for line in tally(hand.stack)])
    if before == "pause":
        await hand.post(f"/v1/commands/{newer}/pause")
        await hand.until(newer, lambda m: m["place"] == "paused", "the newer one rests")
    else:
        await hand.stack.workers[0].stop()
    await hand.post(f"/v1/commands/{newer}/cancel")
    if before == "drain":
        await hand.stack.workers[0].start()
    assert (await hand.ended(newer))["status"] == "CANCELLED"
    await hand.post(f"/v1/commands/{older}/resume")
    document = await hand.ended(older)
    assert (document["status"], document["reason"]) == ("SUCCEEDED", None)


async def replayed(hand: Hand, task_id: str, from_: str) -> Document:
    await hand.post(f"/v1/dead-letters/{task_id}/replay", {"from": from_})
    return await hand.ended(task_id)


async def test_p22_a_replay_from_the_start_is_one_also_in_the_first_state(hand: Hand) -> None:
    task_id = await hand.submit("test.counting")
    await hand.ended(task_id)
    assert (await replayed(hand, task_id, "start"))["run"] == 2
    assert [line[0] for line in tally(hand.stack)] == ["n0", "n1", "n0", "n1"]


async def test_p22_a_replay_is_told_again_what_led_into_the_state_that_failed(hand: Hand) -> None:
    task_id = await hand.submit("test.addressed")
    await hand.post(f"/v1/commands/{task_id}/events", {"event": "ADDRESS", "data": {"street": "Main"}})
    await hand.ended(task_id)
    await replayed(hand, task_id, "failed_state")
    assert [line[0] for line in tally(hand.stack)] == ["run", "to-Main", "to-Main"]
