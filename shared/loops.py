"""The loops of one process, by name."""

import asyncio
import time
from collections.abc import Iterator

from shared.loop import Loop
from shared.loop_life import Snapshot


class Loops:
    """The loops of one process, by name: what health and ``/v1/loops`` are told from."""

    def __init__(self) -> None:
        self._loops: dict[str, Loop] = {}
        self._group: asyncio.TaskGroup | None = None
        self._running: dict[str, asyncio.Task[None]] = {}

    def add(self, loop: Loop) -> Loop:
        """Take it in; it is started at once if the others are.

        Raises:
            ValueError: a loop of this name is there already.
        """
        if loop.name in self._loops:
            raise ValueError(f"two loops are called {loop.name}")
        self._loops[loop.name] = loop
        if self._group is not None:
            self.start_one(loop.name)
        return loop

    def __getitem__(self, name: str) -> Loop:
        """The loop of this name, or KeyError."""
        return self._loops[name]

    def __iter__(self) -> Iterator[Loop]:
        """All of them, in the order in which they were added."""
        return iter(self._loops.values())

    def start(self, group: asyncio.TaskGroup) -> None:
        """Run all of them, and those added later, as tasks of the group."""
        self._group = group
        for name in self._loops:
            self.start_one(name)

    def start_one(self, name: str) -> None:
        """Run a loop that is stopped; nothing if it runs.

        Raises:
            KeyError: no loop of this name.
            RuntimeError: the process' loops were never started, or have ended.
        """
        loop = self._loops[name]
        if self._group is None:
            raise RuntimeError(f"loop {name} cannot be started before the process' loops are")
        loop.start()
        if not loop.alive:
            self._running[name] = self._group.create_task(loop.run(), name=f"loop {name}")

    def stop(self) -> None:
        """Let every loop end after its iteration under way."""
        for loop in self:
            loop.stop()

    async def end(self, within_s: float) -> None:
        """Let every loop end after its iteration under way; what takes longer is cancelled."""
        self.stop()
        running = [task for task in self._running.values() if not task.done()]
        if running:
            _, late = await asyncio.wait(running, timeout=within_s)
            for task in late:
                task.cancel()

    def snapshot(self) -> list[Snapshot]:
        """How each of them does."""
        return [loop.state() for loop in self]

    def stuck(self, now: float | None = None) -> list[str]:
        """A sentence per vital loop that is stuck at this monotonic time. May be asked from another thread."""
        at = time.monotonic() if now is None else now
        return [sentence for loop in tuple(self._loops.values()) if loop.vital and (sentence := loop.stuck(at))]

    def wedged(self, now: float, weather: tuple[type[BaseException], ...]) -> dict[str, str]:
        """Of each vital loop that is stuck and does not only fail by such errors: its name, and a sentence."""
        vital = [loop for loop in tuple(self._loops.values()) if loop.vital]
        return {loop.name: sentence for loop in vital if (sentence := loop.wedged(now, weather))}
