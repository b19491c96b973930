"""`scene.run` as decisions: what begins when, and how the scene ends, given what became of its actions."""

from dataclasses import replace
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as some
from pydantic import ValidationError

from backend_loop.missions.scene_run import SceneRun, due, ended
from backend_loop.outcomes import Fail, Go
from backend_loop.toolbox import ChildMission
from shared.clock import parse_rfc3339
from shared.status import ErrorCode

DEFINITION = SceneRun.definition
DOOR = jsonschema_rs.Draft202012Validator(DEFINITION.row().payload_schema)

CONFIRMED = ChildMission(
    "t", "device.control", None, "SUCCEEDED", {"outcome": "confirmed", "value": {"power": "on"}}, None, None
)
FAILED = ChildMission(
    "t", "device.control", None, "FAILED", None, {"code": "device_unreachable", "message": "it is offline"}, None
)
OVERRIDDEN = ChildMission("t", "device.control", None, "CANCELLED", {"value": {"power": "off"}}, None, "overridden")

Ends = list[ChildMission | None]


def accepted(payload: dict[str, Any]) -> bool:
    try:
        SceneRun.Payload.model_validate(payload)
    except ValidationError:
        return False
    return True


ON = {"entity": "light.hall", "action": "turn_on"}


@pytest.mark.parametrize(
    ("payload", "good"),
    [
        ({"actions": [ON]}, True),
        ({"actions": [{**ON, "on_failure": "stop"}], "order": "sequence", "on_failure": "continue"}, True),
        ({"actions": [{**ON, "action": "set_brightness", "value": 40}], "name": "evening"}, True),
        ({"actions": [ON], "order": "sequence", "pause_s": 2.5}, True),
        ({"actions": []}, False),
        ({"actions": [ON] * 101}, False),
        ({"actions": [{**ON, "action": "fly"}]}, False),
        ({"actions": [{**ON, "action": "set_brightness"}]}, False),
        ({"actions": [{**ON, "action": "set_brightness", "value": 101}]}, False),
        ({"actions": [{**ON, "value": 5}]}, False),
        ({"actions": [{**ON, "on_failure": "panic"}]}, False),
        ({"actions": [{**ON, "onfailure": "stop"}]}, False),
        ({"actions": [{"entity": "light.hall"}]}, False),
        ({"actions": [{"action": "turn_on"}]}, False),
        ({"actions": [ON], "order": "sideways"}, False),
        ({"actions": [ON], "pause_s": -1}, False),
        ({"actions": ON}, False),
        ({}, False),
    ],
    ids=str,
)
def test_the_door_and_the_type_agree(payload: dict[str, Any], good: bool) -> None:
    assert (DOOR.is_valid(payload), accepted(payload)) == (good, good)


def test_one_fault_is_told_once_and_where_it_is() -> None:
    faults = list(DOOR.iter_errors({"actions": [ON, {"entity": "light.hall"}]}))
    assert [(fault.instance_path, fault.message) for fault in faults] == [
        (["actions", 1], '"action" is a required property')
    ]


def scene(*actions: str | None, order: str = "parallel", on_failure: str = "continue") -> SceneRun.Payload:
    """A scene of so many actions, each with its own word for a failure."""
    given = [{**ON, "on_failure": own} for own in actions]
    return SceneRun.Payload.model_validate({"actions": given, "order": order, "on_failure": on_failure})


@pytest.mark.parametrize(
    ("what", "ends", "begins"),
    [
        (scene(None, None, None), [None, None, None], [0, 1, 2]),
        (scene(None, None), [CONFIRMED, FAILED], []),
        (scene(None, None, order="sequence"), [None, None], [0]),
        (scene(None, None, order="sequence"), [CONFIRMED, None], [1]),
        (scene(None, None, order="sequence"), [FAILED, None], [1]),
        (scene("stop", None, order="sequence"), [FAILED, None], []),
        (scene("stop", None, order="sequence"), [OVERRIDDEN, None], []),
        (scene("stop", None, order="sequence"), [CONFIRMED, None], [1]),
        (scene(None, None, order="sequence", on_failure="stop"), [FAILED, None], []),
        (scene("continue", None, order="sequence", on_failure="stop"), [FAILED, None], [1]),
    ],
)
def test_what_begins(what: SceneRun.Payload, ends: Ends, begins: list[int]) -> None:
    assert due(what, ends) == begins


@pytest.mark.parametrize(
    ("what", "ends", "counts"),
    [
        (scene(None, None), [CONFIRMED, CONFIRMED], (2, 0, 0)),
        (scene(None, None), [CONFIRMED, FAILED], (1, 1, 0)),
        (scene(None, None), [OVERRIDDEN, CONFIRMED], (1, 1, 0)),
        (scene("stop", None), [CONFIRMED, FAILED], (1, 1, 0)),
    ],
)
def test_it_succeeds_where_only_what_may_fail_has(
    what: SceneRun.Payload, ends: Ends, counts: tuple[int, int, int]
) -> None:
    end = ended(what, ends, 0)
    assert isinstance(end, Go)
    result = end.result or {}
    assert (result["done"], result["failed"], result["not_begun"]) == counts


@pytest.mark.parametrize(
    ("what", "ends", "message"),
    [
        (scene(None), [FAILED], "turn_on light.hall: it is offline"),
        (scene(None, None), [OVERRIDDEN, FAILED], "turn_on light.hall: overridden"),
        (scene(None, "stop"), [FAILED, OVERRIDDEN], "turn_on light.hall: overridden"),
        (scene("stop", None, order="sequence"), [FAILED, None], "turn_on light.hall: it is offline"),
    ],
)
def test_it_fails_where_something_failed_that_must_not_or_nothing_was_done(
    what: SceneRun.Payload, ends: Ends, message: str
) -> None:
    end = ended(what, ends, 0)
    assert isinstance(end, Fail)
    assert (end.code, end.message) == (ErrorCode.CHILD_FAILED, message)


def test_each_action_has_its_row() -> None:
    end = ended(scene(None, None, "stop", None, order="sequence"), [CONFIRMED, OVERRIDDEN, FAILED, None], 0)
    assert isinstance(end, Fail)
    rows = (end.result or {})["actions"]
    assert [row["outcome"] for row in rows] == ["confirmed", "overridden", "device_unreachable", "not_begun"]
    assert [row["value"] for row in rows] == [{"power": "on"}, {"power": "off"}, None, None]
    assert [row["error"] for row in rows] == [
        None,
        None,
        {"code": "device_unreachable", "message": "it is offline"},
        None,
    ]
    assert {row["entity"] for row in rows} == {"light.hall"}


def test_it_is_as_fresh_as_its_oldest_look_and_verified_where_whatever_acted_was_looked_at_again() -> None:
    def seen(end: ChildMission, second: int, *, verified: bool) -> ChildMission:
        fresh = {"observed_at": f"2026-01-01T00:00:0{second}.000Z", "age_ms": 0, "verified": verified, "source": "x"}
        return replace(end, freshness=fresh)

    already = replace(CONFIRMED, result={"outcome": "already_done"})
    now = parse_rfc3339("2026-01-01T00:00:05.000Z")
    both: Ends = [seen(CONFIRMED, 2, verified=True), seen(already, 1, verified=False)]
    end = ended(scene(None, None), both, now)
    assert end.freshness is not None
    assert (end.freshness["age_ms"], end.freshness["verified"]) == (4_000, True)
    lost: Ends = [seen(CONFIRMED, 2, verified=True), seen(FAILED, 3, verified=False)]
    assert (ended(scene(None, None), lost, now).freshness or {})["verified"] is False
    idle: Ends = [seen(already, 1, verified=False)]
    assert (ended(scene(None), idle, now).freshness or {})["verified"] is False
    assert ended(scene(None), [CONFIRMED], now).freshness is None


@given(some.data())
def test_every_scene_comes_to_an_end_and_counts_all(data: some.DataObject) -> None:
    words = some.sampled_from([None, "stop", "continue"])
    what = scene(
        *data.draw(some.lists(words, min_size=1, max_size=6)),
        order=data.draw(some.sampled_from(["parallel", "sequence"])),
        on_failure=data.draw(some.sampled_from(["stop", "continue"])),
    )
    ends: Ends = [None] * len(what.actions)
    for _ in what.actions:
        if not (begins := due(what, ends)):
            break
        assert {ends[n] for n in begins} == {None}, "nothing begins twice"
        for n in begins:
            ends[n] = data.draw(some.sampled_from([CONFIRMED, FAILED, OVERRIDDEN]))
    assert due(what, ends) == []
    end = ended(what, ends, 0)
    result = end.result or {}
    assert result["done"] + result["failed"] + result["not_begun"] == len(what.actions)
    assert isinstance(end, Fail) or (result["done"] > 0 and result["not_begun"] == 0)
