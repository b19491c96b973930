"""A stack that knows the demonstration home by its names, with the home itself behind it."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from dualloop.home.inventory import furnish
from tests.home import Home
from tests.stories.stack import START_S, Stack, running
from tests.waiting import eventually


@contextlib.asynccontextmanager
async def furnished(redis_url: str, folder: Path, home: Home, *, workers: int = 1, **env: str) -> AsyncIterator[Stack]:
    """One foreground and so many workers, which begin once the home is known, and so with it; `env` as of `running`."""
    own: dict[str, Any] = {"DUALLOOP_HOME_URL": home.url, **env}
    furnish(folder / "home.json")
    async with running(redis_url, folder, workers=0, **own) as stack:
        async with httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=60) as client:

            async def known() -> bool:
                return bool((await client.get("/v1/home")).json()["inventory"]["devices"])

            await eventually(known, START_S, "the home is known")
        await stack.start([stack.worker() for _ in range(workers)])
        yield stack
