"""Fill the lanes before a measurement: through the real door, in this process, as fast as it takes them."""

import asyncio
from typing import Any, Final

import uvloop
from pydantic_core import to_json

from backend_loop import registry
from frontend_loop.door import Door
from shared import keys
from shared.catalogue import Catalogue
from shared.fleet import Fleet
from shared.redis import Link
from shared.settings import Settings
from tests.benchmarks.stage import MISSIONS

AT_ONCE: Final = 500


def fill(url: str, type_: str, many: int, **command: Any) -> None:
    """Accept so many commands of a type."""
    uvloop.run(_fill(url, to_json({"type": type_, "payload": {"n": 1}} | command), many))


def announce(url: str) -> None:
    """Publish the types, as a worker would that is not there."""

    async def once() -> None:
        link = await Link(url).open(wait_s=10)
        await open_door(link)
        await link.close()

    uvloop.run(once())


async def _fill(url: str, raw: bytes, many: int) -> None:
    link = await Link(url).open(wait_s=10)
    try:
        door = await open_door(link)
        for start in range(0, many, AT_ONCE):
            await asyncio.gather(*(door.accept(raw, "cli") for _ in range(min(AT_ONCE, many - start))))
    finally:
        await link.close()


async def open_door(link: Link) -> Door:
    """A door that knows the types of the benchmarks."""
    fleet, catalogue = Fleet(1), Catalogue()
    await fleet.join(link)
    rows = [definition.row() for definition in registry.load((MISSIONS,)).values()]
    announced = [part for row in rows for part in (row.kind, row.model_dump_json())]
    await link.run("announce", keys.prefix(0), 86_400_000, *announced)
    await catalogue.refresh(link)
    return Door(link, fleet, catalogue, Settings(_env_file=None), "")
