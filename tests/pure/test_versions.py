"""Older versions of a type: stored examples pass every step at import, and what was stored is run by the newest one."""

import random
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from backend_loop import document, registry
from backend_loop.course import Course, Done
from backend_loop.mission import DefinitionError, Example, Mission, Upcast, state, undo
from backend_loop.mission_type import rows_of
from backend_loop.outcomes import Go, Outcome
from backend_loop.restoring import restore
from shared.status import Status, WaitingFor


class First(BaseModel):
    """The payload of version 1."""

    name: str


class Payload(BaseModel):
    """The payload of version 3."""

    model_config = ConfigDict(extra="forbid")

    first: str
    last: str


class Context(BaseModel):
    """The context of version 3."""

    model_config = ConfigDict(extra="forbid")

    letters: int = 0


def split(payload: dict[str, Any]) -> dict[str, Any]:
    payload["first"], _, payload["last"] = payload.pop("name").partition(" ")
    return payload


def counted(context: dict[str, Any]) -> dict[str, Any]:
    return {"letters": len(context.pop("text", ""))}


def nothing(payload: dict[str, Any]) -> dict[str, Any]:
    return payload


def dice(_payload: dict[str, Any]) -> dict[str, Any]:
    return {"first": str(random.random()), "last": ""}


ONE_TO_TWO = Upcast(
    payload=split,
    states={"HELLO": "GREETING"},
    schema=First,
    examples=[Example({"name": "Ann Lee"}, {"text": "hi"}, "HELLO")],
)
TWO_TO_THREE = Upcast(
    context=counted,
    states={"GREETING": "GREET", "BYE": "LEAVE"},
    examples=[Example({"first": "Ann", "last": "Lee"}, {"text": "hi"}, "BYE")],
)


@state("GREET")
async def greet(_self: Any, _tools: Any) -> Outcome:
    return Go("done")


@undo("GREET")
async def ungreet(_self: Any, _tools: Any) -> None:
    """Nothing to say."""


@undo("LEAVE")
async def come_back(_self: Any, _tools: Any) -> None:
    """Nothing to say."""


@state("LEAVE")
async def leave(_self: Any, _tools: Any) -> Outcome:
    return Go("done")


def define(**attributes: Any) -> type[Mission]:
    body: dict[str, Any] = {
        "type": "test.greeter",
        "version": 3,
        "table": {"GREET": {"done": "LEAVE"}, "LEAVE": {"done": "SUCCEEDED"}},
        "upcasters": {1: ONE_TO_TWO, 2: TWO_TO_THREE},
        "greet": greet,
        "leave": leave,
        "ungreet": ungreet,
        "come_back": come_back,
        "Payload": Payload,
        "Context": Context,
    }
    return type("Greeter", (Mission,), body | attributes)


GREETER = define().definition


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        (
            {"upcasters": {2: TWO_TO_THREE}},
            "version 1 is still taken and has no upcaster: give upcasters[1], an Upcast to",
        ),
        ({"upcasters": {1: ONE_TO_TWO}}, "version 2 is still taken and has no upcaster: give upcasters[2]"),
        ({"oldest": 4}, "oldest is 4: say a version from 1 to 3"),
        ({"oldest": 0}, "oldest is 0: say a version from 1 to 3"),
        ({"oldest": 2}, "upcasters[1] is never used: versions 2 to 3 are run"),
        ({"upcasters": {1: ONE_TO_TWO, 2: TWO_TO_THREE, 3: Upcast()}}, "upcasters[3] is never used"),
        ({"upcasters": {1: split, 2: TWO_TO_THREE}}, "upcasters[1] is <function"),
        (
            {"upcasters": {1: Upcast(payload=split), 2: TWO_TO_THREE}},
            "upcasters[1] has no examples: give a stored mission",
        ),
        (
            {"upcasters": {1: Upcast(payload=split, examples=[Example({"nome": "Ann"})]), 2: TWO_TO_THREE}},
            "an example of version 1 does not come through: KeyError: 'name': mend the upcaster",
        ),
        (
            {"upcasters": {1: Upcast(payload=nothing, examples=[Example({"name": "Ann"})]), 2: TWO_TO_THREE}},
            "an example of version 1 does not come through: ValidationError: 3 validation errors for Payload",
        ),
        (
            {"upcasters": {1: Upcast(payload=dice, examples=[Example()]), 2: TWO_TO_THREE}},
            "an example of version 1 comes through differently each time: an upcaster is a pure function",
        ),
        (
            {
                "upcasters": {
                    1: Upcast(payload=split, examples=[Example({"name": "Ann"}, state="HELLO")]),
                    2: TWO_TO_THREE,
                }
            },
            "an example of version 1 is in state HELLO, which the table does not have: name it in an Upcast's states",
        ),
    ],
)
def test_each_fault_has_its_sentence(attributes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        define(**attributes)
    assert sentence in str(caught.value)


def test_versions_that_are_not_taken_any_more_need_nothing() -> None:
    made = define(oldest=3, upcasters={}).definition
    assert made.kinds == ("test.greeter@3",)


def test_a_payload_passes_every_step_and_keeps_its_own() -> None:
    stored = {"name": "Ann Lee"}
    assert GREETER.versions.payload(stored, 1) == {"first": "Ann", "last": "Lee"}
    assert stored == {"name": "Ann Lee"}
    newest = {"first": "Ann", "last": "Lee"}
    assert GREETER.versions.payload(newest, 3) is newest  # what is of today is not copied


def test_each_version_has_a_row_with_its_own_schema() -> None:
    rows = rows_of([GREETER, GREETER])
    assert [row.kind for row in rows] == ["test.greeter@1", "test.greeter@2", "test.greeter@3"]
    assert [sorted(row.payload_schema.get("properties", {})) for row in rows] == [["name"], [], ["first", "last"]]
    assert rows[1].payload_schema == {"type": "object"}
    assert {row.oldest for row in rows} == {1}


class _Old(BaseModel):
    text: str = "hi"


def _stored(course: Course, *, version: int, run: int = 1) -> bytes:
    return document.write(course, Context(letters=2) if version == 3 else _Old(), version, run)


def test_what_an_older_worker_stored_goes_on_under_its_new_names() -> None:
    course = Course(
        "HELLO",
        Status.WAITING,
        2,
        {"HELLO": 2, "BYE": 1},
        waiting_for=WaitingFor.RETRY,
        wake_at=5,
        done=(Done("HELLO", 1), Done("BYE", 1, maybe=True)),
    )
    back, context = restore(GREETER, _stored(course, version=1), "HELLO", 1, 1)
    assert (back.state, back.visits, back.visit) == ("GREET", {"GREET": 2, "LEAVE": 1}, 2)
    assert back.done == (Done("GREET", 1), Done("LEAVE", 1, maybe=True))
    assert (back.status, back.wake_at, back.attempt) == (Status.WAITING, 5, 2)
    assert context == {"letters": 2}


def test_a_way_back_goes_on_under_its_new_names() -> None:
    ending = {"status": "FAILED", "state": "BYE", "data": {"code": "permanent"}}
    course = Course("HELLO", Status.COMPENSATING, done=(Done("HELLO", 1),), undone=(Done("BYE", 1),), ending=ending)
    back, _ = restore(GREETER, _stored(course, version=1), "HELLO", 1, 1)
    assert back.undoing
    assert (back.state, back.undone, back.ending) == ("GREET", (Done("LEAVE", 1),), {**ending, "state": "LEAVE"})


def test_a_fresh_mission_of_any_version_begins_in_the_first_state_of_today() -> None:
    assert restore(GREETER, b"", "HELLO", 1, 1) == (Course("GREET"), {})


def test_what_is_of_today_is_left_as_it_is() -> None:
    course = Course("LEAVE", Status.RUNNING, visits={"GREET": 1, "LEAVE": 1})
    assert restore(GREETER, _stored(course, version=3), "LEAVE", 3, 1) == (course, {"letters": 2})


def test_a_state_that_no_upcaster_names_is_an_error_with_a_sentence() -> None:
    text = _stored(Course("SINGING", Status.RUNNING), version=3)
    with pytest.raises(ValueError, match="has no state SINGING: name it in the states of an Upcast"):
        restore(GREETER, text, "SINGING", 3, 1)


def test_an_undo_that_is_not_there_any_more_is_an_error_with_a_sentence() -> None:
    text = _stored(Course("LEAVE", Status.RUNNING, done=(Done("GREET", 1),)), version=3)
    with pytest.raises(ValueError, match="has no undo of GREET: keep it for what was begun with it"):
        restore(define(ungreet=None).definition, text, "LEAVE", 3, 1)


def test_a_replay_of_what_was_given_up_amid_its_undos_goes_on_with_them() -> None:
    ending = {"status": "FAILED", "state": "LEAVE", "data": {"code": "permanent"}}
    both = (Done("GREET", 1), Done("LEAVE", 1))
    lost = Course("LEAVE", Status.COMPENSATING, done=both, ending=ending)
    course, context = restore(GREETER, _stored(lost, version=3), "LEAVE", 3, 2)
    assert (course.undoing, course.state, context) == (True, "LEAVE", {"letters": 2})
    course, context = restore(GREETER, _stored(lost, version=3), "GREET", 3, 2)
    assert (course, context) == (Course("GREET", visits={}), {})  # the record names the first state: from the start
    first = lost._replace(done=both[:1], undone=both[1:])
    assert restore(GREETER, _stored(first, version=3), "GREET", 3, 2).course.undoing


def test_a_document_of_an_older_run_is_a_replay() -> None:
    dead = Course("FAILED", Status.RUNNING, 5, {"GREET": 1, "LEAVE": 1}, transitions=9, failed_in="LEAVE")
    text = _stored(dead, version=3)
    from_state, context = restore(GREETER, text, "LEAVE", 3, 2)
    assert (from_state.state, from_state.attempt, from_state.transitions, context) == ("LEAVE", 1, 0, {"letters": 2})
    from_start, context = restore(GREETER, text, "GREET", 3, 2)
    assert (from_start, context) == (Course("GREET", visits={}), {})
    again, context = restore(GREETER, _stored(dead._replace(failed_in="GREET"), version=3), "GREET", 3, 2)
    assert (again.state, again.visits, context) == ("GREET", dead.visits, {"letters": 2})
    lost = Course("GREET", Status.RUNNING, begun=True)  # ended by no worker, behind a checkpoint of its first state
    again, context = restore(GREETER, _stored(lost, version=3), "GREET", 3, 2)
    assert (again.state, context) == ("GREET", {"letters": 2})
    undone, context = restore(GREETER, _stored(dead._replace(undone=(Done("GREET", 1),)), version=3), "LEAVE", 3, 2)
    assert (undone.state, undone.visit, context) == ("GREET", 2, {})


def test_a_worker_knows_the_older_versions_of_its_types(monkeypatch: pytest.MonkeyPatch) -> None:
    known = registry.load(["tests.missions.plain"])
    monkeypatch.setattr(registry, "BUILT_IN", ())
    module = _module("greeters", Greeter=define())
    monkeypatch.setattr(registry, "_import", lambda _path: module)
    types = registry.load(["greeters"])
    assert set(types) == {"test.greeter@1", "test.greeter@2", "test.greeter@3"}
    assert {definition.version for definition in types.values()} == {3}
    assert all(kind in definition.kinds for kind, definition in known.items())


def test_a_version_that_two_classes_run_is_doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    module = _module("greeters", Old=define(version=1, upcasters={}), New=define())
    monkeypatch.setattr(registry, "_import", lambda _path: module)
    with pytest.raises(DefinitionError, match=r"test.greeter@1 is defined twice, .* or raise its version and oldest"):
        registry.load(["greeters"])


def _module(name: str, **classes: type[Mission]) -> Any:
    module = type(random)(name)
    for attribute, made in classes.items():
        made.__module__ = name
        module.__dict__[attribute] = made
    return module
