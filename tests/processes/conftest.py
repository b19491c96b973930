"""What most of these tests ask of: a Redis to be killed, a client of the module's own `stack`, `dualloop up` itself."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.conftest import StartRedis
from tests.processes.commands import Front
from tests.processes.restartable import Restartable
from tests.processes.upping import Stack as Upped
from tests.processes.upping import Up
from tests.stories.stack import Stack


@pytest.fixture
def server(start_redis: StartRedis) -> Iterator[Restartable]:
    """A server of this test's own, on an append-only file."""
    server = Restartable(start_redis("--appendonly", "yes", "--appendfsync", "everysec"))
    yield server
    server.kill()


@pytest.fixture
async def front(stack: Stack) -> AsyncIterator[Front]:
    """A client of the first foreground."""
    front = Front(stack.foregrounds[0])
    yield front
    await front.client.aclose()


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    """Start a stack; on the folder ``state`` unless another one is named."""
    with contextlib.ExitStack() as stack:

        def start(
            *options: str, folder: str = "state", cwd: Path | None = None, whole: bool = False, **env: str
        ) -> Upped:
            made = Upped(tmp_path / folder, *options, cwd=cwd, whole=whole, **env)
            stack.callback(made.kill_all)
            return made

        yield start
