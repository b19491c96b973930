"""`webhook.deliver` on real processes: a worker is killed right after it has sent, and nobody sees the secret."""

import base64
from pathlib import Path
from typing import Any, cast

import redis
from standardwebhooks import Webhook

from tests.processes import fatal
from tests.processes.commands import Front
from tests.processes.test_commit_boundaries import client_of, revived
from tests.stories.stack import running
from tests.webhook_receiver import receiving, status

KEY = b"a key that nobody is to see, ever"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
EVENT = {"type": "order.shipped", "data": {"order": "A-1"}}


def kept(redis_url: str) -> bytes:
    """All that Redis has, as it was written."""
    reads = {
        b"string": lambda client, key: client.get(key),
        b"hash": lambda client, key: client.hgetall(key),
        b"list": lambda client, key: client.lrange(key, 0, -1),
        b"set": lambda client, key: client.smembers(key),
        b"zset": lambda client, key: client.zrange(key, 0, -1),
    }
    with redis.Redis.from_url(redis_url) as client:
        found = [(key, reads[cast("bytes", client.type(key))](client, key)) for key in client.scan_iter()]
    return repr(found).encode()


async def all_said(front: Front, task_id: str) -> str:
    """What clients and operators are told of it."""
    pages = (f"/v1/results/{task_id}", f"/v1/missions/{task_id}", f"/v1/dead-letters/{task_id}", "/v1/mission-types")
    return "".join([(await front.client.get(page)).text for page in pages])


async def test_a_worker_killed_after_it_has_sent_sends_again_under_the_same_id_and_the_secret_stays_one(
    redis_url: str, tmp_path: Path
) -> None:
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    own: dict[str, Any] = {
        "DUALLOOP_WEBHOOK_SECRET": SECRET,
        "DUALLOOP_WEBHOOK_ALLOW": "127.0.0.1",
        "DUALLOOP_LOG_LEVEL": "debug",
        "DUALLOOP_LEASE_S": "1.2",
        fatal.VARIABLE: str(deaths),
    }
    async with (
        receiving() as receiver,
        running(redis_url, tmp_path, workers=0, **own) as stack,
        client_of(stack) as front,
    ):
        worker = stack.worker()
        worker.module = "tests.processes.fatal"
        await stack.start([worker])
        worker.kill()  # so that it does not begin before its death is planned
        task = await front.send("webhook.deliver", payload={"url": receiver.url, "event": EVENT})
        fatal.plan(deaths, task, "before 1")
        worker.spawn()
        async with revived([worker]):
            document = await front.end(task)
            assert fatal.died(deaths, task)
            assert document["status"] == "SUCCEEDED"
            ids = [one.headers["webhook-id"] for one in receiver.deliveries]
            assert ids == [document["result"]["webhook_id"]] * 2
            for one in receiver.deliveries:
                assert Webhook(SECRET).verify(one.body, one.headers) == EVENT
            receiver.answers.append(status(410))
            gone = await front.end(await front.send("webhook.deliver", payload={"url": receiver.url, "event": EVENT}))
            assert (gone["error"]["code"], gone["result"]["gone"]) == ("permanent", True)
            said = "".join([await all_said(front, one) for one in (task, gone["task_id"])])
        logs = "".join(part.log.read_text() for part in (*stack.foregrounds, *stack.workers))
        everything = (said + logs).encode() + kept(redis_url)
        assert task.encode() in everything
        assert not [form for form in (KEY, SECRET.encode(), SECRET[6:].encode()) if form in everything]
