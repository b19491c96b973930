"""What worker and child say to each other arrives as it was said."""

import pytest
from pydantic_core import PydanticSerializationError

from backend_loop.outcomes import Fail, Go, Outcome, Retry, Sleep, Stop, WaitFor
from backend_loop.step_frames import HEAD, heard, pack, told, unpack
from shared.status import ErrorCode, Reason


@pytest.mark.parametrize(
    "outcome",
    [
        Go("done"),
        Go("done", result={"n": 10**40, "text": "\x00 é 你好"}, freshness={"verified": True}, detail="why"),
        Fail("never", ErrorCode.DEVICE_REFUSED, {"a": 1}, {"b": 2}, ({"pointer": "/x", "detail": "no"},)),
        Retry("later", ErrorCode.TIMEOUT, 3.5),
        Sleep(1.5),
        WaitFor("PAID", 60.0),
        WaitFor("PAID"),
        Stop(Reason.OVERRIDDEN, {"by": "hand"}),
    ],
)
def test_an_outcome_arrives_as_it_was_told(outcome: Outcome) -> None:
    packed = pack({"outcome": told(outcome)})
    assert HEAD.unpack(packed[: HEAD.size])[0] == len(packed) - HEAD.size
    frame = unpack(packed[HEAD.size :])
    again = heard(frame["outcome"])
    assert again == outcome
    assert type(again) is type(outcome)


def test_an_undo_may_return_nothing() -> None:
    assert told(None) is None


def test_what_json_cannot_carry_is_not_packed() -> None:
    with pytest.raises(PydanticSerializationError):
        pack({"outcome": told(Go("done", result={"what": object()}))})
