"""Missions that older releases left behind are read by the newest one: JSON files, never changed once written.

Every older version of every type has its file (`tests/missions/versions/examples`), the built-in types included.
"""

from copy import deepcopy
from typing import Any, Final

import jsonschema_rs
import pytest

from backend_loop import document, registry
from backend_loop.course import Course
from backend_loop.restoring import restore
from shared.status import Status, WaitingFor
from tests.missions.versions.stored import FOLDER, stored

MODULES: Final = ("tests.missions.versions.third", "tests.missions.plain")
TYPES: Final = registry.load(MODULES)
OLDER: Final = {kind: one for kind, one in TYPES.items() if int(kind.partition("@")[2]) < one.version}
EXAMPLES: Final = [
    pytest.param(kind, one, id=f"{kind} {one['state']} {n}") for kind in OLDER for n, one in enumerate(stored(kind))
]


def _version(kind: str) -> int:
    return int(kind.partition("@")[2])


def test_every_older_version_has_its_stored_missions_and_each_file_a_version() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(OLDER)
    assert all(stored(kind) for kind in OLDER)


@pytest.mark.parametrize(("kind", "one"), EXAMPLES)
def test_a_stored_mission_becomes_what_was_said_then(kind: str, one: dict[str, Any]) -> None:
    definition, version, before = OLDER[kind], _version(kind), deepcopy(one)
    became = {
        "payload": definition.versions.payload(one["payload"], version),
        "context": definition.versions.context(one["context"], version),
        "state": definition.versions.state(one["state"], version),
    }
    assert became == one["becomes"]
    assert one == before, "a step that changes what it was given is not pure"
    again = definition.versions.payload(one["payload"], version), definition.versions.context(one["context"], version)
    assert again == (became["payload"], became["context"]), "nor is one that answers otherwise the next time"
    definition.mission.Payload.model_validate(became["payload"])
    definition.mission.Context.model_validate(became["context"])


@pytest.mark.parametrize(("kind", "one"), EXAMPLES)
def test_it_goes_on_where_it_was(kind: str, one: dict[str, Any]) -> None:
    """Its document as that release's worker committed it, in a wait and with all that the machine keeps by state."""
    definition, version = OLDER[kind], _version(kind)
    left = Course(
        one["state"],
        Status.WAITING,
        attempt=3,
        visits={stored(kind)[0]["state"]: 1} | {one["state"]: 2},
        waiting_for=WaitingFor.RETRY,
        wake_at=12_345,
        transitions=7,
    )
    written = document.write(left, one["context"], version)
    found = restore(definition, written, one["state"], version, 1)
    assert found.context == one["becomes"]["context"]
    now = one["becomes"]["state"]
    assert (found.course.state, found.course.attempt, found.course.visits[now]) == (now, 3, 2)
    assert (found.course.wake_at, found.course.transitions) == (12_345, 7)
    assert set(found.course.visits) <= set(definition.plan.states)


@pytest.mark.parametrize("kind", OLDER)
def test_a_mission_that_never_began_begins_at_the_newest_beginning(kind: str) -> None:
    found = restore(OLDER[kind], b"", stored(kind)[0]["state"], _version(kind), 1)
    assert (found.course.state, found.context) == (OLDER[kind].plan.initial, {})


@pytest.mark.parametrize(("kind", "one"), EXAMPLES)
def test_the_door_holds_a_payload_to_its_own_version(kind: str, one: dict[str, Any]) -> None:
    row = next(row for row in OLDER[kind].rows() if row.kind == kind)
    schema = jsonschema_rs.Draft202012Validator(row.payload_schema)
    assert schema.is_valid(one["payload"])
    if one["becomes"]["payload"] != one["payload"]:  # else it is the context that the newer version keeps otherwise
        assert not schema.is_valid(one["becomes"]["payload"]), "in the words of the newest one it is no such payload"
