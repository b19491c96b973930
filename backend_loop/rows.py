"""Outbox rows about children, as commits write them (P5): who is to begin, and who is to end. One JSON a line.

A row begins with its kind, by which the scripts and the `Carrier` know it. Two more are written by the scripts: ``end``
of a child for its parent, and ``cancel_all``, where a mission with children is ended by no worker.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import to_json

from backend_loop.children import Child
from backend_loop.course import Reaction
from backend_loop.store import Claimed
from shared.clock import rfc3339
from shared.envelope import VERSION, Envelope
from shared.status import Reason

AGAIN_MS: Final = 86_400_000
"""How long after it was written a row may come to be carried out: then it is known that the child never was (P17)."""


def rows_of(reaction: Reaction, claimed: Claimed, envelope: Envelope | None, now: int) -> list[bytes]:
    """What the commit of a reaction causes elsewhere, in order; `now` is epoch ms by Redis."""
    reason = (reaction.end.reason if reaction.end is not None else None) or Reason.REQUESTED
    begin = [] if envelope is None else [_accept(child, claimed, envelope, now) for child in reaction.begin]
    tell = [to_json({"row": "cancel", "child": child.task_id, "reason": reason}) for child in reaction.tell]
    return begin + tell


def _accept(child: Child, claimed: Claimed, envelope: Envelope, now: int) -> bytes:
    spec = child.spec or {}
    return to_json(
        {
            "row": "accept",
            "child": child.task_id,
            "type": child.type,
            "version": spec["version"],
            "lane": spec["lane"],
            "held": f"{envelope.tenant}:{spec['target']}" if spec["target"] is not None else "",
            "root": claimed.correlation_id,
            "run": claimed.run,
            "deadline": spec["deadline"],
            "state": spec["state"],
            "latest": spec["latest"],
            "used_until": now + AGAIN_MS,
            "envelope": _envelope(child, spec, claimed, envelope),
        }
    )


def _envelope(child: Child, spec: Mapping[str, Any], claimed: Claimed, parent: Envelope) -> dict[str, Any]:
    return {
        "type": child.type,
        "payload": spec["payload"],
        "target": spec["target"],
        "session": parent.session,
        "area": parent.area,
        "snapshot": None,
        "v": VERSION,
        "task_id": child.task_id,
        "correlation_id": claimed.correlation_id,
        "payload_version": spec["version"],
        "priority": spec["lane"].partition(":")[0],
        "created_at": rfc3339(spec["created_at"]),
        "deadline": rfc3339(spec["deadline"]),
        "tenant": parent.tenant,
        "source": "mission",
        "actor": parent.actor,
        "reply": {"webhook": None, "on_disconnect": "continue"},
        "conflict": parent.conflict,
        "traceparent": spec["traceparent"],
        "parent": claimed.task_id,
        "name": child.name,
    }
