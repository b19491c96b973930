"""Many orders while everything is killed and the services flap: all end, and the services' own books balance.

`make test` runs a sample, `make chaos` the full length. The seed is printed; set DUALLOOP_TEST_SEED to run it again.
"""

import asyncio
import contextlib
import os
import random
from collections import Counter
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from tests.processes.commands import Front
from tests.processes.orders import KINDS, Kind, check_books, check_order
from tests.services import OutsideServices
from tests.stories.stack import Stack, running

SERVICES = ("stock", "payment", "shipping", "logistics", "notification")
FLAPPING = 0.25
AT_ONCE = 10
LONG = (pytest.mark.long, pytest.mark.timeout(1800))


class Killer:
    """Kills a worker or the services now and then, and the next one when that one is back, until told to stop."""

    def __init__(self, stack: Stack, outside: OutsideServices, dice: random.Random) -> None:
        self.stack, self.outside, self.dice = stack, outside, dice
        self.kills: Counter[str] = Counter()
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        while not self.stopping.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.dice.uniform(0, 1)):
                    await self.stopping.wait()
                    return
            if self.dice.random() < 0.3:
                self.outside.end(SIGKILL)
                self.outside.spawn()
                await self.outside.ready()
                self.kills["outside"] += 1
            else:
                part = self.dice.choice(self.stack.workers)
                part.kill()
                await part.start()
                self.kills["worker"] += 1


async def carry_through(front: Front, kind: Kind, order: str, dice: random.Random) -> tuple[str, dict[str, Any]]:
    """An order from its command to its end; some are cancelled on the way."""
    one = await front.send(kind.type, **kind.command(order))
    if dice.random() < 0.2:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(dice.uniform(0, 0.5)):
                await asyncio.Event().wait()
        await front.cancel(one)
    async with asyncio.timeout(600):
        while (document := await front.result(one, wait=20))["finished_at"] is None:
            pass
    return order, document


@pytest.mark.parametrize("count", [pytest.param(40, marks=pytest.mark.timeout(400)), pytest.param(500, marks=LONG)])
async def test_b02_orders_all_end_and_no_effect_is_had_twice(redis_url: str, tmp_path: Path, count: int) -> None:
    seed = int(os.environ.get("DUALLOOP_TEST_SEED", "0")) or random.randrange(10**6)
    print(f"DUALLOOP_TEST_SEED={seed}")  # noqa: T201  to run it again
    dice = random.Random(seed)
    async with running(redis_url, tmp_path, workers=0) as stack:
        with OutsideServices(tmp_path, stack.url) as outside:
            lease = {"DUALLOOP_LEASE_S": "1.2", "DUALLOOP_OUTSIDE_URL": outside.url}
            await stack.start([stack.worker(**lease) for _ in range(3)])
            for service in SERVICES:
                outside.faults(service, flapping=FLAPPING)
            front, killer, gate = Front(stack.foregrounds[0]), Killer(stack, outside, dice), asyncio.Semaphore(AT_ONCE)

            async def one(n: int) -> tuple[str, dict[str, Any]]:
                async with gate:
                    return await carry_through(front, dice.choice(KINDS), f"O-{n}", dice)

            try:
                killing = asyncio.create_task(killer.run())
                ended = dict(await asyncio.gather(*(one(n) for n in range(count))))
                killer.stopping.set()
                await killing
            finally:
                await front.client.aclose()
            outside.end(SIGKILL)
            outside.start()  # what it says after its death is what it has written down
            ends = Counter(_end(document) for document in ended.values())
            print(dict(killer.kills), dict(ends))  # noqa: T201  shown by -s
            assert sum(killer.kills.values()) > 0
            for order, document in ended.items():
                check_order(outside, order, document)
            check_books(outside)


def _end(document: dict[str, Any]) -> str:
    """How it ended, which must not be in the middle of undoing."""
    code = (document["error"] or {}).get("code")
    assert code in {None, "permanent", "retries_exhausted"}, document
    return f"{document['type']} {document['reason'] or code or document['status']}"
