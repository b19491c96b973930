"""The door: every ingress ends here. Foreign bytes in, one atomic accept, an ack out; nothing is decided."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import to_json

from frontend_loop.feed import WATCH_MS
from frontend_loop.idempotency import Idempotency, Reservation, agreed
from frontend_loop.naming import instead
from frontend_loop.reading import invalid, read_command, read_json, read_payload
from frontend_loop.utterance import as_command
from shared import keys
from shared.catalogue import Catalogue, Entry, Row
from shared.clock import now_ms, rfc3339
from shared.envelope import TENANT, VERSION, Command, Envelope, Source
from shared.errors import Problem, RedisAwayError, RedisUnknownError, unavailable
from shared.fleet import Fleet
from shared.flights import Flights
from shared.ids import shard_of
from shared.logs import get
from shared.redis import Link, ReplyError
from shared.settings import Settings
from shared.telemetry import accept_span, incoming

log = get(__name__)

ACCEPTS_FOR_A_SECOND_FLIGHT: Final = 12
LONGEST_WAIT_MS: Final = 600_000
"""For how long a recording waits to be listened to: a command that was paused for longer is to be said again."""

LATE_MS: Final = 60_000
"""How much later than at the deadline a recording may be listened to by a worker that took over."""

LATER: Final = frozenset({"webhook"})
"""Fields of the contract that this release does not serve: refused, since ignoring them would break a promise."""

OURS: Final = frozenset(Envelope.model_fields)
"""Fields of the envelope: a field of a command that is none of the contract's may not stand in for one."""


@dataclass(frozen=True, slots=True)
class Ack:
    """An accepted command: the document that says so, and what the ingress needs of it."""

    task_id: str
    type: str
    shard: int
    traceparent: str
    body: bytes
    replayed: bool = False
    """Accepted by an earlier try under the same idempotency key."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Under which id a command is taken in, and where."""

    task_id: str
    shard: int
    held: str
    reservation: Reservation | None = None


Watch = Callable[[int, str], None]
"""Called with shard and id of a mission before it is written, so that none of its news can come too early."""


class Door:
    """Accepts commands.

    Args:
        link: to Redis.
        fleet: its shards and ids.
        catalogue: which types there are; kept fresh by somebody else.
        front: id of this foreground, registered as watcher where the ingress asks for it.
    """

    def __init__(self, link: Link, fleet: Fleet, catalogue: Catalogue, settings: Settings, front: str) -> None:
        """Ready at once."""
        self._fleet, self._catalogue, self._settings, self._front = fleet, catalogue, settings, front
        self._flights = [
            Flights(link, "accept", keys.prefix(shard), second_from=ACCEPTS_FOR_A_SECOND_FLIGHT, stamped=True)
            for shard in range(fleet.shards)
        ]
        self._link = link
        self._retention = round(settings.retention_s)
        self._idempotency = Idempotency(link, fleet.shards, settings.retention_s)

    async def accept(
        self,
        raw: bytes,
        source: Source,
        *,
        traceparent: str | None = None,
        watch: Watch | None = None,
        key: str | None = None,
    ) -> Ack:
        """Take a command in; returns once Redis has it.

        Args:
            raw: the command, JSON.
            source: the transport.
            traceparent: the client's W3C trace context.
            watch: register this foreground as a watcher in the same step, and call this before.
            key: the idempotency key, where it did not come in the command.

        Raises:
            Problem: what is wrong, or 503; in both cases nothing false was promised.
            RedisAwayError: nothing was taken.
        """
        value = read_json(raw, self._settings.max_depth)
        return await self.take(value, source, traceparent=traceparent, watch=watch, key=key)

    async def take(  # noqa: PLR0913  a command, and what is known of where it came from
        self,
        value: Any,
        source: Source,
        *,
        traceparent: str | None = None,
        watch: Watch | None = None,
        key: str | None = None,
        schedule: str | None = None,
        recording: bytes | None = None,
    ) -> Ack:
        """As `accept`, for a command that is parsed already.

        `schedule` is the name of the one whose command it is; a `recording` comes with it, and is there before it is.
        """
        command = _command(value, watched=watch is not None)
        key = agreed(key, command.idempotency_key)
        try:
            entry, target = await self._fit(command)
        except Problem:
            # what was taken in stays so, whatever its type has become since
            if key is None or (repeat := await self._repeat(key, value, command, watch)) is None:
                raise
            return repeat
        place = await self._place(key, value, target)
        task_id, shard, held = place.task_id, place.shard, place.held
        row, now = entry.row, now_ms()
        priority = str(command.priority or row.priority)  # plain: an enum costs the serializer a look-up
        deadline_ms = round((command.deadline_s or row.deadline_s or self._settings.deadline_s) * 1000)
        lane = f"{priority}:{row.pool}:{TENANT}"
        if recording is not None:
            await self._deposit(place, recording, deadline_ms)
        if watch is not None:
            watch(shard, task_id)
            if command.on_disconnect == "cancel":
                await self._link.run("attend", keys.prefix(shard), task_id, WATCH_MS)
        with accept_span(
            incoming(traceparent), mission_type=row.type, lane=priority, task_id=task_id, transport=source
        ) as trace:
            envelope = _envelope(
                command,
                task_id=task_id,
                version=row.version,
                target=held.partition(":")[2] or None,
                priority=priority,
                tenant=TENANT,
                source=source,
                now=now,
                deadline_ms=deadline_ms,
                traceparent=trace.child_header(),
                schedule=schedule,
            )
            accepted_ms, known = await self._write(
                place,
                (
                    task_id,
                    row.type,
                    row.version,
                    lane,
                    held,
                    "",
                    deadline_ms,
                    row.initial,
                    self._front if watch is not None else "",
                    WATCH_MS,
                    row.latest_of(place.held, command.payload),
                    place.reservation.used_until if place.reservation is not None else "",
                    envelope,
                ),
            )
        log.often("accept", correlation_id=task_id, type=row.type, lane=lane, source=source, known=known)
        return Ack(task_id, row.type, shard, trace.child_header(), self._ack(task_id, row.type, accepted_ms), known)

    async def check(self, value: Any) -> tuple[Command, Row, str | None]:
        """Take nothing in: the command, its type and its target, if it would be taken in now without a socket.

        Raises:
            Problem: it would not.
        """
        command = _command(value, watched=False)
        entry, target = await self._fit(command)
        return command, entry.row, target

    async def _fit(self, command: Command) -> tuple[Entry, str | None]:
        entry = await self._entry(command)
        read_payload(entry.validator, command.payload)
        return entry, _target(command, entry)

    async def _place(self, key: str | None, value: Any, target: str | None) -> _Place:
        """A new id, or the one that an earlier try with this key came to."""
        shards = self._fleet.shards
        held = f"{TENANT}:{target}" if target is not None else ""
        shard = shard_of(held, shards) if held else (random.randrange(shards) if shards > 1 else 0)  # noqa: S311  balance
        task_id = self._fleet.ids.new(shard, now_ms())
        if key is None:
            return _Place(task_id, shard, held)
        return self._reserved(await self._idempotency.reserve(TENANT, key, value, task_id, held))

    def _reserved(self, reservation: Reservation) -> _Place:
        mission = self._fleet.ids.read(reservation.task_id)
        assert mission is not None, "a reserved id is one of this fleet's"  # noqa: S101  its key lies beside it
        return _Place(mission.text, mission.shard, reservation.held, reservation)

    async def _repeat(self, key: str, value: Any, command: Command, watch: Watch | None) -> Ack | None:
        """The ack of an earlier try, if there was one that was taken in."""
        reservation = await self._idempotency.known(TENANT, key, value)
        if reservation is None:
            return None
        place = self._reserved(reservation)
        created_ms = await self._created(place)
        if created_ms is None:
            return None
        if watch is not None:
            watch(place.shard, place.task_id)
        ack = self._ack(place.task_id, command.type, created_ms)
        return Ack(place.task_id, command.type, place.shard, "", ack, replayed=True)

    async def _created(self, place: _Place) -> int | None:
        """When a mission was accepted, retired or not; None: it never was."""
        record, used = keys.mission(place.shard, place.task_id), keys.used(place.shard, place.task_id)
        try:
            created, retired = await asyncio.gather(
                self._link.call("HGET", record, "created_at"), self._link.call("GET", used)
            )
        except RedisAwayError as error:
            raise unavailable(f"whether this was taken could not be read: {error}") from error
        found = created or retired
        return None if found is None else int(found)

    async def _deposit(self, place: _Place, recording: bytes, deadline_ms: int) -> None:
        """Lay a recording down; it outlives the deadline a little, but nobody waits an hour for what he has said.

        Raises:
            Problem: 503, nothing was taken.
        """
        keep_ms = min(deadline_ms, LONGEST_WAIT_MS) + LATE_MS
        share, most = self._settings.audio_memory, -(-self._settings.audio_kept // self._settings.shards)
        item = (place.task_id, keep_ms, share, most, recording)
        try:
            said = await self._link.run("deposit", keys.prefix(place.shard), *item)
        except RedisAwayError as error:
            raise unavailable(f"nothing was taken: {error}") from error
        if said == b"FULL":
            detail = f"Redis is filled to more than {share:.0%}, which is left to commands: send it as text, or later"
            raise Problem("audio_refused", detail, retryable=True, retry_after=5)
        if said == b"CROWDED":
            detail = f"recordings of {most} bytes wait to be understood: send it as text, or say it a little later"
            raise Problem("audio_refused", detail, retryable=True, retry_after=2)

    async def _write(self, place: _Place, item: tuple[str | bytes | int, ...]) -> tuple[int, bool]:
        """When it was taken in, epoch ms, and whether an earlier try had done so."""
        try:
            now, answer = await self._flights[place.shard].add((), item)
        except RedisUnknownError as error:
            raise unavailable("Redis did not confirm in time: the command may have been taken, or not") from error
        except RedisAwayError as error:
            raise unavailable(f"nothing was taken: {error}") from error
        except ReplyError as error:
            log.exception("accept failed")
            raise unavailable("Redis refused to take the command; the log says why") from error
        if isinstance(answer, list):
            log.error("accept failed", error=answer[1].decode(errors="replace"))
            raise unavailable("nothing was taken: a key in Redis is damaged; the log says which")
        if answer == b"OK":
            return now, False
        if place.reservation is None:
            raise AssertionError(f"accept answered {answer!r} to a fresh id")
        if answer != b"DUPLICATE":  # TOO_OLD
            raise unavailable("nothing was taken: its key lapsed while it was under way")
        return await self._created(place) or now, True

    async def _entry(self, command: Command) -> Entry:
        entry = self._catalogue.find(command.type, command.payload_version)
        if entry is None:
            # perhaps a worker has just announced it
            await self._catalogue.refresh(self._link)
            entry = self._catalogue.find(command.type, command.payload_version)
        if entry is not None:
            return entry
        if not len(self._catalogue):
            detail = "no worker has announced its types yet: start a background process"
            raise Problem("no_catalogue", detail, retryable=True, retry_after=2)
        if versions := self._catalogue.versions(command.type):
            detail = f"{command.type} is known in payload version {', '.join(map(str, versions))}"
            raise invalid([{"pointer": "/payload_version", "detail": detail}])
        known = instead(command.type, tuple(row.type for row in self._catalogue.newest()))
        detail = f"no worker knows the type {command.type!r}; known: {known}"
        raise Problem("unknown_type", detail, errors=[{"pointer": "/type", "detail": detail}])

    def _ack(self, task_id: str, type_: str, accepted_ms: int) -> bytes:
        return (
            f'{{"correlation_id":"{task_id}","task_id":"{task_id}","type":"{type_}","status":"PENDING",'
            f'"accepted_at":"{rfc3339(accepted_ms)}","retention_s":{self._retention},'
            f'"links":{{"result":"/v1/results/{task_id}","ws":"/v1/ws"}}}}'
        ).encode()


def _command(value: Any, *, watched: bool) -> Command:
    command = read_command(as_command(value))
    if command.model_extra and (later := LATER & command.model_extra.keys()):
        name = min(later)
        raise invalid([{"pointer": f"/{name}", "detail": f"{name} is not served by this release: leave it out"}])
    if command.on_disconnect == "cancel" and not watched:
        detail = "cancel goes by the socket that the command came by, and there is none: send it by /v1/ws"
        raise invalid([{"pointer": "/on_disconnect", "detail": detail}])
    return command


def _target(command: Command, entry: Entry) -> str | None:
    if command.target is not None:
        return command.target
    rule = entry.row.target
    if rule is None:
        return None
    value = command.payload.get(rule)
    if value is None:
        return None
    if not isinstance(value, str) or not value or len(value) > 200:
        raise invalid([{"pointer": f"/payload/{rule}", "detail": "names the target: a text of 1 to 200 characters"}])
    return value


def _envelope(  # noqa: PLR0913  the parts of the envelope
    command: Command,
    *,
    task_id: str,
    version: int,
    target: str | None,
    priority: str,
    tenant: str,
    source: Source,
    now: int,
    deadline_ms: int,
    traceparent: str,
    schedule: str | None,
) -> bytes:
    """The queue message; what the contract does not know of the command is carried along.

    Only what the client said needs a serializer; all else here is words of ours, times and ids.
    """
    theirs = {
        "type": command.type,
        "payload": command.payload,
        "target": target,
        "session": command.session,
        "area": command.area,
        "snapshot": command.snapshot,
    }
    if schedule is not None:
        theirs["schedule"] = {"name": schedule, "instant": None}
    if command.model_extra:
        theirs = {name: value for name, value in command.model_extra.items() if name not in OURS} | theirs
    return (
        to_json(theirs)[:-1]
        + (
            f',"v":{VERSION},"task_id":"{task_id}","correlation_id":"{task_id}","payload_version":{version},'
            f'"priority":"{priority}","created_at":"{rfc3339(now)}","deadline":"{rfc3339(now + deadline_ms)}",'
            f'"tenant":"{tenant}","source":"{source}","actor":null,"reply":{{"webhook":null,'
            f'"on_disconnect":"{command.on_disconnect}"}},"conflict":"{command.conflict}","traceparent":"{traceparent}"}}'
        ).encode()
    )
