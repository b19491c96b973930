"""What goes in at the front and what lies on the queue: the command and the envelope."""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from shared.status import Priority

VERSION = 1
TENANT: Final = "default"

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\s\x00-\x1f\x7f]+$")]
Text = Annotated[str, Field(max_length=200)]
IDEMPOTENCY_KEY = r"^[\x21-\x7e]{1,200}$"
"""Visible characters, as a header can carry them."""

Source = Literal["http", "ws", "mqtt", "voice", "schedule", "mission", "cli"]


class Command(BaseModel):
    """What a client sends, on every transport."""

    model_config = ConfigDict(extra="allow")

    type: Name = Field(description="mission type, as listed by /v1/mission-types", examples=["device.control"])
    payload: dict[str, Any] = Field(default_factory=dict, description="as the type's JSON Schema says")
    payload_version: int | None = Field(None, ge=1, description="version of the payload; default: the newest known")
    target: Name | None = Field(None, description="what is acted on, one mission at a time; default: the type's rule")
    priority: Priority | None = Field(None, description="default: the type's")
    deadline_s: float | None = Field(
        None, gt=0, le=31_536_000, allow_inf_nan=False, description="seconds; default: the type's"
    )
    on_disconnect: Literal["continue", "cancel"] = Field("continue", description="when the submitting socket is gone")
    conflict: Literal["respect_newer", "force"] = Field(
        "respect_newer", description="whether a person's newer change by hand wins over this command"
    )
    idempotency_key: str | None = Field(
        None,
        pattern=IDEMPOTENCY_KEY,
        description="a repeat with the same key is answered like the first; as the header Idempotency-Key",
    )
    session: Text | None = Field(None, description="ties a speaker's commands together")
    area: Text | None = Field(None, description="where the speaker is")
    snapshot: dict[str, Any] | None = Field(None, description="what the front knew at the time")


class Reply(BaseModel):
    """Where the result goes, beside the key and the sockets that watch."""

    webhook: str | None = None
    on_disconnect: Literal["continue", "cancel"] = "continue"


class Envelope(BaseModel):
    """The queue message. Unknown fields are kept and ignored."""

    model_config = ConfigDict(extra="allow")

    v: int
    task_id: str
    correlation_id: str
    type: str
    payload_version: int
    payload: dict[str, Any]
    target: str | None = None
    priority: Priority = Priority.NORMAL
    created_at: str
    deadline: str | None = None
    tenant: str = "default"
    source: Source
    session: str | None = None
    actor: str | None = None
    area: str | None = None
    snapshot: dict[str, Any] | None = None
    schedule: dict[str, Any] | None = None
    """Which one sent it: ``name``, and its nominal ``instant``; None where somebody had it run by hand."""
    parent: str | None = None
    """Of a child: the mission that spawned it."""
    reply: Reply = Reply()
    conflict: Literal["respect_newer", "force"] = "respect_newer"
    traceparent: str | None = None
