"""Device commands, accepted as the door would accept them, and what came of them."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from shared import keys
from shared.clock import now_ms, rfc3339
from shared.fleet import Fleet
from shared.redis import Link
from tests.home import Home
from tests.waiting import eventually

LAMP = "light.living_room"

Document = dict[str, Any]


class Door:
    """Accepts commands to one home, and tells what came of them."""

    def __init__(self, link: Link, fleet: Fleet, home: Home) -> None:
        self._link, self._ids, self._home = link, fleet.ids, home

    async def send(self, action: str, value: Any = None, *, entity: str = LAMP, **envelope: Any) -> str:
        """Accept a command as the door would; its id."""
        task_id, now = self._ids.new(0, now_ms()), now_ms()
        document = {
            "v": 1,
            "task_id": task_id,
            "correlation_id": task_id,
            "type": "device.control",
            "payload_version": 1,
            "payload": {"entity": entity, "action": action, "value": value},
            "target": entity,
            "created_at": rfc3339(now),
            "source": "http",
            **envelope,
        }
        item = (task_id, "device.control", 1, "urgent:default:default", f"default:{entity}", "", 60_000)
        started = "FETCHING_CURRENT_STATE"
        answer = await self._link.run("accept", keys.prefix(0), *item, started, "", 0, "", "", json.dumps(document))
        assert answer[1] == b"OK"
        return task_id

    async def end(self, task_id: str, within: float = 20) -> Document:
        """The result document, once there is one."""

        async def document() -> bytes:
            return await self._link.call("GET", keys.result(0, task_id)) or b""

        result: Document = json.loads(await eventually(document, within, "the mission ends"))
        return result

    async def unfinished(self, task_id: str) -> bool:
        """Whether it has no result yet."""
        return not await self._link.call("EXISTS", keys.result(0, task_id))

    async def events(self, task_id: str) -> list[Document]:
        """Its log so far."""
        return [json.loads(event) for event in await self._link.call("LRANGE", keys.log(0, task_id), 0, -1)]

    async def states(self, task_id: str) -> list[str]:
        """The states it went through, each once."""
        return list(dict.fromkeys(event["state"] for event in await self.events(task_id)))

    async def held(self, entity: str = LAMP) -> None:
        """Wait until a request stands where the home was told to hold it."""
        await asyncio.to_thread(self._home.when_held, entity)


@contextlib.asynccontextmanager
async def opened_door(redis_url: str, home: Home) -> AsyncIterator[Door]:
    """A door to this Redis."""
    link = await Link(redis_url, timeout_s=5).open(wait_s=10)
    try:
        fleet = Fleet(1)
        await fleet.join(link)
        yield Door(link, fleet, home)
    finally:
        await link.close()
