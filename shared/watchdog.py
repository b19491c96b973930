"""Ends a process that lives and does nothing: what looks healthy from outside would be left alone for ever (B04)."""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from redis.exceptions import RedisError

from shared import logs
from shared.errors import RedisAwayError
from shared.loops import Loops
from shared.redis import ReplyError

STUCK: Final = 70
"""Exit status (EX_SOFTWARE) of a process that ends itself since a loop of its own was stuck."""

LOOK_S: Final = 1.0

WEATHER: Final = (RedisAwayError, ReplyError, RedisError)
"""Failures that no restart ends: Redis is away, or refuses."""

_log = logs.get(__name__)


class Watchdog(threading.Thread):
    """Looks at the vital loops from a thread of its own, so that a blocked event loop is seen too.

    It asks for an orderly stop first, so that nobody pays for it with a death of a mission; then it waits no longer.

    Args:
        loops: of the process.
        there: whether Redis can be reached. While it cannot, waiting for it is all that a process can do.
        stuck_s: how long a loop may be stuck.
        stop: asks the process for its orderly end; called from this thread.
        grace_s: how long that may take.
    """

    def __init__(
        self, loops: Loops, there: Callable[[], bool], stuck_s: float, stop: Callable[[], None], grace_s: float
    ) -> None:
        """Watches from `start` to `end`."""
        super().__init__(name="watchdog", daemon=True)
        self._loops, self._there, self._stuck_s, self._ask, self._grace_s = loops, there, stuck_s, stop, grace_s
        self._ending = threading.Event()
        self.fault: str | None = None

    def end(self) -> None:
        """Watch no more."""
        self._ending.set()

    def run(self) -> None:
        """The thread. Counts looks, not the clock: of a process that was frozen or suspended, time tells nothing."""
        every_s = min(LOOK_S, self._stuck_s / 4)
        looks: defaultdict[str, int] = defaultdict(int)
        while not self._ending.wait(every_s):
            wedged = self._loops.wedged(time.monotonic(), WEATHER) if self._there() else {}
            looks = defaultdict(int, {name: looks[name] + 1 for name in wedged})
            for name, sentence in wedged.items():
                if looks[name] * every_s >= self._stuck_s:
                    self._bite(name, sentence)
                    return

    def _bite(self, name: str, sentence: str) -> None:
        self.fault = sentence
        _log.critical("loop stuck, ending the process", loop=name, why=sentence, stuck_s=self._stuck_s)
        self._ask()
        if not self._ending.wait(self._grace_s):
            _log.critical("the end takes too long, leaving now", loop=name, grace_s=self._grace_s)
            os._exit(STUCK)
