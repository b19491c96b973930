"""The outside services as a process: once per key, over their own deaths; their faults; their books."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any

import httpx
import pytest

from backend_loop.services import ServiceRefused, Services, ServiceUnavailable, Stamp
from dualloop.outside.books import audit
from dualloop.outside.ledger import Effect, Ledger, Thing
from tests.services import OutsideServices
from tests.waiting import until

ADDRESS = {"street": "Short Street 1", "city": "London"}
LINES = [{"sku": "lamp", "quantity": 2}]


@pytest.fixture(scope="module")
def shared_outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OutsideServices]:
    with OutsideServices(tmp_path_factory.mktemp("outside")) as outside:
        yield outside


@pytest.fixture
def outside(shared_outside: OutsideServices) -> Iterator[OutsideServices]:
    """All well, and with books that balance whatever the test did."""
    yield shared_outside
    for service in ("stock", "payment", "shipping", "logistics", "notification"):
        shared_outside.faults(service)
    books = shared_outside.books()
    assert books["balanced"], books["faults"]


def call(
    outside: OutsideServices, path: str, body: dict[str, Any] | None = None, *, key: str = "", within_s: float = 60
) -> dict[str, Any]:
    """Through the client that missions have."""

    async def ask() -> dict[str, Any]:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            services = Services(outside.url, client)
            if body is None:
                return await services.get(path, within_s=within_s, traceparent="00-1")
            return await services.post(path, body, within_s=within_s, stamp=Stamp(key, 1, "00-1"))

    return asyncio.run(ask())


def test_an_effect_is_had_once_under_its_key_over_a_death_of_the_services(tmp_path: Path) -> None:
    with OutsideServices(tmp_path) as outside:
        before = outside.item("lamp")["available"]
        first = outside.post("/stock/reservations", key="t:1:R:1", lines=LINES)
        assert first.status_code == 201
        outside.end(SIGKILL)
        outside.start()
        again = outside.post("/stock/reservations", key="t:1:R:1", lines=[{"sku": "lamp", "quantity": 9}])
        assert again.json() == first.json(), "the first answer counts, whatever is asked later"
        assert outside.item("lamp")["available"] == before - 2
        assert outside.books()["balanced"]
        assert outside.end(SIGTERM) == 0
        assert not (tmp_path / "outside.url").exists()
        outside.start()


def test_a_second_one_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with OutsideServices(tmp_path), pytest.raises(AssertionError, match="other outside services run on"):
        OutsideServices(tmp_path).__enter__()


def test_what_was_called_off_before_it_came_is_refused_when_it_comes(outside: OutsideServices) -> None:
    made: list[tuple[str, str, dict[str, Any]]] = [
        ("stock/reservations", "release", {"lines": LINES}),
        ("shipping/shipments", "cancel", {"customer": "ada", "address": ADDRESS, "lines": LINES}),
        ("logistics/waybills", "cancel", {"shipment": "s", "address": ADDRESS}),
        ("payment/orders", "refund", {"customer": "ada", "amount_cents": 5, "mission": "m"}),
    ]
    for n, (things, verb, body) in enumerate(made):
        key, order = f"late{n}:1:X:1", f"LATE-{n}"
        assert outside.post(f"/{things}/{key}/{verb}", key=f"late{n}:1:UNDO_X:1", order=order).is_success
        late = outside.post(f"/{things}", key=key, order=order, **body)
        assert (late.status_code, late.json()["code"]) == (409, "called_off")


def test_an_order_has_one_of_each_and_a_key_one_request(outside: OutsideServices) -> None:
    assert outside.post("/stock/reservations", key="a:1:R:1", order="ONE", lines=LINES).is_success
    other = outside.post("/stock/reservations", key="b:1:R:1", order="ONE", lines=LINES)
    assert (other.status_code, other.json()["code"]) == (409, "order_known")
    reused = outside.post("/stock/reservations", key="a:1:R:1", order="TWO", lines=LINES)
    assert (reused.status_code, reused.json()["code"]) == (422, "key_reused")


def test_a_mission_that_was_taken_over_is_refused_by_its_fence(outside: OutsideServices) -> None:
    assert outside.post("/stock/reservations", key="f:1:R:1", order="F", fence=7, lines=LINES).is_success
    late = outside.post("/stock/reservations/f:1:R:1/commit", key="f:1:T:1", order="F", fence=6)
    assert (late.status_code, late.json()["code"]) == (409, "fenced")


def test_what_is_not_there_cannot_be_had(outside: OutsideServices) -> None:
    lines = [{"sku": "lamp", "quantity": 1}, {"sku": "chair", "quantity": 999}]
    before = outside.item("lamp")["available"]
    short = outside.post("/stock/reservations", key="g:1:R:1", order="G", lines=lines)
    assert (short.status_code, short.json()["code"]) == (409, "out_of_stock")
    assert outside.item("lamp")["available"] == before, "all of it or nothing"
    poor = outside.post("/payment/orders", key="g:1:P:1", order="G", customer="pip", amount_cents=101, mission="m")
    assert (poor.status_code, poor.json()["code"]) == (402, "no_funds")


def test_a_release_brings_everything_back_taken_or_not(outside: OutsideServices) -> None:
    before = outside.item("lamp")
    assert outside.post("/stock/reservations", key="h:1:R:1", order="H", lines=LINES).is_success
    assert outside.post("/stock/reservations/h:1:R:1/commit", key="h:1:T:1", order="H").is_success
    assert outside.item("lamp")["taken"] == before["taken"] + 2
    assert outside.post("/stock/reservations/h:1:R:1/release", key="h:1:UNDO_R:1", order="H").is_success
    assert outside.item("lamp") == before
    late = outside.post("/stock/reservations/h:1:R:1/commit", key="h:1:T:2", order="H")
    assert (late.status_code, late.json()["code"]) == (409, "wrong_state")


def test_what_was_paid_is_given_back_and_what_was_not_is_paid_no_more(outside: OutsideServices) -> None:
    outside.faults("payment", idle=True)
    order: dict[str, Any] = {"customer": "ada", "amount_cents": 500, "mission": "m"}
    money = outside.books()["money"]
    for name, paid in (("paid", True), ("open", False)):
        assert outside.post("/payment/orders", key=f"{name}:1:P:1", order=name, **order).is_success
        if paid:
            assert outside.post(f"/payment/orders/{name}:1:P:1/pay", key=f"hand:{name}", order=name).is_success
            assert outside.books()["money"]["customer:ada"] == money["customer:ada"] - 500
        back = outside.post(f"/payment/orders/{name}:1:P:1/refund", key=f"{name}:1:UNDO_P:1", order=name)
        assert back.json()["refunded_cents"] == (500 if paid else 0)
        assert not outside.post(f"/payment/orders/{name}:1:P:1/pay", key=f"late:{name}", order=name).is_success
    assert outside.books()["money"]["customer:ada"] == money["customer:ada"]


def test_the_bank_takes_what_nobody_pays_by_hand(outside: OutsideServices) -> None:
    order: dict[str, Any] = {"customer": "bo", "amount_cents": 700, "mission": "m"}
    assert outside.post("/payment/orders", key="i:1:P:1", order="I", **order).is_success
    until(lambda: outside.page("I")["states"]["payment"] == "paid")


def test_a_word_that_is_not_taken_is_told_again_until_it_is(tmp_path: Path) -> None:
    answers, heard = [503, 429, 202], list[dict[str, Any]]()

    class Front(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["content-length"]))) | {"path": self.path})
            self.send_response(answers[min(len(heard), len(answers)) - 1])
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Front) as front:
        serving = threading.Thread(target=front.serve_forever)
        serving.start()
        try:
            with OutsideServices(tmp_path, f"http://127.0.0.1:{front.server_port}") as outside:
                for order in ("first", "second"):
                    body: dict[str, Any] = {"customer": "ada", "amount_cents": 5, "mission": f"m-{order}"}
                    assert outside.post("/payment/orders", key=f"{order}:1:P:1", order=order, **body).is_success
                until(lambda: len(heard) >= 4)
        finally:
            front.shutdown()
            serving.join()
    first = [one for one in heard if "/m-first/" in one["path"]]
    assert len(heard) - len(first) == 1
    assert {one["event"] for one in heard} == {"PAYMENT_CONFIRMED"}
    assert first[0] == first[1] == first[2], "with the same id, so that a double counts no second time"
    assert first[0]["id"] == "first:1:P:1"


@pytest.mark.parametrize("fault", ["garbage", "lose_reply"])
def test_an_answer_that_is_lost_or_garbage_came_after_the_effect(outside: OutsideServices, fault: str) -> None:
    key, order = f"{fault}:1:R:1", f"O-{fault}"
    outside.faults("stock", **{fault: True}, times=1)
    body = {"order": order, "lines": LINES}
    with pytest.raises(ServiceUnavailable):
        call(outside, "stock/reservations", body, key=key)
    assert outside.page(order)["states"] == {"stock": "reserved"}
    assert call(outside, "stock/reservations", body, key=key)["id"] == key, "after one request it is well again"
    assert len(outside.page(order)["journal"]) == 1


def test_one_that_is_down_does_nothing_and_says_when_to_come_again(outside: OutsideServices) -> None:
    outside.faults("shipping", down=True)
    with pytest.raises(ServiceUnavailable, match="shipping is down") as fault:
        call(outside, "shipping/addresses/ada")
    assert fault.value.after_s == 1
    assert call(outside, "stock/items/lamp")["sku"] == "lamp", "the others are well"


def test_one_that_is_slow_runs_out_of_time_and_one_that_refuses_says_so(outside: OutsideServices) -> None:
    outside.faults("shipping", slow_s=30, times=1)
    with pytest.raises(ServiceUnavailable, match="out of time"):
        call(outside, "shipping/addresses/ada", within_s=1)
    outside.faults("shipping", refuses=True)
    with pytest.raises(ServiceRefused, match="shipping says no") as fault:
        call(outside, "shipping/shipments", {"order": "S"}, key="s:1:S:1")
    assert fault.value.code == "refused"
    assert call(outside, "shipping/shipments/s:1:S:1/cancel", {"order": "S"}, key="s:1:UNDO_S:1")["order"] == "S"


def test_one_that_flaps_fails_now_and_then(outside: OutsideServices) -> None:
    outside.faults("stock", flapping=0.5)
    met = set()
    for _ in range(60):
        try:
            met.add(outside.http.get("/stock/items/lamp").status_code)
        except httpx.TransportError:
            met.add(0)
    assert met == {0, 200, 503}


def test_faults_outlive_a_death_and_there_are_no_others(tmp_path: Path) -> None:
    with OutsideServices(tmp_path) as outside:
        outside.faults("stock", down=True)
        outside.end(SIGKILL)
        outside.start()
        assert outside.http.get("/stock/items/lamp").status_code == 503
        assert outside.http.put("/faults/weather", json={}).status_code == 404
        assert outside.http.put("/faults/stock", json={"rude": True}).status_code == 422


def test_the_audit_finds_what_does_not_balance(tmp_path: Path) -> None:
    with OutsideServices(tmp_path) as outside:
        assert outside.post("/stock/reservations", key="t:1:R:1", lines=LINES).is_success
        outside.end()
        ledger = Ledger(tmp_path / "outside")
        assert audit(ledger) == []
        twice = Effect("t:1:R:1", "stock", "reserve", "t:1:R:1", "A-1", 1, 0)
        number = ledger.journal(twice)
        assert audit(ledger) == ["key t:1:R:1 has 2 effects", "stock did reserve 2 times to t:1:R:1"]
        ledger.ask("DELETE FROM effects WHERE n = ?", number)
        ledger.move(number, "stock", 1, "shelf:lamp", "reserved:lamp")
        assert audit(ledger) == ["reserved:lamp has 3, reservations make 2"]
        ledger.move(number, "stock", 1, "reserved:lamp", "shelf:lamp")
        ledger.ask("INSERT INTO postings (effect, book, account, amount) VALUES (?, 'money', 'shop', 5)", number)
        assert audit(ledger) == [f"effect {number} moves more in than out in money"]
        ledger.ask("DELETE FROM postings WHERE book = 'money' AND account = 'shop'")
        ledger.move(number, "money", 7, "customer:bo", "shop")
        assert audit(ledger) == ["the shop has 7 cents, payments make 0"]
        ledger.move(number, "money", 7, "shop", "customer:bo")
        ledger.move(number, "stock", 20_000, "shelf:chair", "shelf:lamp")
        assert audit(ledger) == ["shelf:chair has -19997 in stock"]
        ledger.move(number, "stock", 20_000, "shelf:lamp", "shelf:chair")
        ledger.put(Thing("logistics", "w", "Z", "issued", {"waybill": "WB-1", "shipment": "none"}))
        ledger.put(Thing("logistics", "v", "Z", "issued", {"waybill": "WB-2", "shipment": "none"}))
        assert audit(ledger)[0] == "order Z has 2 of logistics"
        assert audit(ledger)[1:] == [f"waybill WB-{n} of order Z has no shipment" for n in (2, 1)]
        ledger.close()
        outside.start()
