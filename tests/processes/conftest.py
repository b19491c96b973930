"""What most of these tests ask of: a Redis to be killed, and a client of the module's own `stack`."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.conftest import StartRedis
from tests.processes.commands import Front
from tests.processes.restartable import Restartable
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
