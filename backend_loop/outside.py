"""What a worker has to offer to the handlers that it runs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backend_loop.devices.protocol import Device
from backend_loop.files import NO_FILES, Files
from backend_loop.lease import Lease
from backend_loop.model import Model
from backend_loop.redis_clock import RedisClock
from backend_loop.reporting import Reports
from backend_loop.services import Services
from backend_loop.sessions import Sessions
from backend_loop.spawning import Spawning
from backend_loop.speech.ears import Ears
from backend_loop.webhooks.sender import Webhooks
from shared.home import EMPTY, Inventory

if TYPE_CHECKING:
    from backend_loop.admission import Admission
    from backend_loop.executors import Executors


def _nothing(_handler: Callable[..., Any]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Outside:
    """What the worker has to offer.

    Args:
        clock: Redis' time.
        lease: of the shard.
        admission: asked before each handler, of permits and breakers.
        executors: for handlers that run in a thread or a process.
        wakes: told in how many seconds a mission that now waits is due, so that nobody sleeps through it.
        max_output: bytes that a commit's document, result and events may have together.
        device: the way to devices, if there is one.
        services: the way to outside services, if there is one.
        model: the way to a language model, if there is one.
        ears: listen to recordings, if there are any.
        home: the home's inventory as it is now; none of its own: an empty one.
        webhooks: sends webhooks.
        sessions: the way to what the commands of a speaker have in common.
        spawning: makes children.
        files: the folder of the files that missions make.
        database: URL of the database, for `backend_loop.database.connect`.
        data: folder of the files that missions may read.
        ran: told of each handler that has answered, before that is committed.
        reports: tells how far handlers are while they run; without, their commits do.
        clear: a bulk mission waits for it before each step, so that urgent ones meet a free event loop; see `Way`.
    """

    clock: RedisClock
    lease: Lease
    admission: "Admission"
    executors: "Executors"
    wakes: Callable[[float], None]
    max_output: int = 1024 * 1024
    device: Device | None = None
    services: Services | None = None
    model: Model | None = None
    ears: Ears | None = None
    home: Callable[[], Inventory] = lambda: EMPTY
    webhooks: Webhooks | None = None
    sessions: Sessions | None = None
    spawning: Spawning | None = None
    files: Files = NO_FILES
    database: str = ""
    data: Path = Path("data")
    ran: Callable[[Callable[..., Any]], None] = _nothing
    reports: Reports | None = None
    clear: Callable[[], Awaitable[None]] | None = None
