"""Commands to a home, accepted as the door would accept them, and what came of them."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from backend_loop.devices.http import HttpDevice, http_client
from backend_loop.mission_type import MissionType
from backend_loop.missions.device_control import DeviceControl
from backend_loop.worker import LoopWorker
from frontend_loop.family import children
from shared import keys
from shared.clock import now_ms, rfc3339
from shared.fleet import Fleet
from shared.redis import Link
from shared.settings import Settings
from tests.home import Home
from tests.waiting import eventually

LAMP = "light.living_room"

Document = dict[str, Any]


class Door:
    """Accepts commands to one home, and tells what came of them."""

    def __init__(self, link: Link, fleet: Fleet, home: Home | None) -> None:
        self._link, self._ids, self._home = link, fleet.ids, home

    async def send(self, action: str, value: Any = None, *, entity: str = LAMP, **envelope: Any) -> str:
        """Accept a command to a device as the door would; its id."""
        own: Document = {name: envelope.pop(name) for name in ("asked_at", "insist") if name in envelope}
        payload = {"entity": entity, "action": action, "value": value, **own}
        return await self.submit(DeviceControl.definition, payload, target=entity, **envelope)

    async def submit(
        self, kind: MissionType, payload: Document, *, target: str | None = None, within_s: float = 300, **envelope: Any
    ) -> str:
        """Accept any command as the door would, so many seconds before its deadline; its id."""
        task_id, now, row = self._ids.new(0, now_ms()), now_ms(), kind.row()
        document = {
            "v": 1,
            "task_id": task_id,
            "correlation_id": task_id,
            "type": kind.type,
            "payload_version": kind.version,
            "payload": payload,
            "target": target,
            "created_at": rfc3339(now),
            "source": "http",
            "priority": row.priority,
            **envelope,
        }
        held = f"default:{target}" if target is not None else ""
        item = (task_id, kind.type, kind.version, f"{row.priority}:default:default", held, "", round(within_s * 1000))
        latest = row.latest_of(held, payload)
        answer = await self._link.run(
            "accept", keys.prefix(0), *item, row.initial, "", 0, latest, "", json.dumps(document)
        )
        assert answer[1] == b"OK"
        return task_id

    async def cancel(self, task_id: str) -> None:
        """Say that it is not wanted any more."""
        entry = ("cancel", '{"entry":"cancel","reason":"requested"}', "requested", 3_600_000, '{"reason":"requested"}')
        answer = await self._link.run("control", keys.prefix(0), task_id, "cancel", *entry)
        assert answer[0] == b"OK"

    async def expire(self, task_id: str) -> None:
        """Its deadline has come."""
        now, record = now_ms(), keys.mission(0, task_id)
        await self._link.call("HSET", record, "deadline", now)
        await self._link.call("ZADD", f"{keys.prefix(0)}deadlines", now, task_id)

    async def end(self, task_id: str, within: float = 60) -> Document:
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

    async def children(self, task_id: str) -> list[Document]:
        """The missions that it has spawned."""
        record = await self._link.call("HGET", keys.mission(0, task_id), "document")
        return children(json.loads(record))

    async def states(self, task_id: str) -> list[str]:
        """The states it went through, each once."""
        return list(dict.fromkeys(event["state"] for event in await self.events(task_id)))

    async def held(self, entity: str = LAMP) -> None:
        """Wait until a request stands where the home was told to hold it."""
        assert self._home is not None
        await asyncio.to_thread(self._home.when_held, entity)


@contextlib.asynccontextmanager
async def opened_door(redis_url: str, home: Home | None) -> AsyncIterator[Door]:
    """A door to this Redis."""
    link = await Link(redis_url, timeout_s=30).open(wait_s=30)
    try:
        fleet = Fleet(1)
        await fleet.join(link)
        yield Door(link, fleet, home)
    finally:
        await link.close()


@contextlib.asynccontextmanager
async def served_door(
    redis_url: str, home: Home | None, folder: Path, *types: MissionType, **settings: Any
) -> AsyncIterator[Door]:
    """A door, with a worker of these types behind it."""
    url = None if home is None else home.url
    chosen = Settings(redis_url=redis_url, state_dir=folder, home_url=url, _env_file=None, **settings)
    known = {definition.kind: definition for definition in types}
    async with http_client() as client, opened_door(redis_url, home) as door:
        device = None if url is None else HttpDevice(url, client)
        worker = LoopWorker(known, chosen, redis_url, device=device, handle_signals=False)
        running = asyncio.create_task(worker.main())
        yield door
        worker.stop()
        await running
        await worker.close()
