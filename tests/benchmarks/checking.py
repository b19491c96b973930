"""The accept rate's other peer: a bare ASGI route that checks commands as ours does, and writes nothing.

The foreground's own endpoint with Redis taken out: strict JSON, schema, id, envelope and ack, on the same uvicorn; no
router, Host check or socket beside it. What is left of the rate beside it is what one durable write costs.
"""

import asyncio
import sys
from typing import Any

import uvicorn

from frontend_loop.app import SERVER
from frontend_loop.door import Door
from frontend_loop.feed import Feed
from frontend_loop.ingress.http import Commands
from frontend_loop.results import Results
from shared.clock import now_ms
from shared.fleet import Fleet
from shared.redis import Link
from shared.settings import Settings
from tests.benchmarks.fill import open_door
from tests.benchmarks.stage import LOCAL


class Unwritten(Door):
    """A door without Redis behind it."""

    async def _write(self, place: Any, item: tuple[str | bytes | int, ...]) -> tuple[int, bool]:  # noqa: ARG002  nothing is written
        return now_ms(), False


async def _commands(url: str) -> Commands:
    link = await Link(url).open(wait_s=10)
    fleet, catalogue = Fleet(1), (await open_door(link))._catalogue
    await fleet.join(link)
    await link.close()
    settings = Settings(_env_file=None)
    door = Unwritten(link, fleet, catalogue, settings, "")
    return Commands(door, Results(Feed(link, 1), fleet), settings)


if __name__ == "__main__":
    commands = asyncio.run(_commands(sys.argv[2]))
    options = SERVER | {"http": "httptools", "lifespan": "off"}
    uvicorn.run(commands, host=LOCAL, port=int(sys.argv[1]), **options)
