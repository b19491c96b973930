"""What an agent's model may have done, and what is kept of its conversation."""

import json
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_core import to_json

from backend_loop.missions import agent_talk
from backend_loop.missions.agent_run import AgentRun
from backend_loop.missions.agent_talk import ANSWER, LEFT_OUT, Call, Turn, bounded, messages, turn
from backend_loop.missions.agent_tools import (
    ARGUMENTS,
    SAFE,
    Checked,
    NotAllowedError,
    Tool,
    checked,
    function,
    name_of,
)
from backend_loop.missions.device_control import DeviceControl
from backend_loop.missions.device_query import DeviceQuery
from backend_loop.missions.order_fulfil import OrderFulfil
from backend_loop.thought import Thought, Usage, Wanted
from dualloop.outside.model import _checked, _checked_function

Payload = AgentRun.Payload
DEFAULT = Payload(goal="x").allowed


def wanted(name: str, arguments: Any = None) -> Wanted:
    return Wanted("c", name, arguments if isinstance(arguments, str) else json.dumps(arguments or {}))


# --- what may be called


def test_a_tool_that_nobody_could_call_is_refused() -> None:
    with pytest.raises(ValidationError, match="n is in only and in fixed"):
        Tool(type="a.b", only={"n": [1]}, fixed={"n": 1})


def test_only_what_is_harmless_is_allowed_without_being_named() -> None:
    assert sorted(DEFAULT) == ["device-control", "device-query"]
    assert "unlock" not in DEFAULT["device-control"].only["action"]
    assert "lock" in DEFAULT["device-control"].only["action"]


@pytest.mark.parametrize("name", ["order-fulfil", "order.fulfil", "agent-run", "device_control", "", "device-control "])
def test_what_was_not_allowed_is_refused_whatever_it_is_called(name: str) -> None:
    with pytest.raises(NotAllowedError, match="there is no tool"):
        checked(wanted(name), DEFAULT)


@pytest.mark.parametrize(
    "arguments",
    [
        {"entity": "lock.front_door", "action": "unlock"},
        {"entity": "lock.front_door"},
        {"entity": "light.study", "action": ["turn_on", "unlock"]},
        {"entity": "light.study", "action": None},
        {"entity": "light.study", "action": "turn_on", "conflict": "force"},
        {"entity": "light.study", "action": "turn_on", "insist": True},
        "[1]",
        '{"entity": "light.',
        '{"entity": "light.study", "action": "turn_on", "action": "unlock"}',
        '{"value": NaN}',
        '{"value": "\\ud800"}',
        json.dumps({"entity": "x" * ARGUMENTS}),
        "[" * 3_000,
    ],
)
def test_arguments_that_were_not_allowed_are_refused(arguments: Any) -> None:
    with pytest.raises(NotAllowedError):
        checked(wanted("device-control", arguments), DEFAULT)


def test_what_the_command_has_fixed_goes_along() -> None:
    call = wanted("device-control", {"entity": "light.study", "action": "turn_on"})
    fixed = {"conflict": "respect_newer", "insist": False}
    arguments = {"entity": "light.study", "action": "turn_on", **fixed}
    assert checked(call, DEFAULT) == Checked("device.control", arguments)


@pytest.mark.parametrize(
    ("value", "fits"),
    [(1, True), (1.0, True), (True, False), ("1", False), ([1, 2], True), ([1, 3], False), ([], False)],
)
def test_an_argument_is_one_of_these_or_some_of_them(value: Any, fits: bool) -> None:
    tools = Payload(goal="x", tools=[Tool(type="a.b", only={"n": [1, 2]})]).allowed
    if fits:
        assert checked(wanted("a-b", {"n": value}), tools).arguments == {"n": value}
    else:
        with pytest.raises(NotAllowedError, match="n has to be one of 1, 2"):
            checked(wanted("a-b", {"n": value}), tools)


def test_names_of_functions_and_types_are_each_other_s() -> None:
    types = ("device.control", "a.b_c", "a_b.c", "a.b.c", "x" * 64)
    assert len({name_of(one) for one in types}) == len(types)
    assert [name_of(one).replace("-", ".") for one in types] == list(types)


@pytest.mark.parametrize("mission", [DeviceControl, DeviceQuery, OrderFulfil])
def test_a_type_becomes_a_function_that_servers_take(mission: Any) -> None:
    row = mission.definition.row()
    made = function(Tool(type=row.type), row.description, row.payload_schema)
    assert _checked_function({"type": "function", "function": made._asdict()}) == name_of(row.type)
    assert set(made.parameters["properties"]) == set(row.payload_schema["properties"])


def test_what_is_fixed_is_not_shown_and_what_is_limited_is_shown_so() -> None:
    safe = SAFE[0]
    assert isinstance(safe, Tool)
    schema = function(safe, "", DeviceControl.definition.row().payload_schema).parameters
    assert {"conflict", "insist"}.isdisjoint(schema["properties"])
    assert "unlock" not in schema["properties"]["action"]["enum"]
    assert schema["required"] == ["entity", "action"]
    assert schema["properties"]["value"]["description"], "and the rest as its type has it"


@pytest.mark.parametrize(
    "payload",
    [
        {"goal": ""},
        {"goal": "x" * 8_001},
        {"goal": "x", "max_steps": 0},
        {"goal": "x", "max_steps": 51},
        {"goal": "x", "tools": ["agent.run"]},
        {"goal": "x", "tools": [{"type": "agent.run"}]},
        {"goal": "x", "tools": ["Device"]},
        {"goal": "x", "tools": ["a" * 65]},
        {"goal": "x", "tools": ["a.b", {"type": "a.b"}]},
        {"goal": "x", "tools": [{"type": "a.b", "olny": {}}]},
    ],
)
def test_a_payload_that_is_nonsense_is_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Payload.model_validate(payload)


# --- what is kept of the conversation


def thought(*calls: Wanted, text: str = "") -> Thought:
    return Thought(text, calls, Usage(1, 1))


def long_talk(count: int, size: int) -> list[Turn]:
    calls = {n: Call(id=f"c{n}", function="f", arguments="{}", answer="x" * size) for n in range(count)}
    return [Turn(step=n + 1, calls=[call]) for n, call in calls.items()]


def test_of_the_oldest_turns_the_answers_go_first_and_the_newest_stays() -> None:
    kept = bounded(long_talk(4, 1_000), 3_000)
    assert [one.step for one in kept] == [1, 2, 3, 4]
    assert [one.calls[0].answer == LEFT_OUT for one in kept] == [True, True, False, False]
    assert sum(one.size for one in kept) <= 3_000


def test_then_the_oldest_turns_go_themselves_and_the_newest_stays() -> None:
    kept = bounded(long_talk(50, 1_000), 1_500)
    assert kept[-1] == long_talk(50, 1_000)[-1]
    assert [one.step for one in kept] == list(range(kept[0].step, 51))
    assert 1 < len(kept) < 50
    assert [one.step for one in bounded(long_talk(3, 9_000), 1)] == [3], "however long it is"


def test_what_fits_is_kept_as_it_is() -> None:
    turns = long_talk(5, 100)
    assert bounded(turns) == turns


@pytest.mark.parametrize("room", [1, 500, 2_000, 4_000, 100_000])
def test_what_is_kept_is_always_whole(room: int) -> None:
    _checked({"model": "scripted", "messages": messages("s", "goal", bounded(long_talk(9, 500), room))})


def test_a_reply_is_bounded_part_by_part() -> None:
    calls = [Wanted(f"c{n}", "f", json.dumps({"x": "\x00" * 600})) for n in range(100)]
    made = turn(1, thought(*calls, text="y" * 100_000), ())
    assert len(made.calls) == agent_talk.MOST_CALLS
    assert len(to_json(made)) < 300_000
    assert made.text.endswith("(92000 characters left out)")
    long = agent_talk.answer({"text": "z" * 10_000})
    assert len(long) < ANSWER + 50


@pytest.mark.parametrize("why", ["x" * 9_000, "\x00" * 9_000, "ü" * 9_000, '"' * 9_000])
def test_why_a_call_is_refused_is_short_enough_to_be_whole(why: str) -> None:
    assert json.loads(agent_talk.refusal(why))["error"].startswith(why[:100])


def test_calls_have_ids_of_their_own_whatever_the_model_says() -> None:
    calls = [Wanted(id_, "f", "{}") for id_ in ("a", "a", "", "b" * 65, "old")]
    made = turn(3, thought(*calls), ("old",))
    assert [one.id for one in made.calls] == ["a", "call_3_1", "call_3_2", "call_3_3", "call_3_4"]


@pytest.mark.parametrize(("name", "arguments"), [("f", "{"), ("f", "[]"), ("", "{}"), ("f g!", "{}"), ("ü" * 99, "{}")])
def test_what_is_no_call_is_answered_at_once_and_sent_back_as_servers_take_it(name: str, arguments: str) -> None:
    made = turn(1, thought(Wanted("c", name, arguments)), ())
    assert "error" in json.loads(made.calls[0].answer)
    _checked({"model": "scripted", "messages": messages("s", "goal", [made])})


def test_a_model_that_fails_is_left_alone_by_all_agents() -> None:
    states = AgentRun.definition.row().states
    assert {name: one["uses"] for name, one in states.items()} == {
        "PERCEIVING": [],
        "THINKING": ["model"],
        "ACTING": [],
    }
    (model,) = AgentRun.definition.states["THINKING"].uses
    assert model.breaker is not None
