"""A gate that a test opens: a handler that waits there is in its midst for as long as the test wants."""

import asyncio
from pathlib import Path


async def opened(gate: Path | None) -> None:
    """Wait until this file is there; None: there is no gate."""
    while gate is not None and not gate.exists():  # noqa: ASYNC110, ASYNC240  a file has no event
        await asyncio.sleep(0.01)
