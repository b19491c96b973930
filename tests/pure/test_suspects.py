"""A suspect's record goes to its process as bytes, and is buried without a look at payload or context (B49)."""

from typing import Any

import pytest

from backend_loop import document
from backend_loop.course import Course
from backend_loop.solo import Facts, packed, unpacked
from backend_loop.store import Claimed
from backend_loop.suspects import _buried, is_suspect
from shared.settings import Settings
from shared.status import Status


def claimed(**fields: Any) -> Claimed:
    row = (
        "m",
        "w1",
        7,
        3,
        9,
        "t",
        1,
        "SENDING",
        b"",
        b"\xff\x00 not JSON",
        10,
        2,
        1,
        1,
        "",
        5,
        "",
        "normal:p:a",
        "",
        False,
    )
    return Claimed(*row, (b'{"entry":"cancel"}', b"\xfe"))._replace(**fields)


@pytest.mark.parametrize(("deaths", "alone"), [(0, False), (1, False), (2, True), (3, True)])
def test_p8_from_the_third_claim_after_two_deaths_it_runs_alone(deaths: int, alone: bool) -> None:
    assert is_suspect(claimed(deaths=deaths)) is alone


def test_a_mission_arrives_as_it_was_claimed_whatever_its_bytes_are() -> None:
    one = claimed(document=b'{"context":{}}')
    assert unpacked(packed(one)) == one
    assert packed(one).count(b"\n") == 1


def test_the_facts_arrive_with_all_settings() -> None:
    settings = Settings(missions=("a.b", "c"), slots=7, redis_url="redis://user:secret@host", home_url=None)
    facts = Facts(3, "a.b", "Outer.Inner", settings, "unix:///s")
    assert Facts.unpack(facts.pack()) == facts


def test_b49_what_it_leaves_is_a_dead_letter_with_its_context_untouched() -> None:
    course = Course("SENDING", Status.RUNNING, attempt=3, visits={"SENDING": 2}, transitions=5)
    text = document.write(course, {"kept": "as it was"}, 2, 1)
    reaction, after = _buried(claimed(document=text, version=2), "its process died")
    assert reaction.course.status is Status.FAILED
    assert reaction.course.failed_in == "SENDING"
    assert reaction.end is not None
    assert reaction.end.error == {
        "code": "worker_lost",
        "message": "its process died",
        "state": "SENDING",
        "attempts": 3,
    }
    kept = document.read(after, "FAILED", 2, 1)
    assert (kept.context, kept.version, kept.run) == ({"kept": "as it was"}, 2, 1)
    assert kept.course.failed_in == "SENDING"
    assert kept.course.visits == {"SENDING": 2}


def test_b49_a_document_that_nobody_can_read_is_buried_as_it_is() -> None:
    reaction, after = _buried(claimed(document=b"not JSON"), "its process died")
    assert after == b""
    assert reaction.course.failed_in == "SENDING"
