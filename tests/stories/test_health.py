"""Health as an orchestrator sees it: over HTTP, against real Redis servers in every unfit condition."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import pytest
import redis

from shared import health
from shared.health import Checks, NotReady
from shared.loop import Answer, Idle, Loop
from shared.loops import Loops
from shared.redis import Link
from tests.conftest import StartRedis
from tests.waiting import eventually

PATIENCE_S = 60.0


@contextlib.asynccontextmanager
async def served(checks: Checks, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a background process' health server, which ends with the block and leaves nothing.

    On any machine: its limit is one that no slow one needs.
    """
    port_file = folder / "state" / "background.port"
    serving = asyncio.create_task(health.serve(checks, "127.0.0.1", 0, port_file))

    async def port() -> str:
        return port_file.read_text() if port_file.exists() else ""

    try:
        url = f"http://127.0.0.1:{await eventually(port)}"
        async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as client:
            yield client
    finally:
        with patch.object(health, "STOP_S", PATIENCE_S):
            serving.cancel()
            await asyncio.wait({serving}, timeout=0.9 * PATIENCE_S)
        assert serving.cancelled(), "it has ended by itself, not been cut at its limit"
        assert list(port_file.parent.iterdir()) == []


async def readiness(client: httpx.AsyncClient) -> tuple[int, str, dict[str, tuple[bool, str | None]]]:
    """Status code, status, and what each check said."""
    answer = await client.get("/readyz")
    told: dict[str, Any] = answer.json()
    return answer.status_code, told["status"], {c["name"]: (c["ok"], c["detail"]) for c in told["checks"]}


@contextlib.asynccontextmanager
async def linked(url: str) -> AsyncIterator[Link]:
    link = await Link(url).open(wait_s=PATIENCE_S)
    try:
        yield link
    finally:
        await link.close()


async def about(url: str) -> str | None:
    """What the check of Redis says about this one: a detail, or raises ``NotReady``."""
    async with linked(url) as link:
        return await health.redis_check(link)()


async def test_a_process_lives_before_it_has_started_and_starts_before_it_is_ready(tmp_path: Path) -> None:
    checks = Checks()
    async with served(checks, tmp_path) as client:
        assert (await client.get("/livez")).json() == {"status": "live"}
        assert (await client.get("/startupz")).status_code == 503
        assert await readiness(client) == (503, "not_ready", {"process": (False, "It has not started yet.")})

        async def no() -> None:
            raise NotReady("Bring a key.")

        checks.add("door", no)
        assert (await client.get("/startupz")).status_code == 200
        assert await readiness(client) == (503, "not_ready", {"door": (False, "Bring a key.")})
        assert (await client.get("/readyz")).headers["cache-control"] == "no-store"


async def test_a_draining_process_is_alive_and_not_ready(tmp_path: Path, redis_url: str) -> None:
    checks = Checks()
    async with linked(redis_url) as link, served(checks, tmp_path) as client:
        checks.add("redis", health.redis_check(link))

        async def ready() -> bool:
            return await readiness(client) == (200, "ready", {"redis": (True, "master, noeviction")})

        await eventually(ready)
        checks.drain()
        assert (await readiness(client))[0] == 503
        assert (await client.get("/livez")).status_code == 200


async def test_one_check_that_hangs_or_breaks_is_named_and_holds_up_no_other(tmp_path: Path) -> None:
    checks, forever = Checks(), asyncio.Event()

    async def hangs() -> None:
        await forever.wait()

    async def breaks() -> None:
        raise KeyError("redis://:hunter2@db")

    async def well() -> None:
        return None

    many = [f"hangs {n}" for n in range(40)]
    for name, check in (*((name, hangs) for name in many[:20]), ("b", breaks), *((name, hangs) for name in many[20:])):
        checks.add(name, check)
    checks.add("f", well)
    async with served(checks, tmp_path) as client:
        begun = asyncio.get_running_loop().time()
        status, _, told = await readiness(client)
        took = asyncio.get_running_loop().time() - begun
    assert status == 503
    assert told == {
        **dict.fromkeys(many, (False, "No answer within 1 s.")),
        "b": (False, "The check itself failed: KeyError: 'redis://***@db'"),
        "f": (True, None),
    }
    assert took < 20, "those that hang are waited for together"


async def test_every_kind_of_server_passes_as_it_comes(any_redis_url: str) -> None:
    assert await about(any_redis_url) == "master, noeviction"


async def test_a_redis_that_evicts_is_refused_with_the_command_that_mends_it(start_redis: StartRedis) -> None:
    server = start_redis("--maxmemory-policy", "allkeys-lru")
    with pytest.raises(NotReady, match=r"is allkeys-lru\. Say CONFIG SET maxmemory-policy noeviction"):
        await about(server.url)
    with server.client() as client:
        client.config_set("maxmemory-policy", "noeviction")
    assert await about(server.url) == "master, noeviction"


async def test_a_replica_is_refused(start_redis: StartRedis) -> None:
    with pytest.raises(NotReady, match="Let DUALLOOP_REDIS_URL name the master"):
        await about(start_redis("--replicaof", "127.0.0.1", "1").url)


@pytest.mark.parametrize(
    ("forbidden", "told"),
    [
        (["-config"], "master, noeviction"),
        (["-config", "-info"], "Redis does not tell its maxmemory-policy; make sure that it is noeviction."),
    ],
)
async def test_a_redis_that_forbids_config_is_asked_otherwise(
    start_redis: StartRedis, forbidden: list[str], told: str
) -> None:
    server = start_redis()
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", *forbidden)
    assert await about(server.url.replace("unix://", "unix://app:pw@")) == told


async def test_a_redis_that_freezes_is_noticed_and_so_is_its_return_while_the_process_lives_on(
    tmp_path: Path, start_redis: StartRedis
) -> None:
    server, checks = start_redis(), Checks()
    async with linked(server.url) as link, served(checks, tmp_path) as client:
        checks.add("redis", health.redis_check(link))
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            status, _, told = await readiness(client)
            assert (status, told) == (503, {"redis": (False, "No answer within 1 s.")})
            assert (await client.get("/livez")).status_code == 200
            assert (await client.get("/startupz")).status_code == 200
        finally:
            os.kill(server.process.pid, signal.SIGCONT)

        async def ready() -> bool:
            return (await readiness(client))[0] == 200

        await eventually(ready)


async def test_a_redis_that_is_gone_is_said_in_a_sentence(tmp_path: Path, start_redis: StartRedis) -> None:
    server, checks = start_redis(), Checks()
    async with linked(server.url) as link, served(checks, tmp_path) as client:
        checks.add("redis", health.redis_check(link))
        with server.client() as own, contextlib.suppress(redis.ConnectionError):
            own.shutdown(nosave=True)

        async def sentence() -> str:
            return (await readiness(client))[2]["redis"][1] or ""

        async def told() -> bool:
            return (await sentence()).endswith("Start it, or correct DUALLOOP_REDIS_URL.")

        await eventually(told)


async def test_a_process_whose_loop_is_stuck_is_not_ready(tmp_path: Path) -> None:
    loops, checks, let_go = Loops(), Checks(), asyncio.Event()

    async def hangs() -> Answer:
        await let_go.wait()
        return Idle()

    loops.add(Loop("claim", hangs, trigger="woken", interval_s=0.01, patience_s=0.2))
    checks.add("loops", health.loops_check(loops))

    async with served(checks, tmp_path) as client, asyncio.TaskGroup() as group:
        loops.start(group)

        async def status(code: int) -> str:
            found, _, told = await readiness(client)
            return told["loops"][1] or "" if found == code else ""

        async def stuck() -> str:
            return await status(503)

        async def well() -> str:
            return await status(200)

        assert "loop claim has shown no sign of life" in await eventually(stuck)
        assert (await client.get("/livez")).status_code == 200
        let_go.set()
        assert await eventually(well) == "1 loops run"
        loops.stop()


async def test_a_taken_port_is_told_at_once(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        await health.serve(Checks(), "127.0.0.1", taken.getsockname()[1], port_file)
    assert not port_file.exists()


async def test_serving_health_leaves_the_signals_of_the_process_alone(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    async with served(Checks(), tmp_path) as client:
        await client.get("/livez")
        assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_probes_can_be_told_from_the_rest() -> None:
    assert all(health.is_probe({"path": route.path}) for route in health.routes(Checks()))
    assert not health.is_probe({"path": "/v1/commands"})
    assert not health.is_probe({"type": "lifespan"})
