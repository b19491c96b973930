"""A worker that ends by itself once nothing is ready any more: arq's burst mode, over our lanes."""

from collections.abc import Awaitable, Callable
from typing import Final

from shared import keys
from shared.loop import Answer, Idle, Loop
from shared.redis import Link
from shared.settings import Settings
from shared.status import Priority

LOOK_S: Final = 0.05


def burst(link: Link, settings: Settings, busy: Callable[[], Awaitable[bool]], stop: Callable[[], None]) -> Loop:
    """The loop `burst`.

    Args:
        link: to Redis.
        settings: with the pools that are served.
        busy: whether this process still has work of its own, of missions or of arq.
        stop: called once nothing is left.
    """

    async def look() -> Answer:
        rings = [
            f"{keys.prefix(shard)}ring:{priority}:{pool}"
            for shard in range(settings.shards)
            for priority in Priority
            for pool in settings.pools
        ]
        ready = [await link.call("ZCARD", ring) for ring in rings]
        if not any(ready) and not await busy():
            stop()
        return Idle()

    return Loop(
        "burst",
        look,
        trigger="timed",
        interval_s=LOOK_S,
        describe="ends the process when nothing is ready any more",
        output="the end",
    )
