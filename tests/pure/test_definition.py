"""What is wrong with the states, the answers and the rules of a mission type is said at import, a sentence each."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from backend_loop import outcomes
from backend_loop.dependency import Breaker, Dependency
from backend_loop.mission import DefinitionError, Latest, Mission, outcome_of, state, steps, undo
from backend_loop.outcomes import Fail, Go, Outcome, Retry, Stop, WaitFor
from backend_loop.retry import Retry as Policy
from shared.status import Reason

DOOR = Dependency("door")


def one(**promises: Any) -> Any:
    @state("ONE", **promises)
    async def one_(_self: Any, _tools: Any) -> Outcome:
        return Go("done")

    return one_


def plain(**promises: Any) -> Any:
    @state("ONE", **promises)
    def one_(_self: Any, _tools: Any) -> Outcome:
        return Go("done")

    return one_


def undoing(**promises: Any) -> Any:
    @undo(promises.pop("name", "ONE"), **promises)
    async def undo_(_self: Any, _tools: Any) -> None:
        return None

    return undo_


@state("ONE")
async def misspelt(_self: Any, _tools: Any) -> Outcome:
    if _tools.ready:
        return outcomes.Go("doen")
    return Fail("no")


@state("ONE")
async def deaf(_self: Any, _tools: Any) -> Outcome:
    return WaitFor("KNOKC", 5) if _tools.ready else Go(event="done")


@state("ONE")
async def helped(_self: Any, _tools: Any) -> Outcome:
    return _tools.help() or Go("done")


@state("ONE")
async def renamed(_self: Any, Go: Any) -> Outcome:  # noqa: N803  the name means something else here
    return Go("whatever")  # type: ignore[no-any-return]


@state("ONE")
async def nested(_self: Any, tools: Any) -> Outcome:
    def other() -> Outcome:
        return Go("not_ours")

    tools.later(other, lambda: Go("neither"))
    return Go("done")


@state("ONE")
async def hopeless(_self: Any, _tools: Any) -> Outcome:
    return Fail("always")


@undo("ONE")
async def waiting_undo(_self: Any, _tools: Any) -> Outcome:
    return WaitFor("KNOCK")


@undo("ONE")
async def stopping_undo(_self: Any, _tools: Any) -> Outcome:
    return Stop(Reason.REQUESTED)


@state("ONE")  # type: ignore[type-var]  # who checks no types is told at import
async def without_tools(_self: Any) -> Outcome:
    return Go("done")


class Needy(BaseModel):
    text: str


class Entity(BaseModel):
    entity: str
    action: str = "open"


def define(qualname: str = "Made", **attributes: Any) -> type[Mission]:
    body: dict[str, Any] = {"type": "test.made", "table": steps("ONE"), "one": one(), "__qualname__": qualname}
    return type("Made", (Mission,), body | attributes)


TWO_EVENTS = {"ONE": {"done": "SUCCEEDED", "late": "FAILED"}}
ACTING: dict[str, Any] = {"Payload": Entity, "target": "entity", "one": one(acting=True)}


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"one": misspelt}, 'state ONE: its handler answers Go("doen"), and its row has done: add doen to the row'),
        ({"one": deaf}, 'state ONE: its handler answers WaitFor("KNOKC"), and its row has done'),
        ({"table": TWO_EVENTS}, "its row has late, which its handler never answers: take it out of the row, or return"),
        ({"other": one()}, "ONE has two handlers, one and other: leave one"),
        ({"one": plain()}, 'a plain def would block the loop: write async def, or say runs="thread"'),
        ({"one": one(runs="thread")}, 'runs="thread" takes a plain def: take the async away'),
        ({"one": one(runs="process")}, 'runs="process" takes a plain def'),
        ({"one": one(runs="gpu")}, 'runs is \'gpu\': say "loop", "thread" or "process"'),
        ({"one": plain(runs="process"), "qualname": "f.<locals>.Made"}, "a process cannot import what is defined in a"),
        ({"one": one(on_failure="ignore")}, 'on_failure is \'ignore\': say "fail" or "skip"'),
        (
            {"one": one(on_failure="skip"), "table": {"ONE": {"done": "SUCCEEDED", "late": "FAILED"}}},
            "state ONE is optional and its row has 2 events: say where a failure leads, by one that is",
        ),
        (
            {"one": one(on_failure="skip"), "table": {"ONE": {"done": "SUCCEEDED", "skipped": "ONE"}}},
            "state ONE is optional and skipping it leads back to it: lead elsewhere",
        ),
        *(
            ({"one": one(retry=Policy(max_elapsed_s=seconds))}, "max_elapsed_s is .*: say seconds, more than 0")
            for seconds in (0, -1, math.inf, math.nan, True)
        ),
        ({"undo_it": undoing(name="TWO")}, "the undo of TWO undoes nothing: the table has no state TWO"),
        ({"undo_it": undoing(timeout_s=0)}, "state UNDO_ONE: timeout_s is 0: say seconds"),
        ({"undo_it": undoing(runs="thread")}, 'state UNDO_ONE: runs="thread" takes a plain def'),
        ({"undo_it": undoing(), "undo_again": undoing()}, "UNDO_ONE has two handlers, undo_it and undo_again"),
        ({"undo_it": waiting_undo}, "the undo of ONE answers WaitFor: return nothing once it is undone"),
        ({"undo_it": stopping_undo}, "the undo of ONE answers Stop: return nothing once it is undone"),
        *(({"concurrency": n}, "concurrency is .*: say a whole number from 1, or None") for n in (0, -1, True, 1.5)),
        ({"table": ["ONE"]}, 'set table to state → event → next state, or to steps("A", "B")'),
        ({"table": {"ONE": "SUCCEEDED"}}, "the row of ONE is 'SUCCEEDED': write event → next state, in braces"),
        ({"one": without_tools}, "state ONE: its handler takes (_self: Any) -> "),
        ({"Payload": dict}, "Payload is no pydantic model: write class Payload(BaseModel)"),
        ({"Context": Needy}, "a Context begins empty, and its text has no default: give it one"),
        ({"permanent": OSError}, "permanent is <class 'OSError'>: write a tuple, such as (ValueError,)"),
        ({"permanent": (3,)}, "permanent has 3: name classes of exceptions"),
        ({"retryable": (KeyboardInterrupt,)}, "retryable has .*KeyboardInterrupt.*: name classes of exceptions"),
        ({"permanent": (OSError,), "retryable": (OSError,)}, "OSError is both permanent and retryable: take it out"),
        ({"events": ("KNOCK",)}, "events names 'KNOCK', which is in no row of the table: give it one"),
        ({"one": one(uses=[DOOR])}, "write a tuple, such as uses=(PAYMENTS,)"),
        ({"one": one(uses=("door",))}, "uses has 'door': name a backend_loop.dependency.Dependency"),
        ({"one": one(uses=(DOOR, DOOR))}, "uses door twice: name it once"),
        ({"one": one(uses=(Dependency("The Door"),))}, "uses 'The Door': name it by small letters"),
        ({"one": one(uses=(Dependency("d", concurrency=0),))}, "concurrency of d is 0: say a whole number from 1"),
        ({"one": one(uses=(Dependency("d", per_target=-1),))}, "per_target of d is -1: say a whole number from 1"),
        ({"one": one(uses=(Dependency("d", retry_ratio=math.nan),))}, "retry_ratio of d is nan: say retries per call"),
        ({"one": one(uses=(Dependency("d", breaker=5),))}, "breaker of d: it is 5: set it to a Breaker, or to None"),  # type: ignore[arg-type]
        (
            {"one": one(uses=(Dependency("d", breaker=Breaker(failures=0)),))},
            "failures is 0: say a whole number from 1",
        ),
        ({"one": one(uses=(Dependency("d", breaker=Breaker(open_s=-1)),))}, "open_s is -1: say seconds from 0"),
        ({"latest": "power"}, "latest is 'power': set it to Latest"),
        ({"latest": Latest("power")}, "latest needs a target: newer commands replace older ones on the same target"),
        ({**ACTING, "latest": Latest()}, "latest takes either an aspect, or a field and the aspects of its values"),
        ({**ACTING, "latest": Latest("power", field="action")}, "latest takes either an aspect, or a field"),
        (
            {**ACTING, "latest": Latest(field="verb", aspects={})},
            "latest names the payload field 'verb', which Payload",
        ),
        ({**ACTING, "latest": Latest(field="action", aspects={})}, r"latest has the aspects \[\]: small letters"),
        ({**ACTING, "latest": Latest("a:b")}, "latest has the aspects .*: small letters, digits"),
        (
            {**ACTING, "one": one(), "latest": Latest("power")},
            "latest is asked when an acting state is entered: mark one",
        ),
    ],
)
def test_each_fault_has_its_sentence(attributes: Mapping[str, Any], sentence: str) -> None:
    pattern = sentence if ".*" in sentence or "\\" in sentence else sentence.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(DefinitionError, match=pattern) as caught:
        define(**attributes)
    assert "Made" in str(caught.value)


@pytest.mark.parametrize(
    "attributes",
    [
        {"one": helped, "table": TWO_EVENTS},  # a helper may answer anything
        {"one": renamed, "table": TWO_EVENTS},
        {"one": nested},
        {"one": hopeless},
        {"one": one(on_failure="skip")},  # its only event is taken
        {"one": one(on_failure="skip"), "table": {"ONE": {"done": "SUCCEEDED", "skipped": "FAILED"}}},
        {"one": plain(runs="thread")},
        {"one": plain(runs="process")},
        {**ACTING, "latest": Latest(field="action", aspects={"open": "position"}), "undo_it": undoing()},
    ],
)
def test_only_what_is_sure_is_a_fault(attributes: Mapping[str, Any]) -> None:
    assert define(**attributes).definition.kind == "test.made@1"


def test_a_class_replaces_what_its_base_has_by_method_and_by_state() -> None:
    base = define(undo_it=undoing())

    def under(**attributes: Any) -> Any:
        return type("Sub", (base,), attributes)

    by_state = under(uno=one(timeout_s=7)).definition
    assert by_state.states["ONE"].timeout_s == 7
    assert set(by_state.undos) == {"ONE"}
    assert under(undo_it=None).definition.undos == {}
    with pytest.raises(DefinitionError, match="state ONE has no handler"):
        under(one=lambda _self, _tools: Go("done"))


def test_what_the_machine_and_the_catalogue_take_from_it() -> None:
    made = define(
        table={"ONE": {"done": "TWO", "skipped": "TWO"}, "TWO": {"done": "SUCCEEDED"}},
        one=one(on_failure="skip", uses=(DOOR,), retry=Policy(max_elapsed_s=9)),
        two=state("TWO", runs="thread", acting=True)(lambda _self, _tools: Go("done")),
        undo_two=undo("TWO", retry=Policy(tries=9))(undoing()),
        concurrency=3,
        Payload=Entity,
        target="entity",
        latest=Latest(field="action", aspects={"open": "position"}),
    ).definition
    assert made.plan.states["ONE"].skip == "skipped"
    assert (made.plan.states["TWO"].undo, made.plan.states["ONE"].undo) == (Policy(tries=9), None)
    assert [spec.name for spec in made.specs] == ["ONE", "TWO", "UNDO_TWO"]
    row = made.row()
    assert (row.optional, row.undos, row.concurrency, row.oldest) == (["ONE"], ["TWO"], 3, 1)
    assert (row.states["ONE"]["uses"], row.states["TWO"]["runs"]) == (["door"], "thread")
    assert row.states["ONE"]["retry"]["max_elapsed_s"] == 9
    assert row.states["TWO"]["undo"]["retry"]["tries"] == 9
    assert row.latest == {"field": "action", "aspects": {"open": "position"}}
    assert (row.aspect({"action": "open"}), row.aspect({"action": "ring"}), row.aspect({"action": []})) == (
        "position",
        None,
        None,
    )


def test_the_aspect_may_be_one_for_the_whole_type() -> None:
    row = define(**ACTING, latest=Latest("position")).definition.row()
    assert (row.latest, row.aspect({})) == ({"aspect": "position"}, "position")
    assert define().definition.row().aspect({}) is None


def test_the_events_of_a_type_are_those_that_its_file_waits_for() -> None:
    table = {"ONE": {"done": "SUCCEEDED", "KNOCK": "SUCCEEDED", "timed_out": "FAILED"}}
    assert define(one=helped, table=table).definition.row().events == ["KNOCK"]
    assert define(one=helped, table=TWO_EVENTS, events=("late",)).definition.row().events == ["late"]


def test_without_a_source_every_event_may_come_from_outside() -> None:
    scope: dict[str, Any] = {"Go": Go}
    exec("async def made(_self, _tools): return Go('anything')", scope)  # noqa: S102  there is no file to read
    row = define(one=state("ONE")(scope["made"]), table=TWO_EVENTS).definition.row()
    assert row.events == ["done", "late"]


class DeclinedError(ValueError):
    """A card."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DeclinedError("no cover"), Fail("DeclinedError: no cover")),
        (ValueError("odd"), Fail("ValueError: odd")),
        (ConnectionResetError(), Retry("ConnectionResetError")),
        (OSError("disk"), Fail("OSError: disk")),
        (KeyError("x"), Retry("KeyError: 'x'")),
        (SystemExit(3), Retry("SystemExit: 3")),
    ],
)
def test_the_nearest_class_that_a_type_names_decides(error: BaseException, expected: Outcome) -> None:
    made = define(permanent=(ValueError, OSError), retryable=(ConnectionError,)).definition
    assert outcome_of(error, made) == expected
