"""What the handlers of every release do."""

import asyncio
from typing import Any

from tests.missions.tally import tally


async def work(tools: Any, release: int) -> str:
    """Take as long as the payload says; the line for the log, which says who did it."""
    tally(tools, f"begin@{release}")
    await asyncio.sleep(tools.payload.seconds)
    tally(tools, f"end@{release}")
    return f"{tools.key.split(':')[2]}@{release}"
