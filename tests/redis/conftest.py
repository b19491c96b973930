"""The scripts on a real Redis, once on each kind of server."""

from collections.abc import Iterator

import pytest
import redis

from tests.redis.scripts_client import Verbs

pytest.register_assert_rewrite("tests.redis.stage")


@pytest.fixture
def verbs(any_redis_url: str) -> Iterator[Verbs]:
    """The verbs on an empty shard."""
    with redis.Redis.from_url(any_redis_url) as client:
        yield Verbs(client)
