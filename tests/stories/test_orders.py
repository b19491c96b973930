"""What the shop's missions look at again, undo, and do without; nothing is killed here."""

from collections.abc import AsyncIterator
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
import pytest_asyncio

from tests.processes.commands import Front
from tests.processes.orders import check_books, check_order
from tests.services import OutsideServices
from tests.stories.stack import running
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")
SERVICES = ("stock", "payment", "shipping", "logistics", "notification")


class Shop:
    """A client of the front, and the services."""

    def __init__(self, front: Front, outside: OutsideServices) -> None:
        self.front, self.outside = front, outside

    async def send(self, type_: str, order: str, customer: str = "ada", **more: Any) -> str:
        command = more.pop("command", {})
        lines = more.pop("lines", [{"sku": "lamp", "quantity": 1}])
        return await self.front.send(
            type_, payload={"order": order, "customer": customer, "lines": lines, **more}, **command
        )

    async def end(self, one: str, order: str) -> dict[str, Any]:
        """Its end, with books that balance."""
        document = await self.front.end(one)
        check_order(self.outside, order, document)
        check_books(self.outside)
        return document

    async def ends(self, type_: str, order: str, customer: str = "ada", **more: Any) -> dict[str, Any]:
        return await self.end(await self.send(type_, order, customer, **more), order)

    async def waits(self, one: str) -> bool:
        return bool((await self.front.result(one, wait=0))["waiting_for"] == "event")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_shop(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    async with running(module_redis_url, folder, workers=0) as stack:
        with OutsideServices(folder, stack.url) as outside:
            await stack.start([stack.worker(DUALLOOP_OUTSIDE_URL=outside.url)])
            front = Front(stack.foregrounds[0])
            yield Shop(front, outside)
            await front.client.aclose()


@pytest.fixture
def shop(shared_shop: Shop) -> Shop:
    """All well there; each test has orders of its own."""
    for service in SERVICES:
        shared_shop.outside.faults(service)
    return shared_shop


async def test_an_order_is_fulfilled_where_the_customer_lives_now(shop: Shop) -> None:
    snapshot = {"address": {"street": "Old Street 1", "city": "London"}, "prices": {"lamp": 4990}}
    document = await shop.ends("order.fulfil", "A1", command={"snapshot": snapshot})
    result = document["result"]
    assert (result["total_cents"], result["moved"], result["notified"]) == (4990, True, True)
    assert result["address"] == {"street": "Short Street 1", "city": "London"}


async def test_a_price_that_has_risen_since_the_customer_saw_it_ends_it_before_anything_is_done(shop: Shop) -> None:
    document = await shop.ends("order.fulfil", "A2", command={"snapshot": {"prices": {"lamp": 4000}}})
    assert document["error"]["code"] == "permanent"
    assert "the customer saw 4000" in document["error"]["message"]
    assert shop.outside.page("A2")["journal"] == []


async def test_a_parcel_comes_without_a_message_too(shop: Shop) -> None:
    shop.outside.faults("notification", refuses=True)
    document = await shop.ends("order.fulfil", "A3")
    assert (document["status"], document["result"]["notified"]) == ("SUCCEEDED", False)


async def test_whatever_service_refuses_all_is_put_back(shop: Shop) -> None:
    for service in ("stock", "shipping", "logistics"):
        shop.outside.faults(service, refuses=True)
        document = await shop.ends("order.fulfil", service)
        assert (document["status"], document["error"]["code"]) == ("FAILED", "permanent")
        shop.outside.faults(service)


async def test_a_reply_that_was_lost_is_asked_for_again_with_the_same_key(shop: Shop) -> None:
    for service in SERVICES:
        shop.outside.faults(service, lose_reply=True, times=1)
    for type_, order in (("order.fulfil", "A5"), ("payment.ship", "B5")):
        assert (await shop.ends(type_, order))["status"] == "SUCCEEDED"


async def test_the_bank_s_word_is_waited_for_and_the_address_read_after_it(shop: Shop) -> None:
    shop.outside.faults("payment", idle=True)
    one = await shop.send("payment.ship", "A6", "bo")
    await eventually(lambda: shop.waits(one))
    new = {"street": "New Street 9", "city": "Paris"}
    shop.outside.bench("/customers/bo", address=new)
    payment = shop.outside.page("A6")["standing"]["payment"]["id"]
    assert shop.outside.post(f"/payment/orders/{payment}/pay", key="hand:A6").is_success is False, "another order"
    assert shop.outside.post(f"/payment/orders/{payment}/pay", key="hand:A6", order="A6").is_success
    document = await shop.end(one, "A6")
    assert document["status"] == "SUCCEEDED"
    assert document["result"]["address"] == new
    assert document["result"]["paid"] == {"payment": payment, "order": "A6", "amount_cents": 4990}


async def test_what_is_sold_out_when_it_is_paid_is_refunded(shop: Shop) -> None:
    shop.outside.faults("payment", idle=True)
    before = shop.outside.books()["money"]["customer:ada"]
    lines = [{"sku": "chair", "quantity": 3}]
    one = await shop.send("payment.ship", "A7", lines=lines)
    await eventually(lambda: shop.waits(one))
    assert (await shop.ends("order.fulfil", "B7", lines=lines))["status"] == "SUCCEEDED"
    shop.outside.faults("payment")
    document = await shop.end(one, "A7")
    assert document["error"]["state"] == "PREPARING_SHIPMENT"
    assert "0 are there" in document["error"]["message"]
    assert document["result"]["undone"] == ["PREPARING_SHIPMENT", "PAYING"]
    refunds = [line for line in shop.outside.page("A7")["journal"] if line["verb"] == "refund"]
    assert len(refunds) == 1
    assert shop.outside.books()["money"]["customer:ada"] == before


@pytest.mark.parametrize("how", ["timed out", "cancelled"])
async def test_what_nobody_pays_can_be_paid_no_more(shop: Shop, how: str) -> None:
    shop.outside.faults("payment", idle=True)
    order = how.replace(" ", "-")
    one = await shop.send("payment.ship", order, patience_s=0.5 if how == "timed out" else 60)
    if how == "cancelled":
        await eventually(lambda: shop.waits(one))
        await shop.front.cancel(one)
    document = await shop.end(one, order)
    assert document["status"] == ("FAILED" if how == "timed out" else "CANCELLED")
    assert document["result"]["undone"] == ["PAYING"]
    assert shop.outside.page(order)["states"] == {"payment": "called_off"}


async def test_without_services_it_says_what_to_do(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as stack:
        front = Front(stack.foregrounds[0])
        payload = {"order": "A", "customer": "ada", "lines": [{"sku": "lamp", "quantity": 1}]}
        one = await front.send("order.fulfil", payload=payload)

        async def told() -> bool:
            return "set DUALLOOP_OUTSIDE_URL" in (await front.client.get(f"/v1/missions/{one}")).text

        await eventually(told)
        stack.expire(one)
        assert (await front.end(one))["status"] == "FAILED"
        assert await told()
        said = stack.workers[0].log.read_text()
        assert "ServiceUnavailable: no outside services" in said
        assert "Traceback" not in said, "what a type foresees is a line, not a stack"
        await front.client.aclose()


async def test_the_bank_s_word_outlives_the_bank_and_the_front(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, workers=0) as stack:
        with OutsideServices(tmp_path, stack.url) as outside:
            await stack.start([stack.worker(DUALLOOP_OUTSIDE_URL=outside.url)])
            shop = Shop(Front(stack.foregrounds[0]), outside)
            outside.faults("payment", idle=True)
            one = await shop.send("payment.ship", "A")
            await eventually(lambda: shop.waits(one))
            stack.foregrounds[0].kill()
            payment = outside.page("A")["standing"]["payment"]["id"]
            assert outside.post(f"/payment/orders/{payment}/pay", key="hand:A", order="A").is_success
            outside.end(SIGKILL)
            outside.start()
            await stack.start(stack.foregrounds)
            assert (await shop.end(one, "A"))["status"] == "SUCCEEDED"
            await shop.front.client.aclose()
