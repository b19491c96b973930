"""What the kit's services and devices answer, how they misbehave, and what is kept of the calls."""

from typing import Any

import httpx
import pytest

from backend_loop.missions.device_control import DeviceControl
from backend_loop.testing import (
    Answers,
    Bench,
    Call,
    Home,
    Script,
    Trial,
    UnscriptedError,
    down,
    garbage,
    ignored,
    lost,
    meanwhile,
    refused,
    slow,
)
from backend_loop.testing.home import HomeWire
from backend_loop.testing.script import ScriptWire, Wire
from backend_loop.testing.skipping import BEGIN, Time
from tests.missions.bench import Asker

ITEM = {"price": 5}


def ordered(answer: Any, *, item: Any = None, **payload: Any) -> Trial:
    return Bench(Asker, outside={"stock/items/*": item or ITEM, "shop/orders": answer}).run(payload)


def test_calls_are_kept_with_path_body_key_fence_state_and_answer() -> None:
    mission = ordered({"id": "o-1"})
    asked, order = mission.calls
    assert (asked.method, asked.path, asked.key, asked.fence, asked.state) == (
        "GET",
        "stock/items/lamp",
        "",
        0,
        "ASKING",
    )
    assert (order.method, order.body, order.fence) == ("POST", {"thing": "lamp", "cents": 5}, 1)
    assert order.key == f"{mission.task_id}:1:ORDERING:1"
    assert (asked.answer, order.answer) == (ITEM, {"id": "o-1"})
    assert (asked.effect, order.effect, mission.effects) == (False, True, [order])


def test_a_list_is_gone_through_and_its_last_answer_stays() -> None:
    mission = ordered({"id": "o"}, item=[down(), down("closed until nine"), ITEM])
    assert [event["data"]["error"] for event in mission.log if event["status"] == "WAITING"] == [
        "ServiceUnavailable: stock: stock is down",
        "ServiceUnavailable: stock: closed until nine",
    ]
    assert ordered(down()).status == "FAILED"


def test_a_function_is_given_the_call() -> None:
    def answer(call: Call) -> dict[str, Any]:
        return {"id": call.key, "cents": call.body["cents"] * 2}

    mission = ordered(answer)
    assert mission.result == {"id": f"{mission.task_id}:1:ORDERING:1", "cents": 10}


@pytest.mark.parametrize("fault", [lost({"id": "o-1"}), garbage({"id": "o-1"})], ids=str)
def test_what_was_done_and_not_heard_of_is_done_once(fault: Any) -> None:
    mission = ordered([fault, {"id": "another"}])
    assert mission.result == {"id": "o-1"}, "a second try gets the answer of the first"
    assert (len(mission.calls), len(mission.effects)) == (3, 1)
    assert mission.calls[1].key == mission.calls[2].key


def test_who_does_not_wait_finds_it_done_all_the_same() -> None:
    mission = ordered(slow(20, {"id": "o-1"}))
    assert (mission.status, mission.result, len(mission.effects)) == ("SUCCEEDED", {"id": "o-1"}, 1)
    assert "out of time" in mission.log[2]["data"]["error"]
    assert 5 < mission.took_s < 7
    patient = ordered(slow(20, {"id": "o-1"}), within_s=25)
    assert (patient.result, len(patient.calls)) == ({"id": "o-1"}, 2)
    assert 20 <= patient.took_s < 20.1


def test_a_refusal_is_final_where_the_type_says_so() -> None:
    mission = ordered(refused("sold_out", "no lamps are left"))
    assert mission.error is not None
    assert mission.error["message"] == "ServiceRefused: shop: no lamps are left"
    assert mission.effects == []


def test_a_path_is_matched_by_its_parts_and_by_method() -> None:
    lines: dict[str, Answers] = {"GET shop/orders": {"no": 1}, "POST shop/*": {"id": "posted"}, "stock/items/l*p": ITEM}
    assert Bench(Asker, outside=Script(lines)).run().result == {"id": "posted"}


def test_what_the_script_does_not_know_ends_the_test_and_not_the_mission() -> None:
    with pytest.raises(UnscriptedError, match=r"ORDERING asks POST shop/orders.* it has stock/items/\*"):
        Bench(Asker, outside={"stock/items/*": ITEM}).run()


def test_something_happens_meanwhile() -> None:
    seen: list[str] = []
    mission = ordered(meanwhile(lambda mission: seen.append(mission.state), {"id": "o"}))
    assert (seen, mission.status) == (["ORDERING"], "SUCCEEDED")
    with pytest.raises(AssertionError, match="it runs already"):
        ordered(meanwhile(lambda mission: mission.run(), {}))
    with pytest.raises(KeyError, match="colour"):
        ordered(lambda call: {"id": call.body["colour"]})


class Passer:
    """What calls pass on their way, where no mission makes them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def call(self, method: str, path: str, body: Any, key: str, fence: int) -> Call:
        self.calls.append(Call(len(self.calls) + 1, method, path, body, key, fence, "", 0))
        return self.calls[-1]

    async def point(self, _when: str, _call: Call) -> None:
        return

    def meet(self, _do: Any) -> None:
        return

    async def fail(self, error: BaseException) -> None:
        raise error


async def asked(wire: Wire, path: str, key: str, fence: int, body: Any = None) -> tuple[int, str]:
    headers = {"idempotency-key": key, "fence": str(fence)}
    async with httpx.AsyncClient(transport=wire, base_url="http://there") as client:
        answer = await client.post(path, json=body or {}, headers=headers)
    return answer.status_code, answer.json().get("detail", "")


async def test_a_service_obeys_no_mission_that_was_taken_over_and_no_key_that_was_for_something_else() -> None:
    passer = Passer()
    wire = ScriptWire(Script({"a/*": {}}), passer)
    assert (await asked(wire, "/a/b", "m:1:S:1", 2))[0] == 200
    assert await asked(wire, "/a/b", "m:1:S:1", 1) == (409, "fence 1 is older than 2")
    assert await asked(wire, "/a/c", "m:1:S:1", 2) == (422, "key 'm:1:S:1' was used for another request")
    assert (await asked(wire, "/a/b", "n:1:S:1", 1))[0] == 200, "fences are those of each mission"
    assert [call.effect for call in passer.calls] == [True, False, False, True]


async def test_a_device_obeys_once_and_nobody_who_was_taken_over() -> None:
    passer = Passer()
    order: dict[str, Any] = {"action": "turn_on", "value": None}
    wire = HomeWire(Home({"light.a": {"power": "off"}}), passer, Time(BEGIN, 1))
    path = "/devices/light.a/act"
    assert (await asked(wire, path, "", 0, order | {"key": "k", "fence": 2}))[0] == 200
    wire.hand("light.a", {"power": "off"})
    assert (await asked(wire, path, "", 0, order | {"key": "k", "fence": 2}))[0] == 200
    assert wire.gadgets["light.a"].values == {"power": "off"}, "the second try does nothing"
    assert (await asked(wire, path, "", 0, order | {"key": "l", "fence": 1}))[0] == 409
    assert [call.effect for call in passer.calls] == [True, False, False]


LAMP = "light.kitchen"
OFF = {"power": "off", "brightness": 80}


def switched(action: str = "turn_on", value: Any = None, **faults: Any) -> Trial:
    home = Home({LAMP: OFF}, **{name: {LAMP: fault} for name, fault in faults.items()})
    return Bench(DeviceControl, home=home).run({"entity": LAMP, "action": action, "value": value})


def test_a_device_obeys_and_shows_it() -> None:
    mission = switched("set_brightness", 40)
    assert mission.result is not None
    assert (mission.result["outcome"], mission.result["value"]) == ("confirmed", {"power": "on", "brightness": 40})
    assert mission.freshness is not None
    assert mission.freshness["verified"] is True
    assert [call.key for call in mission.effects] == [f"{mission.task_id}:1:EXECUTING_COMMAND:1"]
    done = Bench(DeviceControl, home={LAMP: {"power": "on"}}).run({"entity": LAMP, "action": "turn_on"})
    assert done.result is not None
    assert (done.result["outcome"], done.effects) == ("already_done", [])


@pytest.mark.parametrize(
    ("faults", "code"),
    [
        ({"observe": down()}, "device_unreachable"),
        ({"act": down()}, "device_unreachable"),
        ({"act": refused()}, "device_refused"),
        ({"act": ignored()}, "unconfirmed"),
    ],
    ids=str,
)
def test_what_a_device_does_not_do_is_said(faults: dict[str, Any], code: str) -> None:
    mission = switched(**faults)
    assert mission.error is not None
    assert (mission.error["code"], mission.effects) == (code, [])


@pytest.mark.parametrize("faults", [{"act": [lost()]}, {"act": [slow(8)]}, {"observe": [down(), garbage()]}], ids=str)
def test_a_device_that_comes_back_is_reached_and_told_once(faults: dict[str, Any]) -> None:
    mission = switched(**faults)
    assert (mission.status, len(mission.effects)) == ("SUCCEEDED", 1)


def test_a_hand_is_newer() -> None:
    before = switched(observe=[{}, meanwhile(lambda mission: mission.hand(LAMP, power="on").hand(LAMP, power="off"))])
    assert (before.status, before.reason) == ("CANCELLED", "overridden")
    after = switched(observe=[{}, {}, meanwhile(lambda mission: mission.hand(LAMP, power="off"))])
    assert after.error is not None
    assert after.error["code"] == "contradicted"


def test_there_is_no_such_device_and_it_cannot_do_that() -> None:
    for entity, action in (("light.nowhere", "turn_on"), (LAMP, "open")):
        mission = Bench(DeviceControl, home={LAMP: OFF}).run({"entity": entity, "action": action})
        assert mission.error is not None
        assert mission.error["code"] == "device_refused"
