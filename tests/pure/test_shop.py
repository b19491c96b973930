"""What the shop's missions take on trust, and what they look at themselves."""

from typing import Any

import pytest

from backend_loop.missions.order_fulfil import OrderFulfil
from backend_loop.missions.payment_ship import PaymentShip
from backend_loop.testing import Answers, Bench, Call, RefusedError, Trial
from tests.pure.exporting import exported

ORDER = {"order": "S-1", "customer": "ada", "lines": [{"sku": "lamp", "quantity": 1}]}
PRICE = 4_990
PAID = "PAYMENT_CONFIRMED"


def kept(call: Call) -> dict[str, Any]:
    return {"id": call.key, **call.body}


def at_the_bank(state: str, amount: int = PRICE) -> dict[str, Any]:
    return {"id": "p", "order": "S-1", "state": state, "amount_cents": amount}


SHOP: dict[str, Answers] = {
    "stock/items/*": {"sku": "lamp", "price_cents": PRICE, "available": 9},
    "stock/reservations": kept,
    "stock/reservations/*/*": {},
    "shipping/addresses/*": {"street": "Short Street 1", "city": "London"},
    "shipping/shipments": kept,
    "shipping/shipments/*/cancel": {},
    "logistics/waybills": lambda call: {"waybill": "WB-1", **call.body},
    "notification/messages": kept,
    "payment/orders": kept,
    "payment/orders/*/refund": {},
}


def paying(*said_by_the_bank: dict[str, Any], **payload: Any) -> Trial:
    bank: dict[str, Answers] = {"payment/orders/*": list(said_by_the_bank)}
    return Bench(PaymentShip, outside=SHOP | bank).run({**ORDER, **payload})


def shipped(mission: Trial) -> bool:
    return any(call.path == "shipping/shipments" for call in mission.calls)


def test_what_the_bank_itself_says_was_paid_is_shipped() -> None:
    mission = paying(at_the_bank("paid")).event(PAID, {"amount_cents": 1, "from": "anybody"}).run()
    assert mission.status == "SUCCEEDED", mission.told()
    assert mission.result is not None
    assert mission.result["paid"] == {"payment": "p", "order": "S-1", "amount_cents": PRICE}
    assert next(call.path for call in mission.calls if call.state == "CHECKING_PAYMENT").endswith(":1:PAYING:1")


def test_anybody_s_word_for_a_payment_that_the_bank_does_not_have_ships_nothing_and_ends_nothing() -> None:
    mission = paying(at_the_bank("ordered"), at_the_bank("paid")).event(PAID, {"amount_cents": PRICE}).run()
    assert (mission.status, mission.states[-1], shipped(mission)) == ("WAITING", "CHECKING_PAYMENT", False)
    mission.event(PAID, {"amount_cents": PRICE}).run()
    assert (mission.status, shipped(mission)) == ("SUCCEEDED", True), mission.told()


def test_words_without_money_do_not_make_the_shop_wait_any_longer() -> None:
    mission = paying(*[at_the_bank("ordered")] * 3, patience_s=60).advance(50)
    mission.event(PAID).run()
    assert mission.status == "WAITING", mission.told()
    mission.advance(11)
    assert (mission.status, mission.undone) == ("FAILED", ["PAYING"]), mission.told()
    assert not shipped(mission)


def test_another_amount_at_the_bank_is_given_back() -> None:
    mission = paying(at_the_bank("paid", 1)).event(PAID, {"amount_cents": PRICE, "much": "x" * 50_000}).run()
    assert (mission.status, mission.undone) == ("FAILED", ["PAYING"])
    assert mission.error is not None
    assert mission.error["message"] == "NotAsPromisedError: 1 cents were paid, and not 4990"


def begun_with_version_1(mission: Trial, state: str = "PAYING") -> dict[str, Any]:
    """As version 1 would have left it: it knew neither the payment's id nor until when it waits."""
    old = exported(mission, version=1, state=state)
    old["envelope"]["payload_version"] = 1
    old["document"].pop("version")
    del old["document"]["context"]["payment"], old["document"]["context"]["until"]
    return old


@pytest.mark.parametrize("words", [1, 2])
def test_what_waited_for_its_money_before_the_bank_was_asked_is_paid_and_shipped(words: int) -> None:
    """Nor does a word that comes before the money end it."""
    old = begun_with_version_1(paying())
    bank: dict[str, Answers] = {"payment/orders/*": [at_the_bank("ordered"), at_the_bank("paid")][-words:]}
    mission = Bench(PaymentShip, outside=SHOP | bank).resume(old)
    assert mission.status == "WAITING", mission.told()
    for _ in range(words):
        mission.event(PAID, {"amount_cents": 1}).run()
    assert (mission.status, shipped(mission)) == ("SUCCEEDED", True), mission.told()
    asked = next(call.path for call in mission.calls if call.state == "CHECKING_PAYMENT")
    assert asked == f"payment/orders/{old['task_id']}:1:PAYING:1", "by the key that its undo would name too"


@pytest.mark.parametrize(
    ("said", "status"), [(at_the_bank("paid"), "SUCCEEDED"), (at_the_bank("ordered"), "FAILED")], ids=["paid", "not"]
)
def test_what_came_to_shipping_on_anybody_s_word_is_asked_about_first(said: dict[str, Any], status: str) -> None:
    old = begun_with_version_1(paying(), "PREPARING_SHIPMENT")
    for name in ("waiting_for", "awaited", "wake_at"):
        old["document"].pop(name, None)
    old["document"] |= {"visits": {"INITIAL": 1, "PAYING": 1, "PREPARING_SHIPMENT": 1}, "done": [["PAYING", 1]]}
    mission = Bench(PaymentShip, outside=SHOP | {"payment/orders/*": said}).resume(old | {"place": "lane"})
    assert (mission.status, shipped(mission)) == (status, status == "SUCCEEDED"), mission.told()
    assert ("PAYING" in mission.undone) is not shipped(mission)


@pytest.mark.parametrize(
    ("snapshot", "sentence"),
    [
        ({"prices": None}, "the snapshot's prices are no object of cents by item"),
        ({"prices": [1]}, "the snapshot's prices are no object of cents by item"),
        ({"prices": {"lamp": "4990"}}, "the snapshot's price of lamp is '4990', and no number of cents"),
        ({"prices": {"lamp": None}}, "the snapshot's price of lamp is None, and no number of cents"),
        ({"prices": {"lamp": True}}, "the snapshot's price of lamp is True, and no number of cents"),
        ({"prices": {"lamp": "9" * 9_000}}, f"the snapshot's price of lamp is '{'9' * 59}…, and no number"),
    ],
)
@pytest.mark.parametrize("shop", [OrderFulfil, PaymentShip])
def test_a_snapshot_that_is_nonsense_is_said_at_once_and_blamed_on_nobody_else(
    shop: type[OrderFulfil | PaymentShip], snapshot: dict[str, Any], sentence: str
) -> None:
    mission = Bench(shop, outside=SHOP).run(ORDER, snapshot=snapshot)
    assert mission.error is not None
    assert (mission.error["code"], mission.error["attempts"]) == ("permanent", 1), "nor does it open stock's breaker"
    assert sentence in mission.error["message"]


@pytest.mark.parametrize("prices", [{}, {"kettle": "?"}, {"lamp": PRICE}, {"lamp": 6_000.0}])
def test_prices_that_hold_or_are_of_other_things_are_fine(prices: dict[str, Any]) -> None:
    assert Bench(OrderFulfil, outside=SHOP).run(ORDER, snapshot={"prices": prices}).status == "SUCCEEDED"


@pytest.mark.parametrize("name", [".", "..", "..%2F"])
@pytest.mark.parametrize("where", ["customer", "sku"])
def test_no_name_leads_to_another_path_of_a_service(where: str, name: str) -> None:
    payload = {**ORDER, where: name} if where != "sku" else {**ORDER, "lines": [{"sku": name, "quantity": 1}]}
    with pytest.raises(RefusedError):
        Bench(OrderFulfil, outside=SHOP).run(payload)


@pytest.mark.parametrize(
    ("shop", "answers", "sentence"),
    [
        (OrderFulfil, {"stock/items/*": {}}, "stock gave an answer without 'available'"),
        (OrderFulfil, {"shipping/addresses/*": {"street": "S"}}, "shipping gave an answer without 'city'"),
        (OrderFulfil, {"stock/reservations": {}}, "stock gave an answer without 'id'"),
        (PaymentShip, {"payment/orders": {"detail": "?"}}, "payment gave an answer without 'id'"),
    ],
)
def test_an_answer_that_lacks_something_is_blamed_on_who_gave_it_and_all_is_put_back(
    shop: type[OrderFulfil | PaymentShip], answers: dict[str, Answers], sentence: str
) -> None:
    mission = Bench(shop, outside=SHOP | answers).run(ORDER)
    assert mission.error is not None
    assert mission.error["code"] == "retries_exhausted"
    assert mission.error["message"].startswith(f"ServiceUnavailable: {sentence} (try "), mission.error
    assert not [call for call in mission.effects if call.path == "shipping/shipments"]
