"""The worker's side of the speech processes: recordings are decoded there, and engines listen there that compute.

Neither loop notices: the worker only waits. Whoever is cut, or waits no longer, leaves a process that is ended, since
a library in C cannot be interrupted otherwise.
"""

import asyncio
from typing import Any, Final

from backend_loop.services import ServiceRefused, ServiceUnavailable
from backend_loop.step_frames import pack
from backend_loop.step_processes import BrokenError, Children, DiedError, TooMuchError
from shared.settings import Settings

_MOST: Final = 64 * 1024 * 1024
"""Bytes of an answer: decoded sound is larger than its file."""


class SpeechProcesses:
    """The processes of one worker; made once. None is started before somebody speaks."""

    def __init__(self, settings: Settings) -> None:
        """See `speech_processes`, and how long idle ones are kept, in the settings."""
        self._children = Children(settings, "backend_loop.speech.process", settings.speech_processes)
        self._shared: set[asyncio.Task[Any]] = set()

    async def ask(self, module: str, **order: Any) -> Any:
        """Have a module's `answer` called in a child, which keeps what it has loaded.

        Raises:
            ServiceUnavailable: the process died, or could not be started.
            ServiceRefused: it cannot do this, now or later.
        """
        name = f"backend_loop.speech.{module}"
        try:
            child = await self._children.borrow(name)
        except BrokenError as error:
            raise ServiceRefused(f"speech cannot be listened to here: {error}", "broken") from None
        except (DiedError, OSError) as error:
            raise ServiceUnavailable(f"there is no process that listens: {error}") from None
        usable = False
        try:
            said = await child.run(pack({"run": {"module": name, **order}}), _nothing, _MOST)
            usable = True
        except (DiedError, TooMuchError) as error:
            raise ServiceUnavailable(f"the process that listened failed: {error}") from None
        finally:
            self._children.back(child, usable=usable)
        if "returned" in said:
            return said["returned"]
        if "refused" in said:
            raise ServiceRefused(said["refused"], said["code"])
        raise ServiceUnavailable(f"the process that listened failed: {said['outcome']}")

    async def ask_for_all(self, module: str, **order: Any) -> Any:
        """As `ask`, of a process that knows something for others too: who waits no longer leaves it to its answer."""
        asking = asyncio.get_running_loop().create_task(self.ask(module, **order))
        self._shared.add(asking)
        asking.add_done_callback(self._let_be)
        return await asyncio.shield(asking)

    def _let_be(self, asking: asyncio.Task[Any]) -> None:
        """Nobody may be left who hears how it failed."""
        self._shared.discard(asking)
        if not asking.cancelled():
            asking.exception()

    async def close(self) -> None:
        """End them all; who still waits for his turn gets none, since that would start another one."""
        for asking in self._shared:
            asking.cancel()
        if self._shared:
            await asyncio.wait(set(self._shared))
        await self._children.close()


async def _nothing(_frame: object) -> None:
    """These children only answer."""
