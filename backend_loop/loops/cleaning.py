"""Removes the files of missions that are no longer kept, from the folder that this process writes to."""

import asyncio
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Final

from shared import keys
from shared.clock import now_ms
from shared.errors import RedisAwayError
from shared.files import folder_of
from shared.fleet import Fleet
from shared.ids import MissionId
from shared.logs import get
from shared.loop import After, Answer, Idle, Loop
from shared.redis import Link
from shared.settings import Settings

log = get(__name__)

CLEAN_S: Final = 60.0
BATCH: Final = 50
"""Missions that are asked for at a time."""
PAUSE_S: Final = 0.05


class Cleaning:
    """The loop `files`: a mission's folder goes once Redis knows the mission no more.

    What is no folder of a mission of this fleet is left alone, whoever put it there.

    Args:
        link: to Redis.
        fleet: whose ids are genuine.
        settings: of the process.
    """

    def __init__(self, link: Link, fleet: Fleet, settings: Settings) -> None:
        """Nothing runs yet: start its `loop`."""
        self._link, self._fleet, self._folder = link, fleet, settings.files_path
        self._retention_ms = settings.retention_s * 1000
        self._left: list[MissionId] = []
        self.loop = Loop(
            "files",
            self._once,
            trigger="timed",
            interval_s=min(CLEAN_S, max(1.0, settings.retention_s)),
            vital=False,
            describe="removes the files of missions that are no longer kept",
            output="room on the disk",
        )

    async def _once(self) -> Answer:
        if not self._left:
            self._left = await asyncio.to_thread(lambda: list(self._old()))
        batch, self._left = self._left[:BATCH], self._left[BATCH:]
        try:
            gone = await self._gone(batch)
        except RedisAwayError:
            self._left.clear()
            if self._link.connected:
                raise
            return Idle()  # it is away, which its link says in the log
        if gone:
            log.info("files removed", missions=await asyncio.to_thread(self._remove, gone))
        return After(PAUSE_S) if self._left else Idle()

    def _old(self) -> Iterator[MissionId]:
        """Missions with a folder that may be gone: one is kept from its end on, so no younger one can be."""
        try:
            with os.scandir(self._folder) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return
        before = now_ms() - self._retention_ms
        for name in names:
            one = self._fleet.ids.read(name)
            if one is not None and one.shard < self._fleet.shards and one.ms < before:
                yield one

    async def _gone(self, missions: Sequence[MissionId]) -> list[MissionId]:
        known = await asyncio.gather(
            *(self._link.call("EXISTS", keys.mission(one.shard, one.text)) for one in missions)
        )
        return [one for one, exists in zip(missions, known, strict=True) if not exists]

    def _remove(self, missions: Sequence[MissionId]) -> int:
        removed = 0
        for folder in (folder_of(self._folder, one.text) for one in missions):
            try:
                shutil.rmtree(folder)
            except FileNotFoundError:
                continue  # another process is at it
            except OSError as error:
                log.warning("files not removed", folder=str(folder), error=str(error))
                continue
            removed += 1
        return removed
