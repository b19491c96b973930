"""Loads what the first sentence in a home would else wait for: grammar and names, half a second's work, in a thread."""

import asyncio
from collections.abc import Callable
from typing import Final

from backend_loop.language.interpreters import interpreter
from shared.home import Inventory
from shared.loop import Answer, Idle, Loop

WARM_S: Final = 1.0
"""How long after a change of the home at most."""


class Warming:
    """The loop `language`; `home` tells the inventory as it is now."""

    def __init__(self, home: Callable[[], Inventory]) -> None:
        """Nothing runs yet: start its `loop`."""
        self._home, self._warm = home, ""
        self.loop = Loop(
            "language",
            self.once,
            trigger="timed",
            interval_s=WARM_S,
            vital=False,
            describe="loads the grammar of a home that has changed, before somebody speaks",
            output="no first sentence that waits",
        )

    async def once(self) -> Answer:
        """Load it, if there is another home than the last time, with devices in it."""
        home = self._home()
        if home.devices and home.revision != self._warm:
            await asyncio.to_thread(lambda: interpreter(home).warm())
            self._warm = home.revision
        return Idle()
