"""How a command becomes a mission on the bench, as the door has it."""

from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from backend_loop.testing.record import Record
from backend_loop.testing.world import World
from shared.catalogue import Row
from shared.clock import rfc3339
from shared.envelope import TENANT, VERSION, Command, Envelope

TRACEPARENT: Final = f"00-{1:032x}-{1:016x}-00"


class RefusedError(ValueError):
    """The door would not take this command: HTTP 422."""


def take(world: World, type_: str, payload: Mapping[str, Any] | BaseModel | None, more: Mapping[str, Any]) -> Record:
    """The record of a command, not accepted yet.

    Raises:
        RefusedError: with what is wrong.
    """
    try:
        command = Command.model_validate({**more, "type": type_, "payload": from_json(to_json(payload or {}))})
    except (ValidationError, ValueError) as error:
        raise RefusedError(f"the door refuses this command: {error}") from error
    definition = world.types[type_]
    version = command.payload_version or definition.version
    if not definition.versions.oldest <= version <= definition.version:
        raise RefusedError(f"{type_} is known in versions {definition.versions.oldest} to {definition.version}")
    row = definition.row(version)
    faults = jsonschema_rs.Draft202012Validator(row.payload_schema).iter_errors(command.payload)
    if (fault := next(iter(faults), None)) is not None:
        pointer = "".join(f"/{part}" for part in ("payload", *fault.instance_path))
        raise RefusedError(f"the door refuses this payload: {pointer}: {fault.message}")
    return _record(world, command, row)


def _record(world: World, command: Command, row: Row) -> Record:
    now, order = world.time.now_ms(), world.shard.next_order()
    deadline = now + round((command.deadline_s or row.deadline_s or world.settings.deadline_s) * 1000)
    task_id = world.fleet.ids.derived(0, now, f"{row.type}:{order}")
    target = command.target or (command.payload.get(row.target) if row.target is not None else None)
    priority = command.priority or row.priority
    held = f"{TENANT}:{target}" if target else ""
    envelope = Envelope(
        v=VERSION,
        task_id=task_id,
        correlation_id=task_id,
        type=row.type,
        payload_version=row.version,
        payload=command.payload,
        target=target or None,
        priority=priority,
        created_at=rfc3339(now),
        deadline=rfc3339(deadline),
        source="cli",
        session=command.session,
        area=command.area,
        snapshot=command.snapshot,
        conflict=command.conflict,
        traceparent=TRACEPARENT,
        **(command.model_extra or {}),
    )
    return Record(
        task_id=task_id,
        type=row.type,
        version=row.version,
        envelope=to_json(envelope),
        state=row.initial,
        lane=lane_of(str(priority), row.pool),
        order=order,
        created_at=now,
        deadline=deadline,
        target=held,
        latest=row.latest_of(held, command.payload),
    )


def lane_of(priority: str, pool: str) -> str:
    """Where such a mission stands in line."""
    return f"{priority}:{pool}:{TENANT}"
