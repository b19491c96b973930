"""Bodies of the verbs that act on missions which are there: read as strictly as a command."""

from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from frontend_loop.ingress.http import read_body
from frontend_loop.reading import read_as, read_json
from shared.envelope import Name, Text
from shared.errors import Problem
from shared.settings import Settings
from shared.status import ErrorCode, Priority

Note = Annotated[str, Field(max_length=2_000)]
DeadlineS = Annotated[float, Field(gt=0, le=31_536_000, allow_inf_nan=False)]


class Said(BaseModel):
    """Who asks for something, and why; a field that is not known is refused, since it may be a slip of the pen."""

    model_config = ConfigDict(extra="forbid")

    by: Text | None = Field(None, description="who asks; stands in the mission's log")
    note: Note | None = Field(None, description="why; stands in the mission's log")


class Happening(BaseModel):
    """An outside event."""

    model_config = ConfigDict(extra="forbid")

    event: Name = Field(description="one that the type declares", examples=["PAYMENT_CONFIRMED"])
    data: dict[str, Any] = Field(default_factory=dict, description="what the state that waits for it gets")
    id: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="of this event: told twice, it counts once; as the header Idempotency-Key"
    )


class Reprioritized(Said):
    """Another lane."""

    priority: Priority


class Skipped(Said):
    """An optional state that is not to be done."""

    state: Name | None = Field(None, description="only if the mission is in this state; default: whichever it is in")


class Completed(Said):
    """What was done by hand."""

    result: dict[str, Any] = Field(default_factory=dict, description="what the result document carries")


class Replayed(Said):
    """How dead letters run again."""

    model_config = ConfigDict(populate_by_name=True)

    from_: Literal["failed_state", "start"] | None = Field(
        None, alias="from", description="default: the state it failed in, but the start if anything was undone"
    )
    key: Literal["same", "new"] = Field(
        "same", description="whether effects keep their keys; new where the payload is corrected"
    )
    payload: dict[str, Any] | None = Field(None, description="takes the place of the one that was sent")
    deadline_s: DeadlineS | None = Field(None, description="seconds from now; default: the type's")


class Fitting(BaseModel):
    """Which dead letters; all that is given must hold."""

    model_config = ConfigDict(extra="forbid")

    type: str | None = Field(None, description="mission type, exactly")
    code: ErrorCode | None = Field(None, description="code of the error that it failed with")
    q: str | None = Field(None, max_length=200, description="text within an id, type, state, target or error")


MOST: Final = 200
"""Rows of a page."""

Cursor = Annotated[str, Field(max_length=200)]
Limit = Annotated[int, Field(ge=1, le=MOST)]


class Page(Fitting):
    """Which dead letters to list."""

    cursor: Cursor | None = Field(None, description="where the page before this one ended")
    limit: Limit = Field(50, description="rows at most; a page may have fewer, even none, and a cursor")


class ReplayedAll(Replayed):
    """Which dead letters run again, a page at a time."""

    filter: Fitting = Field(description="which; {} for all of them")
    cursor: Cursor | None = Field(None, description="from the answer before; go on until it is null")
    limit: Limit = Field(50, description="dead letters of one call at most")


Body = TypeVar("Body", bound=BaseModel)


class Bodies:
    """Reads bodies of requests."""

    def __init__(self, settings: Settings) -> None:
        """The limits are those of commands."""
        self._max_body, self._max_depth = settings.max_body, settings.max_depth

    async def read(self, request: Request, model: type[Body]) -> Body:
        """A request's body; an empty one stands for ``{}``.

        Raises:
            Problem: 400, 413, 415 or 422, as for a command.
        """
        raw = await read_body(request.receive, self._max_body)
        if not raw.strip():
            return read_as(model, {})
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            # a page of another origin may send anything else without asking whether it may
            raise Problem("wrong_content_type", "send the body as JSON, with content-type: application/json")
        return read_as(model, read_json(raw, self._max_depth))


def described(model: type[BaseModel], *, required: bool = False) -> dict[str, Any]:
    """What OpenAPI says of a body that `Bodies` reads."""
    schema = model.model_json_schema()
    schema = _inlined(schema, schema.pop("$defs", {}))
    return {"requestBody": {"content": {"application/json": {"schema": schema}}, "required": required}}


def _inlined(part: Any, models: dict[str, Any]) -> Any:
    """A schema without references: within an OpenAPI document they would lead nowhere."""
    if isinstance(part, list):
        return [_inlined(one, models) for one in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        part = models[part["$ref"].rpartition("/")[2]] | {name: one for name, one in part.items() if name != "$ref"}
    return {name: _inlined(one, models) for name, one in part.items()}
