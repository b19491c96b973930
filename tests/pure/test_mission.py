"""What is wrong with a definition is said at import, in a sentence that says what to change."""

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from backend_loop import registry
from backend_loop.dependency import Dependency
from backend_loop.mission import DefinitionError, Mission, state, steps
from backend_loop.outcomes import Go, Outcome
from backend_loop.retry import Retry
from shared.status import Priority
from tests.missions import plain


@state("ONE")
async def _one(_self: Any, _tools: Any) -> Outcome:
    return Go("done")


@state("TWO")
async def _two(_self: Any, _tools: Any) -> Outcome:
    return Go("done")


def _with(**promises: Any) -> Any:
    @state("ONE", **promises)
    async def one(_self: Any, _tools: Any) -> Outcome:
        return Go("done")

    return one


def define(**attributes: Any) -> type[Mission]:
    body: dict[str, Any] = {"type": "test.made", "table": steps("ONE"), "one": _one}
    return type("Made", (Mission,), {k: v for k, v in (body | attributes).items() if v is not None})


def test_a_well_formed_type_becomes_plan_and_row() -> None:
    definition = define(table=steps("ONE", "TWO"), two=_two).definition
    assert definition.kind == "test.made@1"
    assert definition.plan.initial == "ONE"
    row = definition.row()
    assert row.transitions == [
        {"from": "ONE", "event": "done", "to": "TWO"},
        {"from": "TWO", "event": "done", "to": "SUCCEEDED"},
    ]
    assert row.states["ONE"]["retry"] == {"tries": 5, "base_s": 0.2, "cap_s": 30.0, "max_elapsed_s": None}


def test_what_is_promised_may_be_set() -> None:
    one = _with(timeout_s=0.5, retry=Retry(tries=1, base_s=0))
    row = define(pool="gpu-2_b", priority=Priority.BULK, deadline_s=31_536_000, one=one).definition.row()
    assert (row.pool, row.priority, row.deadline_s) == ("gpu-2_b", "bulk", 31_536_000)
    assert row.states["ONE"]["timeout_s"] == 0.5


class _Payload(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"type": "Bad Name"}, "set type to a dotted lower-case name"),
        ({"version": 0}, "version is a whole number from 1"),
        ({"table": None}, "set table to state"),
        ({"table": steps("ONE", "TWO")}, 'mark a method with @state("TWO")'),
        ({"table": {"ONE": {}}}, "no event leads out of it"),
        ({"table": {"ONE": {"done": "NOWHERE"}}}, "give NOWHERE a row of its own"),
        ({"table": {"ONE": {"not good": "SUCCEEDED"}}}, "cannot be an event"),
        ({"table": {"one": {"done": "SUCCEEDED"}}}, "cannot be a state"),
        ({"table": {"SUCCEEDED": {"done": "FAILED"}}}, "not one of the ends"),
        ({"two": _two}, "give TWO a row in the table"),
        ({"two": _two, "table": {"ONE": {"done": "SUCCEEDED"}, "TWO": {"done": "ONE"}}}, "TWO is not reachable"),
        ({"target": "entity", "Payload": _Payload}, "which Payload does not have"),
        *(({"pool": pool}, "pool is .*: write small letters") for pool in ("", "GPU", "a b", "a:b", "1a", "a,b", 7)),
        *(({"priority": priority}, "set it to a shared.status.Priority") for priority in ("urgent", "high", 1)),
        *(
            ({"deadline_s": seconds}, "deadline_s is .*: say seconds, more than 0 and at most 31536000")
            for seconds in (0, -1, math.inf, math.nan, 31_536_001, "60", True)
        ),
        *(
            ({"one": _with(timeout_s=seconds)}, "state ONE: timeout_s is .*: say seconds, more than 0 and finite")
            for seconds in (0, -1, math.inf, math.nan, "30")
        ),
        *(({"one": _with(retry=Retry(tries=n))}, "ONE: tries is .*: a whole number from 1") for n in (0, -1, True)),
        ({"one": _with(retry=Retry(base_s=math.nan))}, "ONE: base_s is nan: say seconds from 0"),
        ({"one": _with(retry=Retry(cap_s=-1))}, "ONE: cap_s is -1: say seconds from 0"),
        ({"one": _with(retry=3)}, "ONE: retry is 3: set it to a backend_loop.retry.Retry"),
    ],
)
def test_each_fault_has_its_sentence(attributes: Mapping[str, Any], sentence: str) -> None:
    with pytest.raises(DefinitionError, match=sentence.replace("(", r"\(").replace(")", r"\)")) as caught:
        define(**attributes)
    assert "Made" in str(caught.value)


def test_the_registry_finds_what_a_module_defines_and_not_what_it_imports() -> None:
    found = registry.load(["tests.missions.plain"])
    assert {"test.noop@1", "test.five@1", "test.slow@1"} <= set(found)


def test_a_type_that_is_there_twice_is_named_with_both_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    double = ModuleType("double")
    made = define(type="test.noop")
    made.__module__ = "double"
    double.__dict__["Made"] = made
    modules = {"double": double, "tests.missions.plain": plain}
    monkeypatch.setattr(registry, "_import", lambda path: modules.get(path) or __import__(path, fromlist=["_"]))
    with pytest.raises(DefinitionError, match=r"test.noop@1 is defined twice, by .* and .*: rename one"):
        registry.load(["tests.missions.plain", "double"])


def test_a_dependency_with_two_limits_is_named_with_both_types(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("double")
    for name, limit in (("a", 1), ("b", 2)):
        made = define(type=f"test.{name}", one=_with(uses=(Dependency("door", concurrency=limit),)))
        made.__module__ = "double"
        module.__dict__[name] = made
    monkeypatch.setattr(registry, "_import", lambda _path: module)
    with pytest.raises(
        DefinitionError, match=r"dependency door has other limits in test.b than in test.a: define it once"
    ):
        registry.load(["double"])


@pytest.mark.parametrize(
    ("path", "sentence"), [("no.such.module", "cannot be imported"), ("json", "defines no mission type")]
)
def test_a_wrong_import_path_says_so(path: str, sentence: str) -> None:
    with pytest.raises(DefinitionError, match=sentence):
        registry.load([path])
