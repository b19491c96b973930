"""`webhook.deliver` with a real worker and a real receiver: taken once, tried again, refused, and never within."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from backend_loop.alias import alias
from backend_loop.mission import state
from backend_loop.missions import webhook_deliver
from backend_loop.missions.webhook_deliver import WebhookDeliver
from backend_loop.outcomes import Outcome
from backend_loop.retry import Retry as Policy
from backend_loop.toolbox import Toolbox
from shared.clock import now_ms, parse_rfc3339
from tests.device_commands import Document, Door, served_door
from tests.webhook_receiver import Answer, Receiver, endless, nonsense, receiving, reset, silence, status

SECRET, OLD = "whsec_" + "bmV3" * 8, "whsec_" + "b2xk" * 8
EVENT = {"type": "order.shipped", "timestamp": "2026-11-29T16:00:00Z", "data": {"order": "A-1", "big": 2**70}}


class Quick(WebhookDeliver):
    """Does not take hours."""

    @state("DELIVERING", acting=True, timeout_s=60, retry=Policy(tries=4, base_s=0.05))
    async def deliver(self, tools: Toolbox[Any, Any]) -> Outcome:
        return await super().deliver(tools)


HOOK = Quick.definition


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
async def door(redis_url: str, tmp_path: Path) -> AsyncIterator[Door]:
    """With a worker behind it that may send to this machine."""
    own: Document = {"webhook_secret": f"{SECRET},{OLD}", "webhook_allow": ("127.0.0.1",)}
    async with served_door(redis_url, None, tmp_path, HOOK, **own) as door:
        yield door


async def deliver(door: Door, url: str) -> Document:
    return await door.end(await door.submit(HOOK, {"url": url, "event": EVENT}))


async def test_an_event_is_delivered_and_it_is_said_when(door: Door, receiver: Receiver) -> None:
    before = now_ms()
    done = await deliver(door, receiver.url)
    [one] = receiver.deliveries
    for secret in (SECRET, OLD):
        assert Webhook(secret).verify(one.body, one.headers) == EVENT
    result = done["result"]
    assert (done["status"], result["status"], result["tries"]) == ("SUCCEEDED", 204, 1)
    assert result["webhook_id"] == one.headers["webhook-id"] == alias(f"{done['task_id']}:1:DELIVERING:1")
    assert done["task_id"] not in str(one.headers), "who has an id may read and cancel"
    assert before <= parse_rfc3339(result["delivered_at"]) <= now_ms()
    assert 0 <= result["took_ms"] < 60_000


@pytest.mark.parametrize(
    "answer",
    [status(500), status(302, "location: /"), reset, nonsense, silence],
    ids=["500", "302", "reset", "nonsense", "silence"],
)
async def test_what_was_not_taken_is_sent_again_under_its_id(
    door: Door, receiver: Receiver, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def met(receiver: Receiver, writer: asyncio.StreamWriter) -> None:
        if len(receiver.deliveries) == 2:
            monkeypatch.setattr(webhook_deliver, "TRY_S", 60)  # for the next one, which is to be answered
        await answer(receiver, writer)

    monkeypatch.setattr(webhook_deliver, "TRY_S", 1 if answer is silence else 60)
    receiver.answers.extend([met, met])
    done = await deliver(door, receiver.url)
    tries = 3 if answer is not silence else done["result"]["tries"]  # a second may pass before anything is sent
    assert (done["status"], done["result"]["tries"]) == ("SUCCEEDED", tries)
    assert not receiver.answers
    assert len({(one.headers["webhook-id"], one.body) for one in receiver.deliveries}) == 1
    for one in receiver.deliveries:
        Webhook(SECRET).verify(one.body, one.headers)


async def test_it_is_sent_again_no_sooner_than_the_receiver_asks_for(door: Door, receiver: Receiver) -> None:
    receiver.answers.append(status(503, "retry-after: 2"))
    task = await door.submit(HOOK, {"url": receiver.url, "event": EVENT})
    assert (await door.end(task))["result"]["tries"] == 2
    [retry] = [event["data"] for event in await door.events(task) if (event["data"] or {}).get("event") == "retry"]
    assert retry["in_ms"] >= 2_000


async def test_a_huge_answer_does_no_harm(door: Door, receiver: Receiver) -> None:
    receiver.answers.append(endless)
    assert (await deliver(door, receiver.url))["result"]["status"] == 200


@pytest.mark.parametrize("code", [400, 404, 410])
async def test_a_no_for_good_is_not_asked_again(door: Door, receiver: Receiver, code: int) -> None:
    receiver.answers.append(status(code))
    done = await deliver(door, receiver.url)
    assert (done["status"], done["error"]["code"]) == ("FAILED", "permanent")
    assert done["result"]["gone"] is (code == 410)
    assert f"answered {code}" in done["error"]["message"]
    assert len(receiver.deliveries) == 1


async def test_in_the_end_it_is_given_up(door: Door, receiver: Receiver) -> None:
    receiver.answers.extend([status(500)] * 4)
    done = await deliver(door, receiver.url)
    assert (done["status"], done["error"]["code"]) == ("FAILED", "retries_exhausted")
    assert len(receiver.deliveries) == 4


async def test_what_lies_within_is_not_reached(redis_url: str, tmp_path: Path, receiver: Receiver) -> None:
    async with served_door(redis_url, None, tmp_path, HOOK, webhook_secret=SECRET) as door:
        done = await deliver(door, receiver.url)
    assert (done["status"], done["error"]["code"]) == ("FAILED", "permanent")
    assert "127.0.0.1 leads to a loopback address" in done["error"]["message"]
    assert done["result"] == {"answer": "forbidden", "gone": False, "webhook_id": done["result"]["webhook_id"]}
    assert receiver.deliveries == []


async def test_without_a_secret_nothing_is_sent(redis_url: str, tmp_path: Path, receiver: Receiver) -> None:
    async with served_door(redis_url, None, tmp_path, HOOK, webhook_allow=("127.0.0.1",)) as door:
        done = await deliver(door, receiver.url)
    assert (done["status"], done["result"]["answer"]) == ("FAILED", "no_secret")
    assert receiver.deliveries == []
