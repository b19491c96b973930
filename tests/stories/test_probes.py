"""Whoever asks a part whether it is ready can be cancelled at any moment, and is: the part may have ended just then."""

import asyncio

from dualloop.supervisor import _until_ready

TURNS = range(40)
"""Of the event loop, more than a question takes."""


async def test_who_is_cancelled_while_he_asks_is_cancelled(redis_url: str) -> None:
    loop = asyncio.get_running_loop()
    for turns in TURNS:
        asking, heard = asyncio.create_task(_until_ready(redis_url)), list[bool]()

        def cancel(after: int, asking: asyncio.Task[None] = asking, heard: list[bool] = heard) -> None:
            if after:
                loop.call_soon(cancel, after - 1, asking, heard)
            else:
                heard.append(asking.cancel())

        cancel(turns)
        await asyncio.wait({asking})
        assert asking.cancelled() == (heard == [True]), turns
