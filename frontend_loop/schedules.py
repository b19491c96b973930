"""Commands that are sent by the clock: kept, looked at, changed, paused, and run by hand.

A schedule is checked here like a command at the door, and fired by the background.
"""

from itertools import chain, islice
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json, to_json

from frontend_loop.bodies import Said
from frontend_loop.control import OPERATOR, By
from frontend_loop.door import Ack, Door
from frontend_loop.idempotency import FIELD as IDEMPOTENCY
from frontend_loop.operating import by
from frontend_loop.reading import invalid, pointer, read_as
from frontend_loop.record import Record, instant, number, readable, whole
from frontend_loop.utterance import as_command
from shared import keys
from shared.clock import now_ms
from shared.envelope import TENANT
from shared.errors import Problem, RedisAwayError, unavailable
from shared.fleet import Fleet
from shared.instants import DaylightSaving, Times, TimesError, default_rule
from shared.logs import get
from shared.redis import Link, ReplyError
from shared.schedules import Misfire, Plan, ScheduleName
from shared.settings import Settings

log = get(__name__)

SHOWN: Final = 5
"""Instants ahead that are shown of one schedule; of each in a list, one."""
TRIES: Final = 3
"""How often a change is made anew where another one came in between."""
COMMAND: Final = "command"


class NewSchedule(Plan, Said):
    """A schedule to be taken in."""

    name: ScheduleName = Field(description="what it is called: letters, digits, dots, hyphens, underscores")
    paused: bool = Field(False, description="whether it waits for /resume")


class Change(Said):
    """What is to be another way; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    cron: str | None = None
    zone: str | None = None
    command: dict[str, Any] | None = None
    misfire: Misfire | None = None
    late_s: float | None = None
    daylight_saving: DaylightSaving | None = None
    jitter_s: float | None = None

    def plan(self, before: Plan) -> Plan:
        """The plan as it is to be."""
        given = self.model_dump(exclude_none=True, exclude={"by", "note"})
        return read_as(Plan, before.model_dump() | given)


class SchedulePage(BaseModel):
    """Which schedules to list."""

    model_config = ConfigDict(extra="forbid")

    q: Annotated[str, Field(max_length=100)] | None = Field(None, description="text within the name")
    cursor: Annotated[str, Field(max_length=100)] | None = Field(
        None, description="where the page before this one ended"
    )
    limit: Annotated[int, Field(ge=1, le=200)] = Field(50, description="schedules at most")


class Schedules:
    """Keeps them.

    Each raises Problem: 404 there is none of that name; 409; 422 it would not be accepted; 503.
    """

    def __init__(self, link: Link, fleet: Fleet, door: Door, settings: Settings) -> None:
        """Ready at once."""
        self._link, self._fleet, self._door, self._settings = link, fleet, door, settings

    async def add(self, new: NewSchedule) -> tuple[dict[str, Any], bool]:
        """Take one in; its document, and whether it is new: the same one sent twice is taken in once."""
        plan = await self._checked(Plan(**new.model_dump(exclude={"name", "paused", "by", "note"})))
        first, due = await self._next(new.name, plan)
        told = (new.name, "", plan.model_dump_json(), "1" if new.paused else "", first, due, self._settings.schedules)
        match await self._run("schedule", *told):
            case b"EXISTS":
                name, record = new.name, await self._record(new.name)
                if _plan(name, record) != plan:
                    detail = f"there is a schedule {name} already: change it with PATCH /v1/schedules/{name}"
                    raise Problem("schedule_exists", detail, errors=[{"pointer": "/name", "detail": detail}])
                return await self.look(name), False
            case [b"FULL", there]:
                detail = f"there are {there} schedules, as many as there may be: remove one, or see DUALLOOP_SCHEDULES"
                raise Problem("too_many_schedules", detail)
        _say(new.name, "schedule added", by(new), paused=new.paused)
        return await self.look(new.name), True

    async def page(self, page: SchedulePage) -> dict[str, Any]:
        """Schedules by name, a page at a time: ``{"schedules": […], "cursor": text or None}``."""
        start, rows, text = "-" if page.cursor is None else f"({page.cursor}", list[dict[str, Any]](), page.q or ""
        while True:
            found = await self._link.call("ZRANGE", keys.SCHEDULES, start, "+", "BYLEX", "LIMIT", 0, page.limit + 1)
            for raw in found:
                name = raw.decode(errors="replace")
                if text not in name:
                    continue
                if len(rows) == page.limit:
                    return {"schedules": rows, "cursor": rows[-1]["name"]}
                rows += await self._row(name)
            if len(found) <= page.limit:
                return {"schedules": rows, "cursor": None}
            start = f"({found[-1].decode(errors='replace')}"

    async def look(self, name: str) -> dict[str, Any]:
        """Everything about one."""
        record = await self._record(name)
        document = _told(name, record, SHOWN)
        for run in (document["last_fired"], document["last_run"]):
            if run is not None:
                run["status"] = await self._status(run["task_id"])
        return document

    async def change(self, name: str, change: Change) -> dict[str, Any]:
        """Change one; if when it runs is changed, it goes on from now."""
        for _ in range(TRIES):
            record = await self._record(name)
            before = _plan(name, record)
            plan = await self._checked(change.plan(before))
            moved = _timing(plan) != _timing(before)
            following, due = await self._next(name, plan) if moved else ("", "")
            word = await self._run("schedule", name, record["rev"], plan.model_dump_json(), "", following, due, 0)
            if word != b"CHANGED":
                _there(name, word)
                _say(name, "schedule changed", by(change))
                return await self.look(name)
        raise _changing(name)

    async def pause(self, name: str, asks: By) -> dict[str, Any]:
        """Fire no more, until it is resumed."""
        _there(name, await self._run("steer", name, "pause"))
        _say(name, "schedule paused", asks)
        return await self.look(name)

    async def resume(self, name: str, asks: By) -> dict[str, Any]:
        """Fire again, from now on: what came while it was paused is not made up for."""
        for _ in range(TRIES):
            record = await self._record(name)
            following, due = await self._next(name, _plan(name, record))
            word = await self._run("steer", name, "resume", record["rev"], following, due)
            if word != b"CHANGED":
                _there(name, word)
                _say(name, "schedule resumed", asks)
                return await self.look(name)
        raise _changing(name)

    async def remove(self, name: str, asks: By) -> dict[str, Any]:
        """Remove it; missions that it has sent stay."""
        _there(name, await self._run("steer", name, "remove"))
        _say(name, "schedule removed", asks)
        return {"name": name, "removed": True}

    async def run(self, name: str, asks: By, traceparent: str | None, key: str | None) -> Ack:
        """Send its command now, paused or not, as a mission of its own; when it is next fired stays as it is."""
        plan = _plan(name, await self._record(name))
        ack = await self._door.take(plan.command, "schedule", traceparent=traceparent, key=key, schedule=name)
        if not ack.replayed:
            _say(name, "schedule run", asks, correlation_id=ack.task_id)
            try:
                await self._run("steer", name, "ran", ack.task_id, asks.by or OPERATOR)
            except Problem as problem:
                log.warning("run not noted", schedule=name, correlation_id=ack.task_id, error=problem.detail)
        return ack

    async def _checked(self, plan: Plan) -> Plan:
        """A plan that would be taken in, with what its type decides now filled in, so that it stays so."""
        times(plan)
        if IDEMPOTENCY in plan.command:
            detail = "a schedule has none: each run's id follows from the name and the instant"
            raise invalid([{"pointer": f"/{COMMAND}/{IDEMPOTENCY}", "detail": detail}])
        try:
            sent = as_command(plan.command)
            command, type_, target = await self._door.check(sent)
        except Problem as problem:
            raise _within(problem) from None
        pinned: dict[str, Any] = {"payload_version": command.payload_version or type_.version}
        if target is not None:
            pinned["target"] = target
        rule = plan.daylight_saving or default_rule(plan.cron)
        return plan.model_copy(update={"command": sent | pinned, "daylight_saving": rule})

    async def _next(self, name: str, plan: Plan) -> tuple[int, int]:
        """The next instant, and when to run it."""
        try:
            seconds, micros = await self._link.call("TIME")
        except RedisAwayError as error:
            raise unavailable(f"nothing was changed: {error}") from error
        following = times(plan).after(int(seconds) * 1000 + int(micros) // 1000)
        if following is None:
            raise _wrong("cron", f"{plan.cron!r} names no day that comes within fifty years")
        return following, plan.due(name, following)

    async def _record(self, name: str) -> Record:
        fields = await self._link.call("HGETALL", keys.schedule(name))
        record = readable(
            {raw.decode(errors="replace"): value for raw, value in zip(fields[::2], fields[1::2], strict=True)}
        )
        if "plan" not in record or "rev" not in record:
            _there(name, b"GONE")
        return record

    async def _row(self, name: str) -> list[dict[str, Any]]:
        """One of a list; none if it is gone meanwhile, or damaged."""
        try:
            return [_told(name, await self._record(name), 1)]
        except (Problem, ReplyError) as fault:
            if not isinstance(fault, Problem) or fault.code != "no_schedule":
                log.warning("schedule cannot be shown", schedule=name, error=str(fault))
            return []

    async def _status(self, task_id: str) -> str | None:
        """Of a mission; None: it is no longer kept."""
        mission = self._fleet.ids.read(task_id)
        if mission is None:
            return None
        status = await self._link.call("HGET", keys.mission(mission.shard, task_id), "status")
        return status.decode() if status is not None else None

    async def _run(self, verb: str, *args: str | int) -> Any:
        try:
            return await self._link.run(verb, keys.prefix(0), *args)
        except RedisAwayError as error:
            raise unavailable(f"it may not have been done: {error}") from error
        except ReplyError as error:
            log.exception("schedule refused", verb=verb)
            raise unavailable("Redis refused to take it; the log says why") from error


def times(plan: Plan) -> Times:
    """When it is to run.

    Raises:
        Problem: 422, expression or zone are wrong.
    """
    try:
        return plan.times
    except TimesError as error:
        raise _wrong(error.field, str(error)) from None


def _wrong(field: str, detail: str) -> Problem:
    return invalid([{"pointer": f"/{field}", "detail": detail}])


def _within(problem: Problem) -> Problem:
    """What is wrong with a command, as a part of the body."""
    errors = [{**error, "pointer": pointer([COMMAND]) + error["pointer"]} for error in problem.errors]
    if problem.code == "invalid":
        return invalid(errors)
    return Problem(
        problem.code, problem.detail, errors=errors, retryable=problem.retryable, retry_after=problem.retry_after
    )


def _timing(plan: Plan) -> tuple[object, ...]:
    return plan.cron, plan.zone, plan.daylight_saving, plan.jitter_s


def _plan(name: str, record: Record) -> Plan:
    try:
        return Plan.model_validate_json(record["plan"])
    except ValueError as error:
        detail = f"the plan of {name} cannot be read: remove it, and add it anew"
        raise Problem("schedule_changed", detail) from error


def _there(name: str, word: Any) -> None:
    if word == b"GONE":
        raise Problem("no_schedule", f"there is no schedule {name!r}; they are listed by: dualloop schedules ls")


def _changing(name: str) -> Problem:
    detail = f"others are changing {name} at this moment: look at it, then ask again"
    return Problem("schedule_changed", detail, retryable=True, retry_after=1)


def _say(name: str, what: str, asks: By, **more: Any) -> None:
    log.info(what, schedule=name, **more, **{"by": OPERATOR, **asks.told()})


def _told(name: str, record: Record, shown: int) -> dict[str, Any]:
    """A record as a document."""
    plan, paused = _plan(name, record), "paused" in record
    return {
        "name": name,
        **plan.model_dump(),
        "tenant": TENANT,
        "paused": paused,
        "next": [] if paused else _ahead(plan, _ms(record, "next"), shown),
        "fired": number(record, "fired"),
        "last_fired": _run(record, "last_task", instant=_at(record, "last"), at=_at(record, "last_at")),
        "last_run": _run(record, "ran_task", at=_at(record, "ran_at"), by=record.get("ran_by")),
        "firing": _firing(record),
        "trouble": _trouble(record),
        "rev": number(record, "rev"),
        "created_at": _at(record, "created_at"),
        "changed_at": _at(record, "changed_at"),
    }


def _ahead(plan: Plan, following: int | None, shown: int) -> list[dict[str, Any]]:
    """The next instants, also as the zone's clocks show them; the first one may have passed while no worker was up."""
    if following is None:
        return []
    told = times(plan)
    found = islice(chain([following], told.all_after(max(following, now_ms()))), shown)
    return [{"instant": instant(one), "local": told.local(one)} for one in found]


def _ms(record: Record, name: str) -> int | None:
    return whole(record[name]) if record.get(name) else None


def _at(record: Record, name: str) -> str | None:
    return instant(_ms(record, name))


def _run(record: Record, task: str, **told: Any) -> dict[str, Any] | None:
    return {"task_id": record[task], **told} if task in record else None


def _firing(record: Record) -> dict[str, Any] | None:
    if "firing" not in record:
        return None
    row = from_json(record["firing"])
    return {"task_id": row["task_id"], "instant": instant(row["instant"])}


def _trouble(record: Record) -> dict[str, Any] | None:
    if "trouble" not in record:
        return None
    return {"at": _at(record, "trouble_at"), "detail": record["trouble"]}


def document(told: object) -> bytes:
    """As JSON: commands hold integers of any size."""
    return to_json(told, inf_nan_mode="null")
