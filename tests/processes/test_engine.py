"""The engine as a whole: what is undone, replaced, offered, whatever happens to the worker meanwhile."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.processes.commands import Front, bring_near, events, let_deadline_come, tally
from tests.stories.stack import Stack, running
from tests.waiting import eventually

LEASE_S = 1.5


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url,
        tmp_path,
        DUALLOOP_MISSIONS="tests.missions.errand,tests.missions.plain",
        DUALLOOP_LEASE_S=str(LEASE_S),
        DUALLOOP_SLOTS="1",
        DUALLOOP_URGENT_SLOTS="0",
        DUALLOOP_TEST_TALLY=str(tmp_path / "tally"),
    ) as stack:
        yield stack


def did(stack: Stack, one: str) -> list[tuple[str, str]]:
    """What its handlers did: word and state, in order."""
    return [(line[0], line[2]) for line in tally(stack) if line[1] == one]


async def test_what_was_done_is_undone_in_reverse_and_then_it_fails(stack: Stack, front: Front) -> None:
    one = await front.send("test.errand")
    document = await front.result(one)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "permanent")
    assert document["error"]["state"] == "SHIPPING"
    assert did(stack, one)[-2:] == [("undo", "UNDO_CHARGING"), ("undo", "UNDO_RESERVING")]
    assert document["result"]["undone"][-2:] == ["CHARGING", "RESERVING"]
    assert b'"status":"COMPENSATING"' in b"".join(events(stack, one))


async def test_a_cancel_in_an_act_undoes_it_too_and_says_that_it_may_have_happened(stack: Stack, front: Front) -> None:
    one = await front.send("test.errand", payload={"ship": "hangs"})
    await eventually(lambda: ("run", "SHIPPING") in did(stack, one))
    await front.cancel(one)
    document = await front.result(one)
    assert (document["status"], document["reason"]) == ("CANCELLED", "requested")
    assert did(stack, one)[-3:] == [
        ("perhaps", "UNDO_SHIPPING"),
        ("undo", "UNDO_CHARGING"),
        ("undo", "UNDO_RESERVING"),
    ]


async def test_a_deadline_in_an_act_undoes_it_however_late_that_is(stack: Stack, front: Front) -> None:
    one = await front.send("test.errand", payload={"ship": "hangs", "refund": "hangs once"})
    await eventually(lambda: ("run", "SHIPPING") in did(stack, one))
    let_deadline_come(stack.redis_url, one)
    await eventually(lambda: ("undo", "UNDO_CHARGING") in did(stack, one))
    stack.workers[0].kill()  # what is claimed next is past its deadline already
    await stack.workers[0].restart()
    document = await front.result(one)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "deadline")
    assert document["result"]["undone"] == ["SHIPPING", "CHARGING", "RESERVING"]
    assert ("perhaps", "UNDO_SHIPPING") in did(stack, one)


async def test_a_lost_worker_s_undo_is_resumed_with_its_key(stack: Stack, front: Front) -> None:
    one = await front.send("test.errand", payload={"refund": "hangs once"})
    await eventually(lambda: ("undo", "UNDO_CHARGING") in did(stack, one))
    assert await front.state(one) == ("COMPENSATING", "CHARGING")
    stack.workers[0].kill()
    await stack.workers[0].restart()
    document = await front.result(one)
    assert document["result"]["undone"][-2:] == ["CHARGING", "RESERVING"]
    undone = [state for word, state in did(stack, one) if word == "undo"]
    assert undone == ["UNDO_CHARGING", "UNDO_CHARGING", "UNDO_RESERVING"]


async def test_an_undo_that_fails_for_good_is_a_dead_letter_with_what_is_left(front: Front) -> None:
    one = await front.send("test.errand", payload={"refund": "fails"})
    document = await front.result(one)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "compensation_failed")
    assert document["error"]["not_undone"] == ["CHARGING", "RESERVING"]
    letters = (await front.client.get("/v1/dead-letters")).json()
    assert one in str(letters)


async def test_p11_a_newer_command_on_the_same_aspect_replaces_one_that_has_not_acted(
    stack: Stack, front: Front
) -> None:
    await stack.workers[0].stop()
    lamp = {"entity": "lamp"}
    on, warm, off = [await front.send("test.setting", payload=lamp | {"what": what}) for what in ("on", "warm", "off")]
    await stack.workers[0].start()
    assert [(await front.result(one))["status"] for one in (on, warm, off)] == ["CANCELLED", "SUCCEEDED", "SUCCEEDED"]
    assert (await front.result(on))["reason"] == "superseded"
    assert ("run", "SETTING") not in did(stack, on)


async def test_p11_a_newer_command_that_never_got_its_permit_replaces_nothing(stack: Stack, front: Front) -> None:
    await stack.workers[0].restart(DUALLOOP_SLOTS="5")
    inside = await front.send("test.passing", payload={"door": "back", "stays": True})
    await eventually(lambda: ("run", "PASSING") in did(stack, inside))
    older = await front.send("test.passing", payload={"door": "front", "rest_s": 200})
    await eventually(lambda: _waits(front, older, "timer"))
    newer = await front.send("test.passing", payload={"door": "front"})
    await eventually(lambda: _waits(front, newer, "permit"))
    for one in (newer, inside):
        await front.cancel(one)
        assert (await front.result(one))["status"] == "CANCELLED"
    bring_near(stack.redis_url, older, 0)
    assert (await front.result(older))["status"] == "SUCCEEDED"


async def _waits(front: Front, one: str, what: str) -> bool:
    return bool((await front.result(one, wait=0))["waiting_for"] == what)


async def test_p9_a_bulk_mission_gives_its_slot_to_urgent_work_after_a_commit(stack: Stack, front: Front) -> None:
    gate = stack.folder / "gate"
    bulk = await front.send("test.ledger", payload={"gate": str(gate)})
    await eventually(lambda: ("run", "ONE") in did(stack, bulk))
    urgent = await front.send("test.noop", priority="urgent")
    gate.touch()
    assert (await front.result(urgent))["status"] == "SUCCEEDED"
    assert (await front.result(bulk))["status"] == "SUCCEEDED"
    ran = [line[1] for line in tally(stack)]
    assert ran.index(urgent) < len(ran) - 1, "it did not wait for the last page"
    pages = [state for _, state in did(stack, bulk)]
    assert pages == ["ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX"]  # each once: its slot was given at a commit


async def test_p9_a_worker_that_chose_no_pools_runs_what_is_in_any_of_its_types(front: Front) -> None:
    for type_ in ("test.spoken", "test.noop"):
        assert (await front.result(await front.send(type_)))["status"] == "SUCCEEDED"


async def test_p9_workers_run_what_is_in_the_pools_that_they_chose(stack: Stack, front: Front) -> None:
    await stack.workers[0].restart(DUALLOOP_POOLS="default")
    spoken = await front.send("test.spoken")
    assert (await front.result(await front.send("test.noop")))["status"] == "SUCCEEDED"
    assert (await front.state(spoken))[0] == "PENDING"  # the worker that is here serves `default` alone
    hearing = stack.worker(DUALLOOP_POOLS="speech")
    await stack.start([hearing])
    assert (await front.result(spoken))["status"] == "SUCCEEDED"
    await stack.workers[0].stop()
    plain = await front.send("test.noop")
    assert (await front.result(await front.send("test.spoken")))["status"] == "SUCCEEDED"
    assert (await front.state(plain))[0] == "PENDING"
