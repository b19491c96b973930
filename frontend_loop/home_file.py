"""The file of the home's inventory and the one that lies in Redis, held together.

A person edits the file; a client replaces what lies in Redis, and with it the file of the foreground that it asked.
Whichever changed last is followed by the other one, also where several foregrounds have a file each. A file with a
fault changes nothing: its sentence is logged, and told to all by Redis, until the file is put right.
"""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from shared.clock import now_ms, rfc3339
from shared.errors import RedisAwayError
from shared.file_lock import try_lock
from shared.home import MAX_BYTES, Inventory, InventoryError, read
from shared.home_store import Stored, fetch, furnish, glance, tell_trouble
from shared.logs import get
from shared.loop import After, Answer, Idle, Loop
from shared.redis import Link

log = get(__name__)

LOOK_S: Final = 1.0
AGAIN_S: Final = 0.2
LOCK_S: Final = 5.0
"""How long another process may hold the file; its writes take some milliseconds."""
LOCK_STEP_S: Final = 0.01
MISSING: Final = "there is no such file"
GONE: Final = "it was there and is gone; dualloop home export writes it again as the home is now"

Stamp = tuple[int, int, int, int]
"""By which a file is seen to be another one: when it was written, when it came to be here, its size and its inode."""

Step = Literal["nothing", "publish", "follow", "complain"]


class Sight(NamedTuple):
    """What a look at the file has shown: an inventory, or a fault, or neither where there is no file.

    `stamp` is None where there is none.
    """

    stamp: Stamp | None
    inventory: Inventory | None
    fault: InventoryError | None


class Agreed(NamedTuple):
    """On what the two agreed last: the file as it was heeded, and the revision in Redis, there since `changed_at`."""

    stamp: Stamp | None
    revision: str
    changed_at: int


def decide(sight: Sight, stored: Stored, *, edited: bool) -> Step:
    """Which of the two follows the other one; `edited`: the file has changed since they last agreed."""
    if sight.inventory is None:
        return "complain" if sight.fault else "nothing"
    if stored.document is None:
        return "publish"
    if sight.inventory.revision == stored.revision:
        return "nothing"
    return "publish" if edited else "follow"


class HomeFile:
    """Holds them together.

    Args:
        link: to Redis.
        path: of the file.
        wanted: whether it is a fault if there is none: somebody has named it.
    """

    def __init__(self, link: Link, path: Path, *, wanted: bool) -> None:
        """Nothing is looked at yet: run the `loop`."""
        self._link, self._path, self._wanted = link, path, wanted
        self._where = f"{socket.gethostname()}:{path}"
        self._mutex = asyncio.Lock()
        self._agreed: Agreed | None = None
        self._said = ""
        self._seen = False
        self.loop = Loop(
            "home-file",
            self._once,
            trigger="timed",
            interval_s=LOOK_S,
            vital=False,
            describe="takes in the file of the home's inventory when it is edited, and writes it when a client has",
            output="the inventory in Redis, or the file",
        )

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Keep others, of this and other processes, from writing the file or from taking it in.

        Raises:
            TimeoutError: another process does not let go of it.
        """
        async with self._mutex:
            async with asyncio.timeout(LOCK_S):
                while (descriptor := _lock(self._path)) is None:  # noqa: ASYNC110  no event tells when others let go
                    await asyncio.sleep(LOCK_STEP_S)
            try:
                yield
            finally:
                if descriptor >= 0:
                    os.close(descriptor)

    async def prepare(self, inventory: Inventory) -> Path:
        """Write it beside the file, under another name; see `put`. Only where it is `held`.

        Raises:
            OSError: it cannot be written.
        """
        return await asyncio.to_thread(_write_beside, self._path, inventory.text())

    async def put(self, prepared: Path, revision: str, changed_at: int) -> None:
        """Let what was prepared take the file's place; Redis has this revision since then, epoch ms.

        Raises:
            OSError: it does not, and is tried again by the loop.
        """
        await asyncio.to_thread(os.replace, prepared, self._path.resolve())
        self._agreed = Agreed(await asyncio.to_thread(_stamp, self._path), revision, changed_at)

    def drop(self, prepared: Path) -> None:
        """Nothing is left of what was prepared and not put."""
        prepared.unlink(missing_ok=True)

    async def _once(self) -> Answer:
        try:
            stored = await glance(self._link)
            stamp = await asyncio.to_thread(_stamp, self._path)
            if self._agreed != Agreed(stamp, stored.revision, stored.changed_at or 0) or self._stale(stored):
                async with self.held():
                    await self._agree()
        except RedisAwayError:
            return After(AGAIN_S)  # whose link says so in the log
        return Idle()

    def _stale(self, stored: Stored) -> bool:
        """Whether what all are told of this file is not what is known of it here."""
        told = stored.trouble["detail"] if stored.trouble and stored.trouble["where"] == self._where else ""
        return told != self._said

    async def _agree(self) -> None:
        self._seen |= self._agreed is not None and self._agreed.stamp is not None
        missing = GONE if self._seen else MISSING if self._wanted else None
        stored, sight = await fetch(self._link), await asyncio.to_thread(_look, self._path, missing)
        match decide(sight, stored, edited=self._edited(sight, stored)):
            case "complain":
                await self._complain(sight, stored)
                return
            case "publish" if sight.inventory is not None:
                taken = await furnish(self._link, sight.inventory)
                stored = stored._replace(revision=taken.revision, changed_at=taken.changed_at)
                counts = {"devices": len(sight.inventory.devices), "scenes": len(sight.inventory.scenes)}
                log.info("home taken in", file=str(self._path), revision=taken.revision, **counts)
            case "follow":
                sight = await self._follow(sight, stored)
        self._said = ""
        if stored.trouble is not None and stored.trouble["where"] == self._where:
            await tell_trouble(self._link, None)
        self._agreed = Agreed(sight.stamp, stored.revision, stored.changed_at or 0)

    def _edited(self, sight: Sight, stored: Stored) -> bool:
        """Whether the file is newer: somebody has changed it, or Redis has lost what it had (a master that lagged).

        At the first look, whether it came to be there after what lies in Redis.
        """
        if self._agreed is not None:
            return sight.stamp != self._agreed.stamp or (stored.changed_at or 0) < self._agreed.changed_at
        return sight.stamp is not None and sight.stamp[1] // 1_000_000 > (stored.changed_at or 0)

    async def _complain(self, sight: Sight, stored: Stored) -> None:
        sentence, errors = f"{self._path.name}: {sight.fault}", sight.fault.faults if sight.fault else []
        if sentence != self._said:
            log.warning("home file refused", file=str(self._path), error=sentence)
        if stored.trouble is None or stored.trouble["detail"] != sentence:
            told: dict[str, Any] = {"file": self._path.name, "where": self._where, "detail": sentence, "errors": errors}
            await tell_trouble(self._link, {**told, "at": rfc3339(now_ms())})
        self._said, self._agreed = sentence, Agreed(sight.stamp, stored.revision, stored.changed_at or 0)

    async def _follow(self, sight: Sight, stored: Stored) -> Sight:
        """Write what lies in Redis into the file; one that cannot be written stays as it is."""
        try:
            inventory = read(stored.document or b"")
            await self.put(await self.prepare(inventory), stored.revision, stored.changed_at or 0)
        except (OSError, InventoryError) as error:
            log.warning("home file not written", file=str(self._path), error=str(error))
            return sight
        log.info("home file written", file=str(self._path), revision=stored.revision)
        return sight._replace(stamp=await asyncio.to_thread(_stamp, self._path))


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _look(path: Path, missing: str | None) -> Sight:
    """Look at the file; `missing`: the fault if there is none; None: that is none."""
    stamp = _stamp(path)
    try:
        with path.open("rb") as opened:
            raw = opened.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return Sight(None, None, _unread(missing) if missing else None)
    except OSError as error:
        return Sight(stamp, None, _unread(f"it cannot be read: {error.strerror}"))
    try:
        return Sight(stamp, read(raw), None)
    except InventoryError as error:
        return Sight(stamp, None, error)


def _unread(detail: str) -> InventoryError:
    return InventoryError([{"pointer": "", "detail": detail}])


def _write_beside(path: Path, content: bytes) -> Path:
    path = path.resolve()  # of a link the file that it leads to is replaced, and not the link
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    if path.exists():
        fresh.chmod(path.stat().st_mode & 0o777)
    return fresh


def _lock(path: Path) -> int | None:
    """A descriptor that holds the lock; None: another one has it; -1: there can be none, since nothing is written here.

    Beside the file and not of it, since the file is replaced.
    """
    try:
        return try_lock(path.with_name(f".{path.name}.lock"))
    except OSError:
        return -1
