"""What a handler's call carries to an outside service, and when it is not made at all."""

from collections.abc import Iterator
from typing import Any, cast

import httpx
import pytest

from backend_loop.alias import alias
from backend_loop.course import Course, Done
from backend_loop.lease import Lease
from backend_loop.model import Model
from backend_loop.outside import Outside
from backend_loop.redis_clock import RedisClock, boottime
from backend_loop.services import Services, ServiceUnavailable
from backend_loop.store import Claimed, LapsedError
from backend_loop.toolbox import DeadlinePassedError, Toolbox
from shared.envelope import Envelope
from shared.status import Status
from shared.telemetry import Trace
from tests.services import OutsideServices

NONE = cast("Any", None)  # what is never asked for here
LINES = [{"sku": "lamp", "quantity": 1}]


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OutsideServices]:
    with OutsideServices(tmp_path_factory.mktemp("outside")) as outside:
        yield outside


def tools(
    services: Services | None,
    *,
    task: str = "m",
    left_s: float = 60,
    leased: bool = True,
    undoing: bool = False,
    model: Model | None = None,
) -> Any:
    """Of one run of RESERVING, or of its undo."""
    lease, clock = Lease(0, 60.0, lambda _owner: None), RedisClock()
    if leased:
        lease.renewed(lease.owner, boottime())
    deadline = clock.now_ms() + round(left_s * 1000)
    known = {"task_id": task, "owner": lease.owner, "fence": 7, "deadline": deadline, "key_run": 2}
    course = Course("RESERVING", Status.RUNNING)
    if undoing:
        course = Course("RESERVING", Status.COMPENSATING, done=(Done("RESERVING", 3),))
    text: dict[str, Any] = {"type": "t", "task_id": "m", "correlation_id": "m", "source": "http", "created_at": ""}
    return Toolbox(
        claimed=Claimed(**(dict.fromkeys(Claimed._fields, NONE) | known)),
        course=course,
        envelope=Envelope(**text, v=1, payload_version=1, payload={}),
        payload=NONE,
        context=NONE,
        outside=Outside(
            clock=clock, lease=lease, admission=NONE, executors=NONE, wakes=NONE, services=services, model=model
        ),
        trace=Trace(),
        midway=NONE,
    )


async def test_an_order_carries_key_and_fence_and_an_undo_names_what_it_undoes(outside: OutsideServices) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        services = Services(outside.url, client)
        made = await tools(services).order("stock/reservations", {"order": "A", "lines": LINES})
        assert made["id"] == "m:2:RESERVING:1"
        back = tools(services, undoing=True)
        assert (back.key, back.undoes) == ("m:2:UNDO_RESERVING:3", "m:2:RESERVING:3")
        await back.order(f"stock/reservations/{made['id']}/release", {"order": "A"})
    journal = outside.page("A")["journal"]
    assert [(line["key"], line["fence"]) for line in journal] == [("m:2:RESERVING:1", 7), ("m:2:UNDO_RESERVING:3", 7)]


async def test_p6_p14_nothing_is_ordered_without_a_lease_or_past_the_deadline(outside: OutsideServices) -> None:
    body = {"order": "B", "lines": LINES}
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        services = Services(outside.url, client)
        with pytest.raises(LapsedError):
            await tools(services, leased=False).order("stock/reservations", body)
        with pytest.raises(DeadlinePassedError):
            await tools(services, left_s=-1).order("stock/reservations", body)
        with pytest.raises(ServiceUnavailable, match="no time is left"):
            await tools(services, left_s=-1).ask("stock/items/lamp")
        past = tools(services, task="late", left_s=-1, undoing=True)
        assert (await past.order("stock/reservations/x/release", {"order": "B"}))["state"] == "called_off"
    assert [line["verb"] for line in outside.page("B")["journal"]] == ["release"], "an undo has no deadline"


async def test_p6_p14_no_model_is_asked_without_a_lease_or_past_the_deadline(outside: OutsideServices) -> None:
    said = [{"role": "user", "content": "hello"}]
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        model = Model(f"{outside.url}/model/v1", client, "scripted")
        with pytest.raises(LapsedError):
            await tools(None, model=model, leased=False).think(said)
        with pytest.raises(DeadlinePassedError):
            await tools(None, model=model, left_s=-1).think(said)
        assert outside.http.get("/asked").json() == {}
        assert "do not know" in (await tools(None, model=model).think(said)).text
    assert outside.http.get("/asked").json() == {alias("m:2:RESERVING:1"): 1}, "with the key of the state"
    with pytest.raises(ServiceUnavailable, match="set DUALLOOP_MODEL_URL"):
        await tools(None).think(said)


async def test_without_services_it_says_what_to_do() -> None:
    with pytest.raises(ServiceUnavailable, match="set DUALLOOP_OUTSIDE_URL"):
        await tools(None).ask("stock/items/lamp")
