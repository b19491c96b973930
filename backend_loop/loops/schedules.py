"""Fires schedules: one process of the fleet accepts what is due, by Redis' own clock (B37-B42).

A run begins in the schedule's record, under an id that follows from its name and its instant; then the mission is
accepted under that id in its own shard; then the run is done. Whoever dies or freezes in between, the next leader sends
the same again, and accept knows the id. What cannot be fired is said, and looked at again later; it holds up no other.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from backend_loop.loops.misfires import is_missed, turn
from shared import keys
from shared.catalogue import Catalogue, Entry
from shared.clock import boottime, rfc3339
from shared.envelope import TENANT, VERSION, Command, Envelope
from shared.errors import RedisAwayError
from shared.fleet import Fleet
from shared.ids import shard_of
from shared.leader import Leader
from shared.logs import get
from shared.loop import After, Answer, Led, Loop, NoTermError
from shared.redis import Link
from shared.schedules import Plan
from shared.settings import Settings
from shared.telemetry import accept_span, incoming

log = get(__name__)

AT_A_TIME: Final = 50
AGAIN_MS: Final = 15_000
"""When what could not be fired is looked at again."""
MEND_S: Final = 600.0
"""How often it is looked whether one has fallen out of the dues, besides at the beginning of a term."""
USED_MS: Final = 7 * 86_400_000
"""How long an id is known after its run, at least: so late an old leader may come with it (B37)."""


class CannotFireError(Exception):
    """Says why, for whoever looks at the schedule."""


class Row(BaseModel):
    """A run under way: all that makes its mission, whatever becomes of the schedule meanwhile."""

    task_id: str
    instant: int
    command: Command

    @property
    def held(self) -> str:
        """What it acts on, as accept wants it."""
        return f"{TENANT}:{self.command.target}" if self.command.target is not None else ""


@dataclass(frozen=True, slots=True)
class Due:
    """A schedule that is to be looked at, as it was read at `now`, epoch ms."""

    name: str
    record: Mapping[str, str]
    now: int


class Schedules:
    """What fires them.

    Args:
        link: to Redis.
        fleet: its shards and ids; joined.
        leader: under whose term it fires.
        settings: of the process.
    """

    def __init__(self, link: Link, fleet: Fleet, leader: Leader, settings: Settings) -> None:
        """Nothing runs yet: start its `loop`."""
        self._link, self._fleet, self._leader, self._settings = link, fleet, leader, settings
        self._catalogue = Catalogue()
        self._mended: tuple[int, float] = (0, 0.0)  # under which term, and when
        self.loop = Loop(
            "schedules",
            Led(leader, self._step),
            trigger="woken",
            interval_s=settings.poll_s,
            backoff_cap_s=settings.lease_s,
            vital=False,
            describe="accepts the commands of schedules whose instant has come",
            output="missions",
            on_failure="that schedule says why, and is looked at again; the others go on",
        )

    async def _step(self, term: int) -> Answer:
        try:
            if self._mended[0] != term or boottime() - self._mended[1] >= MEND_S:
                await self._mend(term)
            _, now, left_ms, *found = await self._run(term, "due", AT_A_TIME)
            if found:
                await self._fleet.join(self._link)  # again: Redis may have lost its data, and the key of ids with it
                await self._catalogue.refresh(self._link)
            due = [Due(_text(name), _record(fields), now) for name, fields in found]
            told = await asyncio.gather(*(self._look(term, one) for one in due), return_exceptions=True)
            for fault in told:
                if isinstance(fault, BaseException):
                    raise fault
        except RedisAwayError:
            if self._link.connected:
                raise
            return After(self._settings.poll_s)
        if any(told):  # what got on may be due again: one that is made up for, or one beyond this batch
            return After(0)
        return After(left_ms / 1000 if left_ms >= 0 and not found else self._settings.poll_s)

    async def _mend(self, term: int) -> None:
        """Put back among the dues what is missing there: it would never be fired, and nobody would know."""
        after, going = "", True
        while going:
            _, name, *missing = await self._run(term, "mend", after, AT_A_TIME)
            after = _text(name)
            going = bool(after)
            for one in missing:
                log.warning("repair", index="schedule_dues", schedule=_text(one), done="put back")
        self._mended = (term, boottime())

    async def _look(self, term: int, due: Due) -> bool:
        """Fire one, and say whether it got on; what is wrong with it is its own affair."""
        try:
            return await self._fire(term, due)
        except (NoTermError, RedisAwayError):
            raise
        except Exception as error:  # noqa: BLE001  a broken schedule must not stop the others
            why = str(error) if isinstance(error, CannotFireError) else f"{type(error).__name__}: {error}"
            if due.record.get("trouble") != why:
                log.warning("schedule cannot be fired", schedule=due.name, why=why)
            await self._run(term, "trouble", due.name, why[:500], AGAIN_MS)
            return False

    async def _fire(self, term: int, due: Due) -> bool:
        record = due.record
        if "unreadable" in record:
            raise CannotFireError(f"its record is damaged: {record['unreadable']}")
        if "firing" in record:  # a leader before this one has begun it
            return await self._go_on(term, due, Row.model_validate_json(record["firing"]))
        plan, expected = Plan.model_validate_json(record["plan"]), int(record["next"])
        now = turn(due.name, plan, expected, due.now)
        row = None if now.run is None else self._row(due.name, plan, now.run)
        if row is not None:
            self._entry(row.command)  # while its type is not known, nothing begins: the misfire rule says what then
        if now.passed is not None:
            log.warning("schedule missed", schedule=due.name, since=rfc3339(now.passed), misfire=plan.misfire)
        following = "" if now.following is None else now.following
        later = "" if now.following is None else plan.due(due.name, now.following)
        ids = ("", "") if row is None else (row.task_id, row.model_dump_json())
        word = await self._run(term, "begin", due.name, record["rev"], expected, *ids, following, later)
        if row is None or word != b"OK":  # others have changed it since it was read
            return bool(word == b"OK")
        return await self._carry_out(term, due, row)

    async def _go_on(self, term: int, due: Due, row: Row) -> bool:
        """Carry out what was begun, unless it would come too late, and was not sent before."""
        try:
            plan = Plan.model_validate_json(due.record["plan"])
        except (KeyError, ValueError):  # damaged since: what was begun is whole
            return await self._carry_out(term, due, row)
        if not is_missed(due.name, plan, row.instant, due.now) or await self._was_sent(row):
            return await self._carry_out(term, due, row)
        log.warning("schedule missed", schedule=due.name, since=rfc3339(row.instant), misfire=plan.misfire)
        return bool(await self._run(term, "drop", due.name, row.task_id) == b"OK")

    async def _was_sent(self, row: Row) -> bool:
        """Whether its mission is there, or was."""
        mission = self._fleet.ids.read(row.task_id)
        if mission is None:
            return False
        places = [kind(mission.shard, row.task_id) for kind in (keys.mission, keys.used)]
        return bool(await self._link.call("EXISTS", *places))

    def _row(self, name: str, plan: Plan, instant: int) -> Row:
        command = Command.model_validate(plan.command)
        row = Row(task_id="", instant=instant, command=command)
        shard = shard_of(row.held or name, self._fleet.shards)
        row.task_id = self._fleet.ids.derived(shard, instant, f"schedule:{TENANT}:{name}:{instant}")
        return row

    def _entry(self, command: Command) -> Entry:
        entry = self._catalogue.find(command.type, command.payload_version)
        if entry is None:
            version = "" if command.payload_version is None else f" in payload version {command.payload_version}"
            raise CannotFireError(f"no live worker knows {command.type}{version}: start one that does")
        fault = next(iter(entry.validator.iter_errors(command.payload)), None)
        if fault is not None:
            raise CannotFireError(f"the payload does not fit {entry.row.kind} any more: {fault.message[:300]}")
        return entry

    async def _carry_out(self, term: int, due: Due, row: Row) -> bool:
        """Accept the mission, again if need be, and end the run."""
        mission = self._fleet.ids.read(row.task_id)
        if mission is None:
            raise CannotFireError(f"{row.task_id} is no id of this fleet")
        lane, item = self._item(due, row)
        answer = await self._accept(term, mission.shard, item)
        if answer not in {b"OK", b"DUPLICATE"}:
            raise CannotFireError(f"accept answered {answer!r}")
        word = await self._run(term, "done", due.name, row.task_id, row.instant)
        log.info(
            "schedule fired",
            schedule=due.name,
            instant=rfc3339(row.instant),
            correlation_id=row.task_id,
            type=row.command.type,
            lane=lane,
            late_ms=due.now - row.instant,
            known=answer == b"DUPLICATE",
        )
        return bool(word == b"OK")

    def _item(self, due: Due, row: Row) -> tuple[str, tuple[str | int, ...]]:
        """The mission's lane, and what accept takes."""
        command, type_ = row.command, self._entry(row.command).row
        priority = command.priority or type_.priority
        lane = f"{priority}:{type_.pool}:{TENANT}"
        deadline_ms = round((command.deadline_s or type_.deadline_s or self._settings.deadline_s) * 1000)
        with accept_span(
            incoming(None), mission_type=type_.type, lane=str(priority), task_id=row.task_id, transport="schedule"
        ) as trace:
            extra = command.model_extra or {}
            envelope = Envelope(
                **{name: value for name, value in extra.items() if name not in Envelope.model_fields},
                v=VERSION,
                task_id=row.task_id,
                correlation_id=row.task_id,
                type=type_.type,
                payload_version=type_.version,
                payload=command.payload,
                target=command.target,
                priority=priority,
                created_at=rfc3339(due.now),
                deadline=rfc3339(due.now + deadline_ms),
                tenant=TENANT,
                source="schedule",
                session=command.session,
                area=command.area,
                snapshot=command.snapshot,
                schedule={"name": due.name, "instant": rfc3339(row.instant)},
                conflict=command.conflict,
                traceparent=trace.child_header(),
            )
        latest = type_.latest_of(row.held, command.payload)
        head = (row.task_id, type_.type, type_.version, lane, row.held, "", deadline_ms, type_.initial, "", 0, latest)
        return lane, (*head, due.now + USED_MS, envelope.model_dump_json())

    async def _accept(self, term: int, shard: int, item: tuple[str | int, ...]) -> Any:
        if self._leader.term() != term:
            raise NoTermError
        _, answer = await self._link.run("accept", keys.prefix(shard), *item)
        return answer

    async def _run(self, term: int, what: str, *args: str | int) -> Any:
        """One call of the script under the present term.

        Raises:
            NoTermError: the term is over, or a later leader has been here.
        """
        if self._leader.term() != term:  # asked anew each time: this process may have been frozen
            raise NoTermError
        answer = await self._link.run("fire", keys.prefix(0), term, what, *args)
        if isinstance(answer, list) and answer[0] == b"FENCED":
            log.warning("firing refused", term=term, later=answer[1])
            self._leader.refuse(term)
            raise NoTermError
        return answer


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _record(fields: list[bytes] | bytes) -> dict[str, str]:
    """As a mapping; what could not be read has its reason under `unreadable`."""
    if isinstance(fields, bytes):
        return {"unreadable": _text(fields)}
    return {_text(name): _text(value) for name, value in zip(fields[::2], fields[1::2], strict=True)}
