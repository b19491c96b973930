"""What an outside service's answer means: when it may be asked again, and what the mission makes of that."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from backend_loop.mission import outcome_of
from backend_loop.missions.order_fulfil import OrderFulfil
from backend_loop.outcomes import LONGEST_S, Fail, Retry
from backend_loop.services import ServiceRefused, ServiceUnavailable, _read, retry_after_s


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0),
        ("", 0),
        ("7", 7),
        ("-7", 0),
        ("soon", 0),
        ("9" * 400, LONGEST_S),
        ("Sun, 29 Nov 1998 22:44:34 GMT", 0),
    ],
)
def test_retry_after_in_seconds_or_nothing(header: str | None, seconds: float) -> None:
    assert retry_after_s(header) == seconds


def test_retry_after_as_a_date() -> None:
    at = datetime.now(UTC) + timedelta(seconds=60)
    assert 58 <= retry_after_s(format_datetime(at, usegmt=True)) <= 60


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_work_later_is_unavailable(status: int) -> None:
    with pytest.raises(ServiceUnavailable, match="stock: not now") as fault:
        _read("stock", status, "3", b'{"detail": "not now"}')
    assert fault.value.after_s == 3


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 409, 422])
def test_what_will_not_work_later_is_refused_with_its_code(status: int) -> None:
    with pytest.raises(ServiceRefused, match="stock: never") as fault:
        _read("stock", status, None, b'{"detail": "never", "code": "out_of_stock"}')
    assert fault.value.code == "out_of_stock"


@pytest.mark.parametrize("content", [b"", b"<html>oops", b"[1]", b"7", b"\xff"])
def test_a_success_that_is_no_json_object_is_none(content: bytes) -> None:
    with pytest.raises(ServiceUnavailable, match="no JSON object"):
        _read("stock", 200, None, content)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ServiceUnavailable("stock is down", 3), Retry("ServiceUnavailable: stock is down", after_s=3)),
        (ServiceRefused("stock says no", "refused"), Fail("ServiceRefused: stock says no")),
    ],
)
def test_a_mission_waits_as_long_as_it_was_asked_to_and_takes_no_for_an_answer(error: Exception, outcome: Any) -> None:
    assert outcome_of(error, OrderFulfil.definition) == outcome


@pytest.mark.parametrize("after_s", [-1, float("nan"), float("inf"), 2 * LONGEST_S, "soon", None])
def test_a_time_that_is_none_is_left_out(after_s: Any) -> None:
    error = RuntimeError("not now")
    error.after_s = after_s  # type: ignore[attr-defined]  # as any library's exception may have one
    assert outcome_of(error, OrderFulfil.definition) == Retry("RuntimeError: not now")
