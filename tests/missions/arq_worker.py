"""A background process that also runs arq functions and cron jobs of the user's own, on arq's own keys."""

import asyncio
import os
from pathlib import Path
from typing import Any

from arq import cron

from backend_loop import registry
from backend_loop.worker import LoopWorker
from shared import logs
from shared.settings import Settings


async def greet(ctx: dict[Any, Any], name: str) -> str:  # noqa: ARG001  arq's signature
    """A user's function."""
    return f"hello {name}"


async def tick(ctx: dict[Any, Any]) -> None:  # noqa: ARG001  arq's signature
    """A user's cron job."""
    _write("", "ran")


async def opened(ctx: dict[Any, Any]) -> None:
    """A start-up hook."""
    ctx["opened"] = True


async def closed(ctx: dict[Any, Any]) -> None:
    """A shut-down hook."""
    _write(".closed", str(ctx["opened"]))


def _write(ending: str, text: str) -> None:
    Path(os.environ["DUALLOOP_TEST_CRON"] + ending).write_text(text)


def main() -> None:
    """Run until told to stop, or in burst mode until nothing is left."""
    settings = Settings()
    assert settings.redis_url is not None
    logs.configure(settings, "background")
    asyncio.set_event_loop(asyncio.new_event_loop())
    worker = LoopWorker(
        registry.load(settings.missions),
        settings,
        settings.redis_url,
        functions=[greet],
        cron_jobs=[cron(tick, second=set(range(60)))],
        on_startup=opened,
        on_shutdown=closed,
        burst=os.environ.get("DUALLOOP_TEST_BURST") == "1",
    )
    worker.run()


if __name__ == "__main__":
    main()
