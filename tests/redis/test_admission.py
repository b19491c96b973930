"""Admission: what is asked before a handler begins, what it costs, and what is said of it afterwards (P12)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

import pytest
import redis

from backend_loop.admission import SPREAD_MS, Admission
from backend_loop.breakers import Breakers, Call
from backend_loop.course import Course
from backend_loop.dependency import Breaker, Dependency
from backend_loop.machine import HOLD_MS
from backend_loop.mission import Mission, MissionType, state, steps
from backend_loop.outcomes import Fail, Go, NoPermit, Outcome, Retry, Sleep, Stop, WaitFor
from backend_loop.redis_clock import RedisClock, boottime
from backend_loop.states import StateSpec
from backend_loop.store import Claimed, LostError
from shared import keys
from shared.ids import shard_of
from shared.redis import Link
from shared.settings import Settings
from shared.status import ErrorCode, Reason, Status
from tests.conftest import StartRedis
from tests.redis.scripts_client import New, Verbs
from tests.waiting import eventually

BANK = Dependency("bank", concurrency=3, breaker=Breaker(failures=2))
POST = Dependency("post", per_target=1)


class Plain(Mission):
    """Without a limit."""

    type = "plain"
    table = steps("WORKING")

    @state("WORKING")
    async def work(self, _tools: Any) -> Outcome:
        return Go("done")


class Banking(Mission):
    """Several states, several uses."""

    type = "banking"
    concurrency: ClassVar[int | None] = 5
    table = steps("PAYING", "SENDING", "BOTH")

    @state("PAYING", uses=(BANK,))
    async def pay(self, _tools: Any) -> Outcome:
        return Go("done")

    @state("SENDING", uses=(POST,))
    async def send(self, _tools: Any) -> Outcome:
        return Go("done")

    @state("BOTH", uses=(POST, BANK))
    async def both(self, _tools: Any) -> Outcome:
        return Go("done")


class Desk:
    """One process' admission to shard 0, and missions to admit."""

    def __init__(self, link: Link, client: redis.Redis, **settings: Any) -> None:
        self.verbs = Verbs(client)
        values = Settings(_env_file=None, **settings)
        self.clock = RedisClock()
        self.clock.set(self.verbs.now(), boottime())
        self.breakers = Breakers(link, values.shards)
        self.admission = Admission(link, 0, values, self.clock, self.breakers)

    def claimed(self, name: str, target: str = "", tenant: str = "a") -> Claimed:
        self.verbs.accept(New(name, target=target, lane=f"normal:default:{tenant}"))
        taken = self.verbs.take("w1")[name]
        return Claimed(name, "w1", *taken[1:-2], unread=())

    async def enter(
        self, claimed: Claimed, state_: str = "PAYING", definition: MissionType = Banking.definition, attempt: int = 1
    ) -> NoPermit | None:
        course = Course(state_, Status.RUNNING, attempt)
        return await self.admission.enter(claimed, course, spec(state_, definition), definition)

    async def left(self, claimed: Claimed, outcome: Outcome | None, state_: str = "PAYING") -> None:
        """And wait until Redis has heard of it."""
        await self.admission.left(claimed, spec(state_), outcome)
        caller = f"{claimed.task_id}:{claimed.fence}"
        calls = [f"calls:{one.name}" for one in spec(state_).uses]
        await eventually(lambda: all(self.verbs.score(key, caller) is None for key in calls))

    def breaker(self, name: str = "bank", shard: int = 0) -> dict[str, str]:
        raw = self.verbs.redis.hgetall(keys.prefix(shard) + f"breaker:{name}")
        return {field.decode(): value.decode() for field, value in raw.items()}

    def asked(self) -> int:
        """Scripts run since the last time."""
        stats = self.verbs.redis.info("commandstats")
        self.verbs.redis.config_resetstat()
        return sum(stats[name]["calls"] for name in ("cmdstat_evalsha", "cmdstat_eval") if name in stats)


def spec(state_: str, definition: MissionType = Banking.definition) -> StateSpec:
    return definition.states[state_]


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[Link]:
    link = await Link(redis_url).open(wait_s=30)
    yield link
    await link.close()


@pytest.fixture
def desk(link: Link, client: redis.Redis) -> Desk:
    return Desk(link, client)


async def test_without_a_limit_nothing_is_asked(desk: Desk) -> None:
    one = desk.claimed("m")
    desk.asked()

    assert await desk.enter(one, "WORKING", Plain.definition) is None
    await desk.admission.left(one, spec("WORKING", Plain.definition), Go("done"))
    assert desk.asked() == 0


async def test_one_question_for_all_permits_one_for_each_breaker_and_a_report(desk: Desk) -> None:
    one = desk.claimed("m", target="a:lamp")
    desk.asked()

    assert await desk.enter(one) is None
    assert desk.asked() == 2
    await desk.left(one, Go("done"))
    assert desk.asked() == 1
    assert desk.verbs.record("m")["permits"] == "dep:bank type:banking"


async def test_a_target_has_permits_of_its_own(desk: Desk) -> None:
    one, other, elsewhere = desk.claimed("m", "a:lamp"), desk.claimed("n"), desk.claimed("o", "a:door")
    desk.verbs.run("permit", "w1", "n", other.fence, "dep:post:a:lamp", 1)  # as if it were on that target too

    refused = await desk.enter(one, "SENDING")
    assert refused is not None
    assert refused.why == "no permit of dep:post:a:lamp is free, 0 wait in front"
    assert await desk.enter(elsewhere, "SENDING") is None
    assert await desk.enter(other, "SENDING") is None, "without a target there is nothing to count"


async def test_a_limit_is_shared_out_among_the_shards(link: Link, client: redis.Redis) -> None:
    desk = Desk(link, client, shards=2)
    refused = [await desk.enter(desk.claimed(name)) for name in "abc"]

    assert [one is None for one in refused] == [True, True, False], "three over two shards: two in each"


async def test_a_breaker_is_at_home_in_one_shard(link: Link, client: redis.Redis) -> None:
    desk = Desk(link, client, shards=8)
    home = shard_of("bank", 8)
    one = desk.claimed("m")
    await desk.enter(one)
    await desk.left(one, Retry("no"))

    await eventually(lambda: desk.breaker(shard=home).get("fails") == "1")
    assert home != 0


async def test_a_tenant_has_a_limit_where_it_is_set(link: Link, client: redis.Redis) -> None:
    desk = Desk(link, client, tenant_concurrency=1)
    names = (("m", "a"), ("n", "a"), ("o", "b"))
    refused = [await desk.enter(desk.claimed(n, tenant=t), "WORKING", Plain.definition) for n, t in names]

    assert [one.why if one is not None else "" for one in refused] == [
        "",
        "no permit of tenant:a is free, 0 wait in front",
        "",
    ]


async def test_whoever_has_lost_its_lease_is_told(desk: Desk) -> None:
    one = desk.claimed("m")
    desk.verbs.release("w1", ("m", one.fence))

    with pytest.raises(LostError):
        await desk.enter(one)


async def test_a_lost_answer_is_asked_for_again(desk: Desk) -> None:
    one = desk.claimed("m")
    desk.verbs.redis.client_kill_filter(_type="normal", skipme=True)

    assert await desk.enter(one) is None
    assert desk.verbs.record("m")["permits"] == "dep:bank type:banking"


async def test_a_redis_that_refuses_is_asked_again_after_a_pause(start_redis: StartRedis) -> None:
    """A replica that nobody may write to, until it is a master again."""
    server = start_redis()
    link = await Link(server.url).open(wait_s=30)
    with server.client() as client:
        desk = Desk(link, client)
        one = desk.claimed("m")
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        desk.asked()
        asking = asyncio.ensure_future(desk.enter(one))
        await asyncio.wait([asking], timeout=0.5)
        assert not asking.done()
        assert client.info("stats")["total_error_replies"] < 20
        client.execute_command("REPLICAOF", "NO", "ONE")
        assert await asking is None
    await link.close()


async def test_a_long_queue_asks_less_often_and_each_at_another_time(desk: Desk) -> None:
    for n in range(3):
        await desk.enter(desk.claimed(f"holds{n}"))
    longest, shortest = list[int](), list[int]()  # as counted from before it was asked, and from after that
    for n in range(30):
        one, before = desk.claimed(f"w{n:02}"), desk.clock.now_ms()
        refused = await desk.enter(one)
        assert refused is not None
        longest.append(refused.until_ms - before)
        shortest.append(refused.until_ms - desk.clock.now_ms())

    assert longest[0] >= 500
    assert shortest[0] <= 1_500
    assert longest[-1] >= 1_900
    assert shortest[-1] < HOLD_MS, "short enough to keep its target"
    assert len(set(longest)) > 20


async def test_while_it_is_known_to_be_left_alone_nothing_is_asked(desk: Desk) -> None:
    one = desk.claimed("m")
    for _ in range(2):
        await desk.enter(one)
        await desk.left(one, Retry("no"))
    asked = await desk.enter(one)
    desk.asked()
    known = [await desk.enter(one) for _ in range(20)]

    assert desk.asked() == 0
    until = int(desk.breaker()["until"])
    assert asked is not None
    assert asked.why == "bank is left alone: open"
    times = {refused.until_ms for refused in known if refused is not None}
    assert until <= min(times) < max(times) <= until + SPREAD_MS[1] + 50
    assert len(times) > 10, "not all at once"


async def test_what_was_not_called_after_all_is_given_back(desk: Desk) -> None:
    one = desk.claimed("m", "a:lamp")
    for _ in range(2):
        await desk.enter(one)
        await desk.left(one, Retry("no"))
    await desk.breakers.ask(POST, Call("other:1", 60_000, again=False))
    refused = await desk.enter(one, "BOTH")

    assert refused is not None
    await eventually(lambda: desk.verbs.redis.zcard(desk.verbs.key("calls:post")) == 1)


@pytest.mark.parametrize(
    ("outcome", "fails"),
    [
        (Retry("no"), "open"),
        (Retry("too long", ErrorCode.TIMEOUT), "open"),
        (Go("done"), None),
        (Fail("an invalid card"), None),
        (Sleep(1), None),
        (WaitFor("PAID"), None),
        (Stop(Reason.REQUESTED), None),
        (Fail("too late", ErrorCode.DEADLINE), "1"),
        (None, "1"),
    ],
)
async def test_a_retry_is_a_failure_and_all_else_an_answer(
    desk: Desk, outcome: Outcome | None, fails: str | None
) -> None:
    """After one failure: a second one opens it, an answer begins the count anew, one that was cut leaves it."""
    one = desk.claimed("m")
    for answer in (Retry("no"), outcome):
        assert await desk.enter(one) is None
        await desk.left(one, answer)

    found = desk.breaker()
    assert found.get("phase", found.get("fails")) == fails


async def test_a_retry_after_is_passed_on(desk: Desk) -> None:
    one = desk.claimed("m")
    await desk.enter(one)
    await desk.left(one, Retry("busy", after_s=30))
    refused = await desk.enter(one, attempt=2)

    assert refused is not None
    assert refused.why == "bank is left alone: retry_after"
    assert 15_000 < refused.until_ms - desk.clock.now_ms() <= 30_000 + SPREAD_MS[1]


async def test_a_second_try_is_asked_for_as_one(desk: Desk) -> None:
    one = desk.claimed("m")
    await desk.enter(one, attempt=2)
    assert float(desk.breaker()["tokens"]) == 9

    began = boottime()
    await desk.enter(one, attempt=1)
    assert 9.2 <= float(desk.breaker()["tokens"]) <= 9.3 + 10 * (boottime() - began)
