"""The same stories on the test kit and on the real stack: the same log, the same end, times aside."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from backend_loop.mission import Mission
from backend_loop.missions.device_control import DeviceControl
from backend_loop.missions.order_fulfil import OrderFulfil
from backend_loop.missions.payment_ship import PaymentShip
from backend_loop.testing import (
    Answers,
    Bench,
    Call,
    Ends,
    Home,
    Kill,
    Trial,
    down,
    garbage,
    ignored,
    lost,
    meanwhile,
    never,
    refused,
)
from shared.clock import now_ms
from tests.home import Home as RealHome
from tests.home import running_home
from tests.missions.errand import Errand
from tests.missions.family import Fan, Kid
from tests.missions.parcel import Parcel
from tests.processes import fatal
from tests.processes.test_commit_boundaries import mortal
from tests.services import OutsideServices
from tests.stories.operating import Hand
from tests.stories.stack import Stack, running
from tests.waiting import eventually

MODULES = "tests.missions.family,tests.missions.errand,tests.missions.parcel"
LAMP = "light.study"


@dataclass
class Town:
    """The real thing: a stack, the services of the shop, and a home."""

    hand: Hand
    outside: OutsideServices
    home: RealHome


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def town(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Town]:
    folder = tmp_path_factory.mktemp("town")
    async with running(module_redis_url, folder, workers=0, DUALLOOP_MISSIONS=MODULES) as stack:
        with OutsideServices(folder, stack.url) as outside, running_home(folder) as home:
            await stack.start([stack.worker(DUALLOOP_OUTSIDE_URL=outside.url, DUALLOOP_HOME_URL=home.url)])
            async with httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=60) as http:
                yield Town(Hand(http, stack), outside, home)


@dataclass(frozen=True)
class Story:
    """What happens to a mission: once for real, once on the bench.

    Attributes:
        before: what is broken in the town, and put right by `after`.
        said: verbs and what goes with them; each is said once the mission rests, or (`!` before it) while it acts.
        lasts_s: how long is waited then.
    """

    mission: type[Mission]
    payload: Mapping[str, Any]
    outside: Mapping[str, Answers] = field(default_factory=dict)
    home: Home | None = None
    more: tuple[type[Mission], ...] = ()
    children: Mapping[str, Ends] = field(default_factory=dict)
    command: Mapping[str, Any] = field(default_factory=dict)
    before: Callable[[Town], object] = lambda _town: None
    said: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    lasts_s: float = 0.0


def known(call: Call) -> dict[str, Any]:
    """As the services keep what they make: under the key that it was made with."""
    return {"id": call.key, **call.body}


def waybill(call: Call) -> Any:
    if call.body["address"]["city"] == "Atlantis":
        return refused("not_served", "no carrier goes to Atlantis", status=422)
    return {"waybill": "WB-000001", **known(call)}


def lives(call: Call) -> dict[str, Any]:
    where = {"ada": ("Short Street 1", "London"), "bo": ("Long Street 2", "Oslo"), "nemo": ("Sea Floor 3", "Atlantis")}
    street, city = where[call.path.rpartition("/")[2]]
    return {"street": street, "city": city}


def at_the_bank(order: str, state: str) -> dict[str, Answers]:
    """A payment as the bank shows it."""
    payment = {"order": order, "state": state, "amount_cents": 4_990}
    return {"payment/orders/*": lambda call: {"id": call.path.rpartition("/")[2], **payment}}


ITEM = {"sku": "lamp", "price_cents": 4_990, "available": 9_000}
SHOP: dict[str, Answers] = {
    "stock/items/*": ITEM,
    "stock/reservations": known,
    "stock/reservations/*/*": {},
    "shipping/addresses/*": lives,
    "shipping/shipments": known,
    "shipping/shipments/*/cancel": {},
    "logistics/waybills": waybill,
    "logistics/waybills/*/cancel": {},
    "notification/messages": known,
    "payment/orders": known,
    "payment/orders/*/refund": {},
}


def order(name: str, customer: str = "ada", **more: Any) -> dict[str, Any]:
    return {"order": name, "customer": customer, "lines": [{"sku": "lamp", "quantity": 1}], **more}


def breaks(service: str, **faults: Any) -> Callable[[Town], object]:
    return lambda town: town.outside.faults(service, **faults)


def silent(town: Town) -> None:
    """Nobody pays by themselves."""
    town.outside.faults("payment", idle=True)


def lamp(**faults: Any) -> Callable[[Town], object]:
    return lambda town: town.home.faults(LAMP, **faults)


def on_bench(**faults: Any) -> Home:
    return Home({LAMP: {"power": "off", "brightness": 80}}, **{name: {LAMP: one} for name, one in faults.items()})


ON = {"entity": LAMP, "action": "turn_on"}
PAID: tuple[str, Mapping[str, Any]] = ("pay", {})
STORIES: dict[str, Story] = {
    "an order": Story(OrderFulfil, order("K1"), SHOP),
    "an order for nobody's land": Story(OrderFulfil, order("K2", "nemo"), SHOP),
    "stock is down": Story(
        OrderFulfil,
        order("K3"),
        SHOP | {"stock/items/*": [down(), ITEM]},
        before=breaks("stock", down=True, times=1),
    ),
    "a reply is lost": Story(
        OrderFulfil,
        order("K4"),
        SHOP | {"logistics/waybills": lost(waybill)},
        before=breaks("logistics", lose_reply=True, times=1),
    ),
    "garbage": Story(
        OrderFulfil,
        order("K5"),
        SHOP | {"shipping/addresses/*": [garbage(lives), lives]},
        before=breaks("shipping", garbage=True, times=1),
    ),
    "an optional one refuses": Story(
        OrderFulfil,
        order("K6"),
        SHOP | {"notification/messages": refused(detail="notification says no", status=403)},
        before=breaks("notification", refuses=True),
    ),
    "a price has risen": Story(OrderFulfil, order("K7"), SHOP, command={"snapshot": {"prices": {"lamp": 4_000}}}),
    "paid": Story(PaymentShip, order("K8"), SHOP | at_the_bank("K8", "paid"), before=silent, said=(PAID,)),
    "said to be paid": Story(
        PaymentShip,
        order("K9"),
        SHOP | at_the_bank("K9", "ordered"),
        before=silent,
        said=(("event", {"event": "PAYMENT_CONFIRMED", "data": {"amount_cents": 4_990}}), ("cancel", {"by": "ada"})),
    ),
    "not paid in time": Story(PaymentShip, order("K10", patience_s=0.3), SHOP, before=silent, lasts_s=1),
    "cancelled": Story(
        PaymentShip, order("K11"), SHOP, before=silent, said=(("cancel", {"by": "ada", "note": "no more"}),)
    ),
    "paused, paid, resumed": Story(
        PaymentShip,
        order("K12"),
        SHOP | at_the_bank("K12", "paid"),
        before=silent,
        said=(("pause", {}), PAID, ("resume", {})),
    ),
    "paused and resumed": Story(
        PaymentShip,
        order("K13"),
        SHOP | at_the_bank("K13", "paid"),
        before=silent,
        said=(("pause", {"by": "ada"}), ("resume", {}), PAID),
    ),
    "cut in its act": Story(
        OrderFulfil,
        order("K14"),
        SHOP | {"stock/reservations": meanwhile(lambda mission: mission.cancel(), known)},
        before=breaks("stock", slow_s=4),
        said=(("!cancel", {}),),
    ),
    "light on": Story(DeviceControl, ON, home=on_bench()),
    "already on": Story(DeviceControl, {**ON, "action": "turn_off"}, home=on_bench()),
    "its answer is lost": Story(
        DeviceControl,
        ON,
        home=on_bench(act=[lost()], observe=[{}, {}, {}]),
        before=lamp(lose_answer=True),
    ),
    "a lamp that is gone": Story(DeviceControl, ON, home=on_bench(observe=down()), before=lamp(offline=True)),
    "a lamp that refuses": Story(DeviceControl, ON, home=on_bench(act=refused()), before=lamp(refuse=True)),
    "no such lamp": Story(DeviceControl, {**ON, "entity": "light.nowhere"}, home=on_bench()),
    "undone in reverse": Story(Errand, {"ship": "fails"}),
    "an undo that fails": Story(Errand, {"ship": "fails", "refund": "fails"}),
    "signed by hand": Story(Parcel, {"depot": "/", "signature": True}, said=(("event", {"event": "SIGNED"}),)),
    "not signed": Story(Parcel, {"depot": "/", "signature": True}, said=(("skip", {"note": "nobody there"}),)),
    "by hand": Story(Parcel, {"depot": "/", "signature": True}, said=(("complete", {"result": {"by": "hand"}}),)),
    "refused by its own model": Story(Parcel, {"depot": "/", "street": "Nowhere"}),
    "children, one by one": Story(
        Fan, {"kids": [{}, {"how": "fails"}, {}], "on_failure": "continue", "bound": 1}, more=(Kid,)
    ),
    "children of which one fails": Story(Fan, {"kids": [{"how": "fails"}, {}], "bound": 1}, more=(Kid,)),
    "cancelled with its child": Story(
        Fan, {"kids": [{"how": "hangs"}]}, children={"test.kid": never()}, said=(("cancel", {}),)
    ),
}


def told_of(story: Story) -> dict[str, Any]:
    return {"order": story.payload["order"]}


def word(task_id: str, story: Story) -> dict[str, Any]:
    """What the bank says of a payment that was made."""
    return {"payment": f"{task_id}:1:PAYING:1", **told_of(story), "amount_cents": 4_990}


async def pays(town: Town, task_id: str, story: Story) -> None:
    """By hand at the bank; when this returns the mission has heard of it, by us or by the bank, and once."""
    said = word(task_id, story)
    paid = town.outside.post(f"/payment/orders/{said['payment']}/pay", key=f"hand:{task_id}", **told_of(story))
    assert paid.is_success, paid.text
    event = {"event": "PAYMENT_CONFIRMED", "id": said["payment"], "data": said}
    await town.hand.post(f"/v1/commands/{task_id}/events", event)


async def really(town: Town, story: Story) -> dict[str, Any]:
    """Everything about the mission, once it has ended."""
    hand, type_ = town.hand, story.mission.type
    story.before(town)
    try:
        task_id = await hand.submit(type_, dict(story.payload), **story.command)
        for verb, said in story.said:
            if verb.startswith("!"):
                await hand.in_state(task_id, "RESERVING_STOCK", "leased")
            else:
                await hand.until(task_id, lambda m: m["place"] in {"waiting", "paused"}, f"it rests before {verb}")
            if verb == "pay":
                await pays(town, task_id, story)
                continue
            group = "missions" if verb in {"skip", "complete"} else "commands"
            path = "events" if verb == "event" else verb.lstrip("!")
            await hand.post(f"/v1/{group}/{task_id}/{path}", dict(said))
            if verb.startswith("!"):
                town.outside.faults("stock")  # it was slow so that the word came in the act
        await hand.until(task_id, lambda m: m["place"] == "ended", f"{type_} ends")
        return await hand.mission(task_id)
    finally:
        for service in ("stock", "payment", "shipping", "logistics", "notification"):
            town.outside.faults(service)
        town.home.fresh()


def on_the_bench(story: Story) -> Trial:
    """The same there."""
    bench = Bench(story.mission, *story.more, outside=story.outside, home=story.home, children=story.children)
    mission = bench.run(story.payload, **story.command)
    for verb, said in story.said:
        if verb == "pay":
            mission.event("PAYMENT_CONFIRMED", word(mission.task_id, story)).run()
        elif verb == "event":
            mission.event(said["event"], said.get("data")).run()
        elif not verb.startswith("!"):
            getattr(mission, verb)(**said)
            mission.run()
    return mission.advance(story.lasts_s) if story.lasts_s else mission


def told(mission: Mapping[str, Any], children: Mapping[str, str]) -> tuple[list[Any], Any]:
    """Log and end, without times; ids and what the services number by another word."""
    names = {mission["task_id"]: "ITSELF", **children}

    def plain(value: Any) -> Any:
        text = json.dumps(value)
        for id_, name in names.items():
            text = text.replace(id_, name)
        text = re.sub(r"WB-\d+", "WB", text)
        text = re.sub(r'gave no answer: [^"]*', "gave no answer", text)  # how a connection broke is a race
        return json.loads(re.sub(r'"in_ms": \d+', '"in_ms": 0', text))

    # whether a service that has asked for time is asked for a permit just before that is over is a race too
    lines = [line for line in mission["log"] if not str((line["data"] or {}).get("why")).endswith(": retry_after")]
    log = [(line["status"], line["state"], plain(line["data"])) for line in lines]
    end = {name: plain(mission["result"][name]) for name in ("status", "result", "error", "reason", "progress", "run")}
    return log, end


def real_log(document: Mapping[str, Any]) -> tuple[list[Any], Any]:
    children = {child["task_id"]: f"CHILD {child['name']}" for child in document["children"]}
    return told({**document, "log": document["history"]}, children)


def bench_log(mission: Trial) -> tuple[list[Any], Any]:
    children = {child.task_id: f"CHILD {_name(child)}" for child in mission.children}
    return told({"task_id": mission.task_id, "log": mission.log, "result": mission.document}, children)


def _name(child: Any) -> str:
    return str(json.loads(child._record.envelope)["name"])


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", STORIES)
async def test_the_kit_tells_the_story_as_it_really_goes(town: Town, name: str) -> None:
    story = STORIES[name]
    document = await really(town, story)
    mission = await asyncio.to_thread(on_the_bench, story)  # it has an event loop of its own
    assert mission.ended, mission.told()
    log, end = bench_log(mission)
    wanted, its_end = real_log(document)
    assert log == wanted, mission.told()
    assert end == its_end


@pytest.mark.timeout(400)
async def test_killed_workers_leave_the_same_log(redis_url: str, tmp_path: Path) -> None:
    kills = ("before 2", "after 5")
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    async with running(redis_url, tmp_path, workers=0) as stack:
        with OutsideServices(tmp_path, stack.url) as outside:
            workers = await mortal(stack, outside, deaths)
            async with httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=60) as http:
                document = await _killed(Hand(http, stack), stack, deaths, kills)
            assert len(workers) > len(kills)
    story = Story(OrderFulfil, order("K"), SHOP)
    at = [Kill.after_commit if when == "after" else Kill.before_commit for when, _ in map(str.split, kills)]
    planned = [kill(int(point.split()[1])) for kill, point in zip(at, kills, strict=True)]
    bench = Bench(story.mission, outside=story.outside)
    mission = await asyncio.to_thread(lambda: bench.run(story.payload, kill=planned))
    assert len(mission.killed) == len(kills)
    assert bench_log(mission) == real_log(document), mission.told()


async def _killed(hand: Hand, stack: Stack, deaths: Path, kills: tuple[str, ...]) -> dict[str, Any]:
    for worker in stack.workers:
        worker.kill()  # so that nobody begins before its death is planned
    task_id = await hand.submit("order.fulfil", order("K"))
    for worker in stack.workers:
        worker.spawn()
    for point in kills:
        fatal.plan(deaths, task_id, point)
        await eventually(lambda: fatal.died(deaths, task_id), within=120, what=f"a worker dies {point}")
        (deaths / f"{task_id}.died").unlink()
    await hand.until(task_id, lambda m: m["place"] == "ended", "it ends", within=120)
    return await hand.mission(task_id)


def test_outside_of_a_bench_it_is_as_late_as_ever() -> None:
    before = now_ms()
    Bench(Errand).run({"ship": "fails"})
    assert 0 <= now_ms() - before < 60_000


def test_what_a_device_ignores_is_not_believed() -> None:
    mission = Bench(DeviceControl, home=on_bench(act=ignored())).run(ON)
    assert mission.error is not None
    assert mission.error["code"] == "unconfirmed"
