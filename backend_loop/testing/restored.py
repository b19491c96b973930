"""From the file of an exported mission to a record on the bench: as it was accepted, or as it stood."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import to_json

from backend_loop.document import read
from backend_loop.testing.door import lane_of
from backend_loop.testing.exported import Exported, ExportError
from backend_loop.testing.record import Record
from backend_loop.testing.world import World
from shared.clock import parse_rfc3339
from shared.envelope import TENANT
from shared.status import Status

AGAIN: Final[Mapping[str, Any]] = {"event": "replayed", "from": "failed_state", "key": "same", "by": "kit"}
"""A dead letter goes on as a new run, in the state that it failed in."""


def accepted(world: World, file: Exported) -> Record:
    """As it was accepted; nothing of it has run."""
    if not file.log or file.log[0].seq != 1:
        first = file.log[0].seq if file.log else "none"
        raise ExportError(f"the log of the file begins with line {first}, and a replay needs all: `resume` does not")
    record = _record(world, file, file.payload_version)
    world.shard.accept(record)
    return record


def stood(world: World, file: Exported) -> Record:
    """As it stood, ready to go on; a dead letter as a new run.

    Raises:
        ExportError: it has ended, and is no dead letter.
    """
    record = _record(world, file, file.version)
    record.document = to_json(file.document) if file.document else b""
    record.log, record.seq = [line.model_dump(mode="json") for line in file.log], file.log[-1].seq if file.log else 0
    record.state, record.status, record.rev = file.state, file.status, file.rev
    record.run, record.key_run = file.run, file.key_run
    record.started_at = None if file.started_at is None else parse_rfc3339(file.started_at)
    record.progress = b"" if file.progress is None else to_json(file.progress)
    record.spawned = "children" in file.document
    world.shard.records[record.task_id] = record
    if file.dead_letter:
        record.place, record.failed_in = "ended", file.failed_in or file.state
        world.replay(record, AGAIN)
    elif file.status.terminal:
        raise ExportError(f"it has {file.status}, so there is nothing to go on with: `replay` runs it from its start")
    else:
        _go_on(world, record, file)
    _children(world, record)
    return record


def _go_on(world: World, record: Record, file: Exported) -> None:
    """From the place that it had; what a worker held is as after its takeover, and what was paused goes on."""
    record.inbox = [to_json(entry) for entry in file.inbox]
    record.status = Status.COMPENSATING if "ending" in file.document else record.at_rest
    course = read(record.document, record.state, record.version, record.run).course
    record.waiting_for, record.wake_at = course.waiting_for or "", course.wake_at
    if file.place == "leased":
        record.leased_at, record.deaths = record.rev, file.deaths + 1
    if file.place in {"waiting", "paused"} and record.waiting_for and not record.inbox:
        record.place = "waiting"
    else:
        world.shard.enter(record)


def _children(world: World, record: Record) -> None:
    """Those that live: they end as the bench says."""
    course = read(record.document, record.state, record.version, record.run).course
    for one in course.children:
        if one.live and not one.old:
            world.carrier.live(record, one.task_id, one.type, one.run)


def _record(world: World, file: Exported, version: int) -> Record:
    definition, envelope = world.types[file.type], file.envelope
    target = envelope.get("target")
    return Record(
        task_id=file.task_id,
        type=file.type,
        version=version,
        envelope=to_json(envelope),
        state=definition.plan.initial,
        lane=lane_of(str(envelope.get("priority", definition.mission.priority)), definition.mission.pool),
        order=world.shard.next_order(),
        created_at=parse_rfc3339(file.created_at),
        deadline=parse_rfc3339(file.deadline),
        target=f"{TENANT}:{target}" if target else "",
        latest=file.latest or "",
        root="" if file.correlation_id == file.task_id else file.correlation_id,
    )
