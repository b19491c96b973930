"""What is wrong with a value is said also where the value is too long to be said."""

import jsonschema_rs
import pytest

from frontend_loop.reading import read_payload
from shared.errors import Problem

ACTION = {"entity": "light.hall", "action": "turn_on"}
SCHEMA = {
    "properties": {
        "actions": {"maxItems": 100},
        "value": {"maximum": 100},
        "tools": {"items": {"anyOf": [{"type": "string"}, {"required": ["type"]}]}},
    }
}


@pytest.mark.parametrize(
    ("payload", "begins", "ends"),
    [
        ({"actions": [ACTION] * 101}, '[{"action"', "has more than 100 items"),
        ({"value": 1e308}, "1", "is greater than the maximum of 100"),
        (
            {"tools": [{"t": "x" * 5_000}]},
            '{"t":"xxx',
            "is not valid under any of the schemas listed in the 'anyOf' keyword",
        ),
        ({"value": 101}, "101 is greater than the maximum of 100", "101 is greater than the maximum of 100"),
    ],
)
def test_the_middle_of_a_long_value_is_left_out_and_not_the_reason(payload: object, begins: str, ends: str) -> None:
    with pytest.raises(Problem) as refused:
        read_payload(jsonschema_rs.validator_for(SCHEMA), payload)
    (error,) = refused.value.errors
    assert error["detail"].startswith(begins)
    assert error["detail"].endswith(ends)
    assert len(error["detail"]) <= 300
