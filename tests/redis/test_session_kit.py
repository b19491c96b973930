"""The sessions of the test kit answer as the script does, whatever is asked in which order."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from backend_loop.testing.sessions import KitSessions, Memory
from tests.redis.scripts_client import HOUR_MS, Verbs

IDS = some.sampled_from(["m", "n", "o"])
QUESTIONS = some.sampled_from(["m:1", "m:2", "n:1"])
ASKED = some.one_of(
    some.tuples(some.just("meet"), some.sampled_from(["", "hall", "den"]), some.sampled_from(["", "en", "zh"]), IDS),
    some.tuples(some.just("did"), some.one_of(IDS, some.integers(0, 12).map(str)), some.sampled_from(["", "1", "2"])),
    some.tuples(some.just("undid"), some.one_of(IDS, some.integers(0, 12).map(str))),
    some.tuples(some.just("ask"), QUESTIONS, some.just(str(HOUR_MS)), some.sampled_from(["{}", '{"kind":"confirm"}'])),
    some.tuples(some.just("take"), QUESTIONS, IDS),
    some.tuples(
        some.just("hear"),
        IDS,
        some.sampled_from(["hall", "den"]),
        some.sampled_from([10_000, 10_500, 11_000, 11_001, 60_000]),
        some.just(1_000),
    ),
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some.lists(ASKED, max_size=30))
def test_the_kit_answers_as_the_script_does(redis_url: str, asked: list[tuple[Any, ...]]) -> None:
    world = SimpleNamespace(sessions=Memory(), time=SimpleNamespace(now_ms=lambda: 0))
    kit = KitSessions(cast("Any", world))
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        verbs = Verbs(client)
        for verb, *args in asked:
            said = (verb, "a:s", HOUR_MS, *args)
            told = asyncio.run(kit._script(0, *said))
            assert told == verbs.run("session", *said), said
