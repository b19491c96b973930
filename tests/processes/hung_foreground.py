"""A foreground with one loop more, which hangs: it waits for what never comes, or blocks the event loop of them all."""

import asyncio
import os
import time

from frontend_loop.app import Foreground, serve
from shared import logs
from shared.loop import Answer, Loop
from shared.settings import Settings


async def _waits() -> Answer:
    await asyncio.Event().wait()
    raise AssertionError


async def _blocks() -> Answer:
    time.sleep(3600)  # noqa: ASYNC251  this is the fault that is shown
    raise AssertionError


async def _fails() -> Answer:
    raise OSError("it always does")


def main() -> None:
    """Serve until told to stop."""
    settings = Settings()
    assert settings.redis_url is not None
    logs.configure(settings, "foreground")
    foreground = Foreground(settings, settings.redis_url)
    once = {"waits": _waits, "blocks": _blocks, "fails": _fails}[os.environ["DUALLOOP_TEST_HANGS"]]
    foreground.loops.add(Loop("hanging", once, trigger="timed", interval_s=1, patience_s=0.5))
    serve(foreground)


if __name__ == "__main__":
    main()
