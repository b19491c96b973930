"""From a record to what a mission is made of; what cannot be read ends the mission, not the worker."""

from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from backend_loop.course import Course
from backend_loop.mission import MissionType
from backend_loop.outcomes import Fail
from backend_loop.restoring import restore
from backend_loop.store import Claimed
from shared.envelope import Envelope
from shared.status import ErrorCode, Status


class Decoded(NamedTuple):
    """A mission as its handlers see it."""

    envelope: Envelope
    payload: BaseModel
    context: BaseModel
    course: Course


def decode(claimed: Claimed, definition: MissionType) -> Decoded | Fail:
    """Read record, envelope, payload and context; a Fail says what is wrong with them, and where."""
    mission = definition.mission
    try:
        envelope = Envelope.model_validate_json(claimed.envelope)
        payload = mission.Payload.model_validate(
            definition.versions.payload(envelope.payload, envelope.payload_version)
        )
        course, context = restore(definition, claimed.document, claimed.state, claimed.version, claimed.run)
        return Decoded(envelope, payload, mission.Context.model_validate(context), resumed(course, claimed))
    except ValidationError as error:
        at = "/payload" if error.title == mission.Payload.__name__ else ""
        errors = tuple(
            {"pointer": at + "".join(f"/{part}" for part in fault["loc"]), "detail": fault["msg"]}
            for fault in error.errors(include_url=False, include_context=False, include_input=False)[:20]
        )
        where = errors[0]["pointer"] if at else error.title + errors[0]["pointer"]
        what = errors[0]["detail"].removeprefix("Value error, ")  # the words that its author chose
        more = f", and {error.error_count() - 1} more" if error.error_count() > 1 else ""
        return Fail(f"{where}: {what}{more}", ErrorCode.UNDECODABLE, errors=errors)
    except Exception as error:  # noqa: BLE001  an author's validator or upcaster may raise anything
        sentence = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return Fail(f"the record cannot be read: {sentence}", ErrorCode.UNDECODABLE)


def resumed(course: Course, claimed: Claimed) -> Course:
    """A course that a worker goes on with: whether its handler may have run, and a worker was lost in it."""
    # leased before and not committed since: its handler may have run, and with a death a worker was lost in it
    begun = course.begun or course.status is Status.RUNNING or claimed.again or claimed.deaths > 0
    lost = course.lost or claimed.deaths > 0
    return course._replace(begun=begun, lost=lost) if begun or lost else course


def context_of(written: bytes, claimed: Claimed, definition: MissionType) -> BaseModel:
    """The context of the last commit: what a handler has changed since is gone."""
    kept = restore(definition, written, claimed.state, claimed.version, claimed.run)
    return definition.mission.Context.model_validate(kept.context)
