"""A suspect's record goes to its process as bytes, and is buried without a look at payload or context (B49)."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from backend_loop import document
from backend_loop.children import Child
from backend_loop.course import Course, Done
from backend_loop.mission import Mission, state, undo
from backend_loop.outcomes import Go, Outcome
from backend_loop.solo import Facts, packed, unpacked
from backend_loop.store import Claimed
from backend_loop.suspects import _buried
from backend_loop.suspicion import is_suspect
from shared.settings import Settings
from shared.status import Status


class Sender(Mission):
    """Books, then sends."""

    type = "test.sender"
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "BOOKING": {"done": "SENDING"},
        "SENDING": {"done": "SUCCEEDED"},
    }

    @state("BOOKING")
    async def book(self, _tools: Any) -> Outcome:
        return Go("done")

    @undo("BOOKING")
    async def unbook(self, _tools: Any) -> None:
        raise NotImplementedError

    @state("SENDING", acting=True)
    async def send(self, _tools: Any) -> Outcome:
        return Go("done")

    @undo("SENDING")
    async def recall(self, _tools: Any) -> None:
        raise NotImplementedError


DEFINITION = Sender.definition


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
    assert is_suspect(claimed(deaths=deaths).losses) is alone


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
    text = document.write(course, {"kept": "as it was"})
    reaction, after = _buried(claimed(document=text), DEFINITION, "its process died")
    assert reaction.course.status is Status.FAILED
    assert reaction.course.failed_in == "SENDING"
    assert reaction.end is not None
    assert reaction.end.error == {
        "code": "worker_lost",
        "message": "its process died",
        "state": "SENDING",
        "attempts": 3,
        "undone": [],
        "not_undone": ["SENDING"],
    }
    kept = document.read(after, "FAILED")
    assert (kept.context, kept.version, kept.run) == ({"kept": "as it was"}, 1, 1)
    assert kept.course.failed_in == "SENDING"
    assert kept.course.visits == {"SENDING": 2}


def test_b49_a_document_that_nobody_can_read_is_buried_as_it_is() -> None:
    reaction, after = _buried(claimed(document=b"not JSON"), DEFINITION, "its process died")
    assert after == b""
    assert reaction.course.failed_in == "SENDING"
    assert reaction.end is not None
    assert not {"undone", "not_undone"} & (reaction.end.error or {}).keys()


def test_b49_an_operator_reads_what_is_not_undone_the_newest_first() -> None:
    course = Course("SENDING", Status.RUNNING, done=(Done("BOOKING", 1), Done("BOOKING", 2)))
    reaction, _ = _buried(claimed(document=document.write(course, {})), DEFINITION, "it died")
    assert reaction.end is not None
    assert (reaction.end.error or {})["not_undone"] == ["SENDING", "BOOKING", "BOOKING"]
    assert (reaction.transitions[0].data or {})["not_undone"] == ["SENDING", "BOOKING", "BOOKING"]


def test_b49_one_that_was_lost_amid_its_undos_names_the_end_that_it_was_to_come_to() -> None:
    ending = {"status": "FAILED", "state": "SENDING", "data": {}, "error": {"code": "permanent"}}
    course = Course(
        "BOOKING", Status.COMPENSATING, done=(Done("BOOKING", 1),), undone=(Done("SENDING", 1),), ending=ending
    )
    reaction, _ = _buried(claimed(state="BOOKING", document=document.write(course, {})), DEFINITION, "it died")
    assert reaction.end is not None
    error = reaction.end.error or {}
    assert (error["undone"], error["not_undone"], error["error"]) == (["SENDING"], ["BOOKING"], {"code": "permanent"})


@pytest.mark.parametrize("start", [b"{", document.ANEW])
def test_b49_of_a_new_run_that_has_committed_nothing_yet_that_counts_which_the_one_before_has_left(
    start: bytes,
) -> None:
    text = start + document.write(Course("SENDING", Status.RUNNING, done=(Done("BOOKING", 1),)), {})[1:]
    reaction, _ = _buried(claimed(state="BOOKING", document=text, run=2), DEFINITION, "it died")
    assert reaction.end is not None
    assert (reaction.end.error or {})["not_undone"] == ["BOOKING"]


def test_p5_who_lives_is_told_to_end_and_who_is_held_never_begins() -> None:
    held = Child("held", "t", None, "SENDING", 1, 2, spec={})
    kids = (
        Child("lives", "t", None, "SENDING", 1, 1),
        held,
        Child("over", "t", None, "SENDING", 1, 3, status="FAILED"),
    )
    course = Course("SENDING", Status.RUNNING, children=kids)
    reaction, _ = _buried(claimed(document=document.write(course, {})), DEFINITION, "it died")
    assert [one.task_id for one in reaction.tell] == ["lives"]
