"""`device.query` as data: what the door refuses, and what counts as showing what is expected."""

from typing import Any

import jsonschema_rs
import pytest
from pydantic import ValidationError

from backend_loop.missions.device_query import DeviceQuery, shows

DEFINITION = DeviceQuery.definition
DOOR = jsonschema_rs.Draft202012Validator(DEFINITION.row().payload_schema)


def accepted(payload: dict[str, Any]) -> bool:
    try:
        DeviceQuery.Payload.model_validate(payload)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("payload", "good"),
    [
        ({"entity": "light.hall"}, True),
        ({"entity": ["light.hall", "light.study"]}, True),
        ({"entity": "sensor.front_door", "expect": {"contact": "closed"}, "within_s": 30}, True),
        ({"entity": "sensor.front_door", "expect": None}, True),
        ({"entity": ["light.hall"], "expect": None}, True),
        ({"entity": "light.hall", "why": "unknown fields are kept and ignored"}, True),
        ({}, False),
        ({"entity": ""}, False),
        ({"entity": []}, False),
        ({"entity": ["light.hall", "light.hall"]}, False),
        ({"entity": ["light.hall", 5]}, False),
        ({"entity": ["light.hall"], "expect": {"power": "on"}}, False),
        ({"entity": "light.hall", "expect": {}}, False),
        ({"entity": "light.hall", "expect": {"power": ["on"]}}, False),
        ({"entity": "light.hall", "within_s": -1}, False),
        ({"entity": "light.hall", "within_s": 4_000}, False),
    ],
    ids=str,
)
def test_the_door_and_the_type_agree(payload: dict[str, Any], good: bool) -> None:
    assert (DOOR.is_valid(payload), accepted(payload)) == (good, good)


@pytest.mark.parametrize(
    ("value", "expect", "is_so"),
    [
        ({"contact": "closed"}, {"contact": "closed"}, True),
        ({"contact": "open"}, {"contact": "closed"}, False),
        ({"power": "on", "brightness": 40}, {"brightness": 40.0}, True),
        ({"power": "on", "brightness": 40}, {"brightness": 40, "power": "off"}, False),
        ({"contact": "closed"}, {"lock": "locked"}, False),
        ({"contact": "closed"}, {"lock": None}, False),
        ({"level": 1}, {"level": True}, False),
        ({"there": True}, {"there": True}, True),
    ],
    ids=str,
)
def test_what_is_expected_is_to_be_shown_whole(value: dict[str, Any], expect: dict[str, Any], is_so: bool) -> None:
    assert shows(value, expect) is is_so


def test_a_look_is_urgent_and_waits_for_nobody_who_acts() -> None:
    row = DEFINITION.row()
    assert (row.priority, row.target, row.latest) == ("urgent", None, None)
    assert not any(spec.acting for spec in DEFINITION.states.values())
