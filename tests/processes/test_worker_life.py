"""What arq's worker keeps, and what ours adds: user functions, cron, hooks, burst; blocked and dead event loops."""

import socket
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import redis
from arq.connections import RedisSettings, create_pool

from shared.scripts import SCRIPTS
from tests.forge import Forked, forked
from tests.processes.commands import Front, tally
from tests.processes.restartable import Restartable
from tests.stories.stack import Part, Stack, running
from tests.waiting import eventually

LEASE_S = 2.0


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url,
        tmp_path,
        DUALLOOP_LEASE_S=str(LEASE_S),
        DUALLOOP_TEST_TALLY=str(tmp_path / "tally"),
        DUALLOOP_TEST_CRON=str(tmp_path / "cron"),
    ) as stack:
        yield stack


def _arq_worker(stack: Stack, **env: str) -> Forked:
    part = stack.worker()
    stack.workers.remove(part)
    own = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "."} | part.env | {"DUALLOOP_HEALTH_PORT": str(part.port)} | env
    return forked(("-m", "tests.missions.arq_worker"), env=own)


async def test_arq_s_own_functions_cron_and_hooks_run_beside_missions(stack: Stack, front: Front) -> None:
    await stack.workers[0].stop()
    process = _arq_worker(stack)
    try:
        pool = await create_pool(RedisSettings.from_dsn(stack.redis_url))
        job = await pool.enqueue_job("greet", "you")
        assert job is not None
        assert await job.result(timeout=30, poll_delay=0.05) == "hello you"
        assert (await front.result(await front.send("test.five")))["status"] == "SUCCEEDED"
        await eventually((stack.folder / "cron").exists)
        await pool.aclose()
    finally:
        process.terminate()
        process.wait(60)
    assert process.returncode == 0
    assert (stack.folder / "cron.closed").read_text() == "True"
    with redis.Redis.from_url(stack.redis_url) as client:
        assert client.keys("arq:health*") == []  # B13: its own health key, and it took it along


@pytest.mark.parametrize("wrong", ["http://127.0.0.1:6379", "redis://127.0.0.1?no_such_option=1"])
@pytest.mark.parametrize("command", ["foreground", "background"])
async def test_a_wrong_url_of_redis_ends_it_with_a_sentence(tmp_path: Path, command: str, wrong: str) -> None:
    stack = Stack(wrong, tmp_path, {})
    part = stack.worker() if command == "background" else stack.foreground()
    part.spawn()
    await eventually(partial(_ended, part))
    assert part.running.returncode == 1
    assert "URL of Redis" in part.tail()
    assert "Traceback" not in part.tail()


async def test_a_health_port_that_is_taken_ends_it_at_once_with_a_sentence(redis_url: str, tmp_path: Path) -> None:
    worker = Stack(redis_url, tmp_path, {}).worker()
    with socket.create_server(("127.0.0.1", worker.port)):
        worker.spawn()
        await eventually(partial(_ended, worker))
    assert worker.running.returncode == 1
    assert f"health cannot be served on 127.0.0.1:{worker.port}" in worker.tail()
    assert "Traceback" not in worker.tail()
    assert "background up" not in worker.tail()


async def test_burst_does_what_is_there_and_ends(stack: Stack, front: Front) -> None:
    await stack.workers[0].stop()
    ids = [await front.send("test.five") for _ in range(30)]
    process = _arq_worker(stack, DUALLOOP_TEST_BURST="1")
    await eventually(lambda: process.poll() is not None, within=60)
    assert process.returncode == 0
    assert {(await front.state(one))[0] for one in ids} == {"SUCCEEDED"}


async def test_a_redis_that_is_frozen_keeps_no_worker_from_ending(server: Restartable, tmp_path: Path) -> None:
    own = {"DUALLOOP_TEST_CRON": str(tmp_path / "cron"), "DUALLOOP_REDIS_TIMEOUT_S": "0.5", "DUALLOOP_DRAIN_S": "1"}
    process = _arq_worker(Stack(server.url, tmp_path, own))
    try:
        await eventually((tmp_path / "cron").exists)
        server.freeze()
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        server.thaw()


async def test_b13_a_clean_stop_of_one_worker_makes_no_other_look_ill(stack: Stack, front: Front) -> None:
    """Health is each process's own: its port, its readiness, and arq's key, which other queues share."""
    processes = [_arq_worker(stack) for _ in range(2)]
    try:
        with redis.Redis.from_url(stack.redis_url) as client:
            await eventually(lambda: len(client.keys("arq:health:*")) == 2)
            await eventually(lambda: client.zcard("dl:{s0}:owners") == 3)
            processes[0].terminate()
            assert processes[0].wait(60) == 0
            assert len(client.keys("arq:health:*")) == 1
            assert client.zcard("dl:{s0}:owners") == 2, "only its own lease is given back"
        answer = await front.client.get(f"{stack.workers[0].url}/readyz")
        assert answer.status_code == 200
        assert processes[1].poll() is None
        assert (await front.result(await front.send("test.five")))["status"] == "SUCCEEDED"
    finally:
        for process in processes:
            process.kill()
            process.wait()


async def test_b17_a_blocked_event_loop_keeps_its_lease_for_a_while(stack: Stack, front: Front) -> None:
    spare = stack.worker()
    await stack.start([spare])
    one = await front.send("test.block", payload={"seconds": 0.95 * LEASE_S})
    assert (await front.result(one))["status"] == "SUCCEEDED"
    assert [line[0] for line in tally(stack)] == ["begin", "end"]


async def test_a_dead_event_loop_ends_its_process_and_another_worker_goes_on(stack: Stack, front: Front) -> None:
    worker = stack.workers[0]
    one = await front.send("test.block", payload={"seconds": 600})
    await eventually(partial(_ended, worker), within=60)
    assert worker.running.returncode == 70
    assert "event loop dead" in worker.tail(10**6)
    assert (await front.state(one))[0] in {"RUNNING", "PENDING"}  # not lost: whoever comes takes it over
    await front.cancel(one)
    await worker.start()
    assert (await front.result(one))["status"] == "CANCELLED"


def _ended(part: Part) -> bool:
    return part.running.poll() is not None


@pytest.mark.usefixtures("stack")
async def test_a_handler_that_fails_is_tried_again_and_then_says_why(front: Front) -> None:
    expected = {
        ("retry", 2): ("SUCCEEDED", None),
        ("raise", 2): ("SUCCEEDED", None),
        ("timeout", 1): ("SUCCEEDED", None),
        ("retry", 9): ("FAILED", "retries_exhausted"),
        ("raise", 9): ("FAILED", "retries_exhausted"),
        ("timeout", 9): ("FAILED", "timeout"),
        ("permanent", 1): ("FAILED", "permanent"),
        ("garbage", 1): ("FAILED", "permanent"),
    }
    ends = {}
    for how, failures in expected:
        document = await front.result(await front.send("test.flaky", payload={"failures": failures, "how": how}))
        ends[how, failures] = (document["status"], (document["error"] or {}).get("code"))
    assert ends == expected


@pytest.mark.usefixtures("stack")
async def test_what_cannot_be_read_or_written_ends_the_mission_not_the_worker(front: Front) -> None:
    odd = await front.result(await front.send("test.picky", payload={"n": 3}))
    assert (odd["status"], odd["error"]["code"]) == ("FAILED", "undecodable")
    assert odd["error"]["errors"] == [
        {"pointer": "/payload/n", "detail": "Value error, odd numbers are not eaten here"}
    ]
    for where in ("context", "result"):
        document = await front.result(await front.send("test.careless", payload={"where": where}))
        assert (document["status"], document["error"]["code"]) == ("FAILED", "permanent")
        assert "cannot be written as JSON" in document["error"]["message"]
    document = await front.result(await front.send("test.careless", payload={"where": "nan"}))
    assert (document["status"], document["result"]) == ("SUCCEEDED", {"left": None})  # B54: JSON has no NaN


@pytest.mark.usefixtures("stack")
async def test_a_task_group_that_failed_in_a_handler_does_not_keep_it_from_being_cut(front: Front) -> None:
    document = await front.result(await front.send("test.grouped"))
    assert (document["status"], document["error"]["code"]) == ("FAILED", "timeout")


async def test_what_is_leased_to_a_worker_that_does_not_run_it_is_handed_back(stack: Stack, front: Front) -> None:
    """As after a claim whose answer was lost: else its own renewals would keep it from everybody for ever (P6)."""
    await stack.workers[0].stop()
    one = await front.send("test.noop")
    with redis.Redis.from_url(stack.redis_url, decode_responses=True) as client:
        spare = stack.worker(DUALLOOP_POOLS="other")
        await stack.start([spare])
        owner = next(iter(client.zrange("dl:{s0}:owners", 0, 0)))
        script = SCRIPTS["claim"].text
        claimed = client.eval(script, 1, "dl:{s0}:", owner, 0, 9000, 600, 300, 9, 9, "default", ",test.noop@1,")
        assert claimed[2][0][0] == one
        spare.freeze()  # long enough for its link to be given up, so that it looks
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        spare.thaw()
        await eventually(lambda: client.hget(f"dl:{{s0}}:mission:{one}", "place") == "lane")


async def test_a_damaged_record_ends_its_mission(stack: Stack, front: Front) -> None:
    await stack.workers[0].stop()
    ids = [await front.send("test.five") for _ in range(3)]
    with redis.Redis.from_url(stack.redis_url) as client:
        client.hset(f"dl:{{s0}}:mission:{ids[0]}", "envelope", b"\xff\x00")
        client.hset(f"dl:{{s0}}:mission:{ids[1]}", "document", b"[]")
    await stack.workers[0].start()
    for one in ids[:2]:
        document = await front.result(one)
        assert (document["status"], document["error"]["code"]) == ("FAILED", "undecodable")
    assert (await front.result(ids[2]))["status"] == "SUCCEEDED"


async def test_a_deadline_cuts_a_running_handler_and_ends_what_never_began(stack: Stack, front: Front) -> None:
    document = await front.overdue(lambda one: _begun(stack, one), "test.slow", payload={"seconds": 600})
    assert (document["status"], document["error"]["code"]) == ("FAILED", "deadline")
    await stack.workers[0].stop()
    spare = stack.worker(DUALLOOP_POOLS="other")
    await stack.start([spare])
    never = await front.send("test.noop", deadline_s=0.5)
    document = await front.result(never)
    assert (document["status"], document["reason"], document["started_at"]) == ("CANCELLED", "expired", None)


def _begun(stack: Stack, task_id: str) -> bool:
    return ["begin", task_id] in [line[:2] for line in tally(stack)]


@pytest.mark.usefixtures("stack")
async def test_b24_a_cancel_is_durable_wherever_the_mission_stands(front: Front) -> None:
    acting = await front.send("test.slow", payload={"seconds": 600, "entity": "lamp"})
    waits = await front.send("test.slow", payload={"seconds": 600, "entity": "lamp"})
    sleeps = await front.send("test.patient", payload={"sleep_s": 600})
    await eventually(lambda: _is(front, acting, "RUNNING"))
    await eventually(lambda: _is(front, sleeps, "WAITING"))
    assert (await front.result(waits, wait=0))["waiting_for"] == "target"
    for one in (waits, sleeps, acting):
        answer = await front.cancel(one)
        assert answer.status_code == 202
        document = await front.result(one)
        assert (document["status"], document["reason"]) == ("CANCELLED", "requested")
        assert (await front.cancel(one)).json()["status"] == "CANCELLED"  # idempotent
    done = await front.send("test.noop")
    await front.result(done)
    answer = await front.cancel(done)
    assert (answer.status_code, answer.json()["code"]) == (409, "ended")


async def _is(front: Front, correlation_id: str, status: str) -> bool:
    return (await front.state(correlation_id))[0] == status


async def test_retention_ends_with_410_and_leaves_nothing(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, DUALLOOP_RETENTION_S="1") as stack:
        front = Front(stack.foregrounds[0])
        one = await front.send("test.five")
        with redis.Redis.from_url(redis_url) as client:
            await eventually(lambda: not [key for key in client.scan_iter("*") if one.encode() in key])
            await eventually(lambda: client.hlen("dl:{s0}:counts") == 0)
        answer = await front.client.get(f"/v1/results/{one}")
        assert (answer.status_code, answer.json()["code"]) == (410, "expired")
        await front.client.aclose()
