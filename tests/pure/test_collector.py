"""The bank tells each mission that it was paid, and one that does not listen keeps nobody else from hearing it."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from dualloop.outside.collector import Collector
from dualloop.outside.ledger import Ledger
from dualloop.outside.payment import Bank

Answer = Callable[[httpx.Request], httpx.Response]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger(tmp_path)) as ledger:
        yield ledger


async def told(ledger: Ledger, answer: Answer) -> bool:
    collector = Collector(lambda changed: Bank(ledger, changed), "http://front")
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        return await collector._tell(client)


def left(ledger: Ledger) -> list[str]:
    return [mission for (mission,) in ledger.ask("SELECT mission FROM notices ORDER BY n")]


async def test_a_mission_whose_inbox_is_full_keeps_no_other_one_waiting(ledger: Ledger) -> None:
    for mission in ("full", "one", "two"):
        ledger.notify(mission, {"event": "PAYMENT_CONFIRMED"})
    assert not await told(ledger, lambda request: httpx.Response(429 if "/full/" in request.url.path else 202))
    assert left(ledger) == ["full"]
    assert await told(ledger, lambda _: httpx.Response(202))
    assert left(ledger) == []


async def test_a_front_that_is_away_is_asked_once_and_all_is_kept(ledger: Ledger) -> None:
    asked = list[str]()

    def away(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        raise httpx.ConnectError("away", request=request)

    for mission in ("one", "two"):
        ledger.notify(mission, {"event": "PAYMENT_CONFIRMED"})
    assert not await told(ledger, away)
    assert asked == ["/v1/commands/one/events"]
    assert left(ledger) == ["one", "two"]


@pytest.mark.parametrize("mission", ["a b", "\x00", "?x#y", "é"])
async def test_what_is_no_mission_s_id_ends_nothing(ledger: Ledger, mission: str) -> None:
    """Whoever orders a payment says which mission is to be told."""
    asked = list[str]()

    def never_known(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(404)

    ledger.notify(mission, {"event": "PAYMENT_CONFIRMED"})
    assert await told(ledger, never_known)
    assert left(ledger) == []
    assert all(path.startswith("/v1/commands/") for path in asked)
