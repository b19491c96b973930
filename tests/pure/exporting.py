"""What ``dualloop missions export`` would write of a mission that ran on the bench."""

from typing import Any

from pydantic_core import from_json

from backend_loop.testing import Trial
from shared.clock import rfc3339


def exported(mission: Trial, **otherwise: Any) -> dict[str, Any]:
    record, world = mission._record, mission._world
    return {
        "export": 1,
        "product": "0.1.0",
        "exported_at": rfc3339(world.time.now_ms()),
        "type": record.type,
        "version": record.version,
        "task_id": record.task_id,
        "correlation_id": record.correlation_id,
        "status": str(record.status),
        "state": record.state,
        "place": record.place,
        "failed_in": record.failed_in or None,
        "dead_letter": bool(record.failed_in),
        "run": record.run,
        "key_run": record.key_run,
        "rev": record.rev,
        "deaths": record.deaths,
        "created_at": rfc3339(record.created_at),
        "started_at": None if record.started_at is None else rfc3339(record.started_at),
        "deadline": rfc3339(record.deadline),
        "latest": record.latest or None,
        "envelope": from_json(record.envelope),
        "document": from_json(record.document) if record.document else {},
        "progress": mission.progress,
        "log": mission.log,
        "inbox": [from_json(entry) for entry in record.inbox],
        "result": record.result,
        **otherwise,
    }
