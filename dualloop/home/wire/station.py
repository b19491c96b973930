"""One connection of the home to the broker: says what its devices say, hears what they are told, and comes back."""

import asyncio
import contextlib
import json
from collections.abc import Coroutine, Sequence
from typing import Any, Final, NamedTuple
from uuid import uuid4

import aiomqtt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dualloop.home import model
from dualloop.home.house import House, KeyReused, Silent, Unreachable
from dualloop.home.model import SET, Order, Reading
from dualloop.home.wire.dialect import Again, Dialect, Get, Message, Set, Unclear
from dualloop.home.wire.pairing import Announced, Due, Pairing
from shared import logs
from shared.clock import now_ms
from shared.mqtt import connect

log = logs.get(__name__)

ACTS, ANSWERS = "dualloop/acts", "dualloop/answers"
REST_S: Final = 0.3
"""How long the rest of an act is waited for."""
BACKOFF_S: Final = (0.05, 5.0)
BYE_S: Final = 1.0
MOST: Final = 1_000
"""Messages that may wait to be said; a broker that takes none for longer hears the newest after the next connect."""

_CODES: Final[dict[type[Exception], str]] = {
    Unreachable: "offline",
    KeyReused: "key_reused",
    model.Fenced: "old_fence",
    model.Refused: "refused",
}


class _Act(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    key: str = Field(min_length=1, max_length=512)
    fence: int = Field(ge=0)
    values: dict[str, Any]


class _Out(NamedTuple):
    message: Message
    qos: int = 0


class Station:
    """The connection of one dialect's devices; a `Watcher` of the house.

    Args:
        house: whose devices they are.
        dialect: how they speak.
        url: of the broker.
    """

    def __init__(self, house: House, dialect: Dialect, url: str) -> None:
        """Connect to nothing yet."""
        self._house, self._dialect, self._url = house, dialect, url
        self._named = {named.device.entity: named for named in dialect.devices}
        self._entities = {named.name: named.device.entity for named in dialect.devices}
        self._pairings = {name: Pairing() for name in self._entities}
        self._outgoing: asyncio.Queue[_Out] = asyncio.Queue(MOST)
        self._work = set[asyncio.Task[None]]()
        self.connected = False
        """Everything was announced on a connection that stands."""

    @property
    def identifier(self) -> str:
        """Under which the broker knows it: a home that was frozen is dropped for the one that replaces it."""
        names = [self._dialect.prefix, *(self._entities if len(self._entities) == 1 else ())]
        return "-".join(["dualloop-home", *names])

    async def run(self) -> None:
        """Speak until cancelled; then say good-bye. What a device is doing goes on while the broker is away."""
        try:
            await self._come_back_always()
        finally:
            for task in self._work:
                task.cancel()
            if self._work:
                await asyncio.wait(self._work)

    async def _come_back_always(self) -> None:
        pause, another = BACKOFF_S[0], ""
        while True:
            try:
                async with connect(self._url, identifier=self.identifier + another, will=self._will()) as client:
                    await self._greet(client)
                    pause = BACKOFF_S[0]
                    await self._speak(client)
            except (aiomqtt.MqttError, OSError) as fault:
                log.info("broker is away", station=self.identifier, why=str(fault), again_in_s=pause)
            except Exception:
                log.exception("station failed", station=self.identifier, again_in_s=pause)
            finally:
                self.connected = False
            # a broker that is not through with who had the name before lets nobody in under it, amqtt for ever at times
            another = f"-{uuid4().hex[:6]}"
            await asyncio.sleep(pause)
            pause = min(2 * pause, BACKOFF_S[1])

    def shown(self, entity: str, reading: Reading, changed: frozenset[str]) -> None:
        """See `Watcher`."""
        if (named := self._named.get(entity)) is None:
            return
        messages = self._dialect.report(named, reading, changed)
        late_ms = self._house.device(entity).faults.late_ms
        if late_ms:
            asyncio.get_running_loop().call_later(late_ms / 1000, self._put, entity, messages)
        else:
            self._put(entity, messages)

    def present(self, entity: str, *, here: bool) -> None:
        """See `Watcher`."""
        if (named := self._named.get(entity)) is not None:
            self._put(entity, self._dialect.presence(named.name, here=here))

    def _will(self) -> aiomqtt.Will:
        return aiomqtt.Will(self._dialect.will.topic, self._dialect.will.payload, 1, self._dialect.will.retain)

    async def _greet(self, client: aiomqtt.Client) -> None:
        topics = [*self._dialect.subscriptions(), *(f"{ACTS}/{self._dialect.prefix}/{name}" for name in self._entities)]
        # at QoS 1 a broker holds back what is not acknowledged yet, and a set would come before what announces it
        await client.subscribe([(topic, 0) for topic in topics])
        self._outgoing = asyncio.Queue(MOST)  # what was to be said before is old
        for message in self._hello():
            await client.publish(*message[:2], qos=1, retain=message.retain)
        self.connected = True

    def _hello(self) -> Sequence[Message]:
        devices = {name: self._house.device(entity) for name, entity in self._entities.items()}
        messages = self._dialect.hello({name: not device.faults.offline for name, device in devices.items()})
        for name, device in devices.items():
            if not (device.faults.offline or device.faults.silent):
                reading = model.observe(device, now_ms())
                named = self._named[self._entities[name]]
                messages += self._dialect.report(named, reading, frozenset(reading.value))
        return messages

    async def _speak(self, client: aiomqtt.Client) -> None:
        saying = asyncio.create_task(self._say(client))
        try:
            async for message in client.messages:
                if not message.retain:  # a command that a broker remembered is nobody's wish any more
                    payload = message.payload if isinstance(message.payload, bytes) else b""
                    self._hear(message.topic.value, payload)
        except asyncio.CancelledError:
            with contextlib.suppress(aiomqtt.MqttError):
                await client.publish(*self._dialect.will[:2], qos=1, retain=True, timeout=BYE_S)
            raise
        finally:
            saying.cancel()
            await asyncio.wait({saying})

    async def _say(self, client: aiomqtt.Client) -> None:
        with contextlib.suppress(aiomqtt.MqttError):  # the listening side hears of it too
            while True:
                message, qos = await self._outgoing.get()
                await client.publish(message.topic, message.payload, qos=qos, retain=message.retain)

    def _put(self, entity: str, messages: Sequence[Message], qos: int = 0) -> None:
        times = 2 if self._house.device(entity).faults.duplicate else 1
        for message in [message for message in messages for _ in range(times)]:
            with contextlib.suppress(asyncio.QueueFull):
                self._outgoing.put_nowait(_Out(message, qos))

    def _hear(self, topic: str, payload: bytes) -> None:
        if topic.startswith(f"{ACTS}/"):
            self._announced(topic.removeprefix(f"{ACTS}/{self._dialect.prefix}/"), payload)
            return
        match self._dialect.hear(topic, payload):
            case Set(name, values):
                entity = self._entities[name]
                shown = self._house.device(entity).value
                self._carry_out(name, self._pairings[name].take(values, shown, now_ms()))
            case Get() as get:
                self._begin(self._read(get))
            case Unclear(name, sentence):
                act = self._pairings[name].act
                self._refuse(name, act, "refused", sentence)
            case Again():
                for message in self._hello():
                    self._put(next(iter(self._named)), [message])
            case None:
                pass

    def _announced(self, name: str, payload: bytes) -> None:
        try:
            told = _Act.model_validate_json(payload)
        except ValidationError as fault:
            log.warning("an act was announced that cannot be read", name=name, why=str(fault.errors()[0]["msg"]))
            return
        act, pairing = Announced(told.key, told.fence, told.values), self._pairings[name]
        self._carry_out(name, pairing.announce(act, now_ms()))
        loop = asyncio.get_running_loop()
        loop.call_later(REST_S, lambda: self._carry_out(name, pairing.give_up(act, now_ms())))

    def _carry_out(self, name: str, due: Due | None) -> None:
        if due is not None:
            self._begin(self._do(name, due))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _do(self, name: str, due: Due) -> None:
        entity, act, values = self._entities[name], due.act, dict(due.values)
        try:
            if act is None:
                await self._house.meddle(entity, values)
            else:
                await self._house.act(entity, Order(action=SET, value=values, key=act.key, fence=act.fence))
        except Silent:
            return
        except tuple(_CODES) as fault:
            self._refuse(name, act, _CODES[type(fault)], str(fault))
            return
        if act is not None:
            self._answer(name, act, "done", "")

    async def _read(self, get: Get) -> None:
        entity = self._entities[get.name]
        with contextlib.suppress(Unreachable, Silent):
            reading = await self._house.observe(entity)
            self._put(entity, self._dialect.answer(get, self._named[entity], reading))

    def _refuse(self, name: str, act: Announced | None, code: str, sentence: str) -> None:
        if act is not None:
            self._answer(name, act, code, sentence)
        self._put(self._entities[name], self._dialect.failed(name, sentence, here=code != "offline"))

    def _answer(self, name: str, act: Announced, code: str, detail: str) -> None:
        told = json.dumps({"key": act.key, "code": code, "detail": detail}, ensure_ascii=False)
        self._put(self._entities[name], [Message(f"{ANSWERS}/{self._dialect.prefix}/{name}", told)], qos=1)
