"""What Lua makes of times and large numbers: RFC 3339 as Python writes it, and no digit lost."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.clock import rfc3339
from tests.redis.scripts_client import FAR, New, Verbs

EDGES = [
    0,
    999,
    951_782_399_999,  # the last ms before 29 February 2000
    951_868_799_999,  # and of it
    1_709_164_800_000,  # 29 February 2024
    4_107_542_399_000,  # 28 February 2100, no leap year
    4_107_542_400_000,
    1_767_225_599_999,  # the end of 2025
    1_770_000_000_000,  # a number that `%g` would shorten
    9_999_999_999_999,
]


def lua(verbs: Verbs, body: str, *args: int | str) -> Any:
    """Run a body behind the moves that all scripts share: `places.lua` is what comes before a verb's own header."""
    sweep = verbs.scripts["sweep"].text
    places = sweep[: sweep.index("-- Deadlines that have come")]
    return verbs.redis.eval(places + body, 1, verbs.key(""), *map(str, args))


@pytest.mark.parametrize("seed", range(4))
def test_rfc3339_is_python_s(verbs: Verbs, seed: int) -> None:
    draw = random.Random(seed)
    times = [*EDGES, *(draw.randrange(10_000_000_000_000) for _ in range(250))]
    body = "local out = {} for i, ms in ipairs(ARGV) do out[i] = rfc3339(tonumber(ms)) end return out"
    written = [one.decode() for one in lua(verbs, body, *times)]

    assert written == [rfc3339(one) for one in times]
    assert [round(datetime.fromisoformat(one).timestamp() * 1000) for one in written] == times


def test_each_day_of_four_centuries(verbs: Verbs) -> None:
    body = (
        "local out = {} for i, ms in ipairs(ARGV) do out[i] = string.sub(rfc3339(tonumber(ms)), 1, 10) end return out"
    )
    days = range(0, 146_097 * 86_400_000, 86_400_000)
    for start in range(0, len(days), 5000):
        part = days[start : start + 5000]
        written = [one.decode() for one in lua(verbs, body, *part)]
        assert written == [datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d") for ms in part]


def test_the_time_of_an_event_is_redis_own(verbs: Verbs) -> None:
    before = verbs.now()
    verbs.accept(New("m"))
    verbs.take("w1")

    at = round(datetime.fromisoformat(verbs.log("m")[0]["at"]).timestamp() * 1000)
    assert before <= at <= verbs.now()


@pytest.mark.parametrize("ms", [1_770_000_000_000, 1_800_000_000_000, FAR, 99_999_999_999_999])
def test_times_of_up_to_fourteen_digits_are_whole_in_text_and_in_calls(verbs: Verbs, ms: int) -> None:
    """`..` writes 14 digits; an argument of a call keeps 17."""
    body = """
      local n = tonumber(ARGV[1])
      call('HSET', P .. 'h', 'f', n)
      call('ZADD', P .. 'z', n, 'm')
      return {'' .. n, call('HGET', P .. 'h', 'f'), call('ZSCORE', P .. 'z', 'm'),
        call('ZRANGE', P .. 'z', 0, -1, 'WITHSCORES')[2], tostring(n + 0)}"""

    assert lua(verbs, body, ms) == [str(ms).encode()] * 5


def test_the_rank_of_a_waiter_is_exact(verbs: Verbs) -> None:
    """When it came, 30 s later for each lower priority, then the order number: 16 digits, and a double has them all."""
    verbs.redis.set(verbs.key("order"), 999_999_999_990)
    before = verbs.now()
    verbs.accept(
        New("holder", target="a:lamp"), *(New(f"w{n}", target="a:lamp", lane="bulk:default:a") for n in range(3))
    )

    scores = verbs.redis.zrange(verbs.key("waiters:a:lamp"), 0, -1, withscores=True)
    came = {int(score) // 4096 - 60_000 for _, score in scores}
    assert len(came) == 1
    assert before <= min(came) <= verbs.now()
    assert [(name, int(score) % 4096) for name, score in scores] == [
        (f"w{n}".encode(), (999_999_999_992 + n) % 4096) for n in range(3)
    ]
    assert verbs.record("w2")["order"] == "999999999994"


def test_large_counters_are_answered_exactly(verbs: Verbs) -> None:
    verbs.redis.set(verbs.key("fence"), 10**15)
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]

    assert m.fence == 10**15 + 1
    assert verbs.record("m")["fence"] == str(10**15 + 1)
    assert verbs.commit("w1", m.write("end"))[0].word == "OK"
