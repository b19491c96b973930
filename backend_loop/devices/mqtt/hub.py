"""The one connection that a worker process has to the broker: who is there, what they say, and what is said to them."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import count, islice
from typing import Final
from uuid import uuid4

import aiomqtt

from backend_loop.devices.mqtt import changes
from backend_loop.devices.mqtt.book import Book
from backend_loop.devices.mqtt.dialects.described import Message, mapping, number
from backend_loop.devices.mqtt.line import Line, Look
from backend_loop.devices.mqtt.lines import CHANGES, Lines, spoken
from shared.clock import now_ms
from shared.logs import get
from shared.loop import Answer, Idle, Loop
from shared.mqtt import MqttUrl, connect, trouble

log = get(__name__)

ACTS: Final = "dualloop/acts"
ANSWERS: Final = "dualloop/answers"
HUBS: Final = "dualloop/hubs"
"""Where a hub says a number to itself, once it has subscribed, and before it asks.

When that comes, all that the broker had to send before has come.
"""

MARKS: Final = 2
"""How often a hub says it: a broker drops what it cannot keep for who is slow to listen, but not twice."""

AT_MOST_ONCE: Final = 0
"""QoS of what is heard: so all comes in the order in which it was said. What a connection loses is asked anew."""

SLICE_S: Final = 5.0
SETTLE_S: Final = 5.0
"""How long a broker may say nothing at all while it sends what it has retained."""

CONNECT_S: Final = 3.0
LONGEST_S: Final = 600.0
"""Of a broker that sends and sends before it answers."""

AT_ONCE: Final = 50
"""Topics in one subscription."""

DROPS: Final = "let it keep more for a slow listener: in mosquitto.conf, max_queued_messages 0"

REST: Final = 9
"""Taking in announcements is followed by a rest so many times as long: a flood of them leaves time for all else."""

CAP_S: Final = 5.0
"""Longest pause before the broker is tried again."""


class Hub:
    """The connection, and the devices behind it.

    Args:
        url: of the broker.
        bases: where Zigbee2MQTT bridges speak.
        prefix: where Home Assistant's discovery is.
    """

    def __init__(self, url: MqttUrl, bases: Iterable[str], prefix: str) -> None:
        """Connect to nothing yet: that is the loop's business."""
        self.url, self._lines = url, Lines()
        self.revision = 0
        """Rises with every announcement that changed who is there."""
        self._book = Book(tuple(bases), prefix)
        self._subscribed, self._untold, self._unread = set[str](), dict[str, None](), False
        self._identifier = f"dualloop-{uuid4().hex[:12]}"
        self._own = f"{HUBS}/{self._identifier}"
        self._session = contextlib.AsyncExitStack()
        self._client: aiomqtt.Client | None = None
        self._reading: asyncio.Task[None] | None = None
        self._asking, self._marks, self._hears_itself = dict[str, Look](), count(1), True
        self._nudge, self._mark, self._ready = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._settling: int | None = None
        self._retained, self._reminded = set[str](), False
        self._came, self._recalled, self._rest_s = 0, 0, 0.0
        self.trouble = "not connected yet"
        """Why there is no connection, where there is none."""
        self.connected_at = 0
        """Since when it hears; epoch milliseconds."""
        self.loop = Loop(
            "mqtt",
            self._once,
            trigger="outside",
            patience_s=SLICE_S + SETTLE_S * 3,
            vital=False,
            describe="hears the devices behind the MQTT broker, and keeps the connection to it",
            output="readings, and who changed what",
            backoff_cap_s=CAP_S,
        )

    @property
    def lines(self) -> Mapping[str, Line]:
        """The devices, by wire name; also who was announced once."""
        return self._lines.by_wire

    async def ready(self, within_s: float) -> bool:
        """Whether it is connected and knows who is there, waited for so long."""
        return await _set(self._ready, within_s)

    async def hears(self, line: Line, within_s: float) -> bool:
        """Whether what this device says is heard, waited for so long."""
        return await _set(line.there, within_s)

    async def publish(self, topic: str, payload: str, *, qos: int) -> None:
        """Say something, never retained; with `qos` 1, return once the broker has it.

        Raises:
            aiomqtt.MqttError: there is no connection, or no answer of the broker.
        """
        if self._client is None:
            raise aiomqtt.MqttError("not connected")
        await self._client.publish(topic, payload.encode(), qos=qos)

    async def ask(self, look: Look, questions: Iterable[Message]) -> None:
        """Ask a device; `look.posed` is set, if it was not, once all has come that the broker had before.

        Raises:
            aiomqtt.MqttError: there is no connection.
        """
        if self._hears_itself and not look.posed:
            mark = str(next(self._marks))
            self._asking[mark] = look
            await self.publish(self._own, mark, qos=0)
        else:
            look.posed = True
        for question in questions:
            await self.publish(question.topic, question.payload, qos=0)

    def forget(self, look: Look) -> None:
        """Nobody looks any more."""
        for mark in [mark for mark, one in self._asking.items() if one is look]:
            del self._asking[mark]

    async def close(self) -> None:
        """Leave the broker, once the loop has ended."""
        client, self._client, reading = self._client, None, self._reading
        self._reading = None
        self._ready.clear()
        if reading is not None:
            reading.cancel()
            await asyncio.wait({reading})
        if client is not None:
            for line in self.lines.values():
                line.lose_touch()
        session, self._session = self._session, contextlib.AsyncExitStack()
        with contextlib.suppress(Exception):  # the library hands on what it trips over amid a good-bye
            await session.aclose()

    async def _once(self) -> Answer:
        """Hear for a while; connect first where that is to be done."""
        if self._reading is None:
            await self._open()
        await asyncio.sleep(self._rest_s)
        reading, nudged = self._reading, asyncio.ensure_future(self._nudge.wait())
        assert reading is not None, "it was opened"  # noqa: S101  right above
        try:
            await asyncio.wait({reading, nudged}, timeout=SLICE_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            nudged.cancel()
        try:
            if reading.done():
                reading.result()
            self._nudge.clear()
            await self._listen()
            await self._tell()
        except aiomqtt.MqttError as error:
            self.trouble = trouble(error)
            log.warning("broker lost", broker=str(self.url), error=self.trouble)
            await self.close()
            raise
        return Idle()

    async def _open(self) -> None:
        client = connect(self.url, identifier=self._identifier, wait_s=CONNECT_S)
        entering = asyncio.ensure_future(self._session.enter_async_context(client))
        try:
            await asyncio.shield(entering)  # it connects in a thread, which cannot be interrupted
        except asyncio.CancelledError:
            await asyncio.wait({entering})
            entering.exception()  # nobody else asks for it
            await self.close()
            raise
        except aiomqtt.MqttError as error:
            self.trouble = trouble(error)
            raise
        self._client, self._subscribed = client, set()
        self._reading = asyncio.create_task(self._hear(client), name="mqtt reading")
        try:
            await self._settle(client)
        except BaseException as error:
            if isinstance(error, aiomqtt.MqttError):
                self.trouble = trouble(error)
            await self.close()
            raise
        log.info("broker there", broker=str(self.url), devices=len(self.lines))

    async def _settle(self, client: aiomqtt.Client) -> None:
        """Hear who is there; only then may anybody ask."""
        self.connected_at = now_ms()
        self._retained.clear()
        self._reminded, self._hears_itself = False, True
        await self._subscribe(client, [self._own, f"{ACTS}/#", f"{ANSWERS}/#"])
        for topics in self._book.topics:  # not all at once: that may be more than a broker keeps for a slow listener
            await self._subscribe(client, topics)
            await self._marked(client)
        self._take_in()
        self._rest_s = 0.0
        self._ready.set()
        self._nudge.set()

    async def _subscribe(self, client: aiomqtt.Client, topics: Iterable[str]) -> None:
        """Raises aiomqtt.MqttError: the broker is lost, or silent."""
        answer = client.subscribe([(topic, AT_MOST_ONCE) for topic in topics], timeout=LONGEST_S)
        if not await self._answered(answer, lambda: self._came):
            raise aiomqtt.MqttError(f"the broker said nothing for {SETTLE_S:g} s")

    async def _marked(self, client: aiomqtt.Client) -> None:
        """Return once all has come that the broker had to send before."""
        if not self._hears_itself:
            return
        self._mark.clear()
        self._settling = first = next(self._marks)
        for mark in (first, *islice(self._marks, MARKS - 1)):
            await client.publish(self._own, str(mark).encode(), qos=0)
            if await self._answered(self._mark.wait(), lambda: self._recalled):
                if self._settling != first:
                    log.warning("broker has dropped messages, maybe of devices", broker=str(self.url), instead=DROPS)
                return
        self._hears_itself = False  # it may be forbidden: then nobody waits for a mark
        log.warning("broker does not send what is said to oneself", broker=str(self.url))

    async def _answered(self, answer: Awaitable[object], came: Callable[[], int]) -> bool:
        """Whether an answer of the broker comes, waited for as long as more comes: it may have retained much.

        Args:
            answer: of it.
            came: how much of what it is waited for has come so far.

        Raises:
            aiomqtt.MqttError: the broker is lost.
        """
        assert self._reading is not None, "it was opened"  # noqa: S101  by whoever waits
        waiting = asyncio.ensure_future(answer)
        try:
            while True:
                before = came()
                self.loop.beat()
                both = {waiting, self._reading}
                await asyncio.wait(both, timeout=SETTLE_S, return_when=asyncio.FIRST_COMPLETED)
                if waiting.done():
                    waiting.result()
                    return True
                if self._reading.done():
                    self._reading.result()
                if came() == before:
                    return False
        finally:
            waiting.cancel()

    def _remind(self) -> None:
        """Tell a broker again what it has forgotten of who changed what: one that began anew has nothing retained."""
        self._reminded = True
        known = {wire for wire, line in self.lines.items() if line.tracker.changes}
        self._untold |= dict.fromkeys(sorted(known - self._retained))

    def _take_in(self) -> None:
        """Take in who was announced, once for all of them."""
        began = time.monotonic()
        if self._unread:
            self._unread = False
            self.revision += self._lines.take_in(self._book.devices(), now_ms())
        self._rest_s = min(REST * (time.monotonic() - began), SLICE_S)

    async def _listen(self) -> None:
        """Take in who was announced, and hear them; what is retained of one has come before anybody asks him."""
        self._take_in()
        client, deaf = self._client, [line for line in self.lines.values() if not line.there.is_set()]
        assert client is not None, "it was opened"  # noqa: S101  by whoever listens
        begun, topics = list[Line](), dict[str, None]()
        for n, line in enumerate(deaf, 1):
            begun.append(line)
            topics |= dict.fromkeys(topic for topic in spoken(line) if topic not in self._subscribed)
            if len(topics) < AT_ONCE and n < len(deaf):
                continue
            if topics:
                await self._subscribe(client, topics)
                await self._marked(client)
                self._subscribed.update(topics)
            for one in begun:
                one.there.set()
            begun, topics = [], {}
        if not self._reminded:
            self._remind()

    async def _tell(self) -> None:
        """Hand on who changed what, for workers that begin later."""
        while self._untold and self._client is not None:
            wire = next(iter(self._untold))
            del self._untold[wire]  # before it is told: what comes meanwhile is to be told as well
            if wire in self.lines:
                told = {name: changes.Moved(*moved) for name, moved in self.lines[wire].tracker.told().items()}
                try:
                    await self._client.publish(f"{CHANGES}/{wire}", changes.written(told).encode(), qos=1, retain=True)
                except aiomqtt.MqttError:
                    self._untold[wire] = None  # once there is a broker again
                    raise

    async def _hear(self, client: aiomqtt.Client) -> None:
        async for message in client.messages:
            topic, payload = message.topic.value, message.payload
            self._came += 1
            self._recalled += message.retain
            try:
                text = payload.decode() if isinstance(payload, bytes) else ""
                self._take(topic, text, retained=message.retain)
            except UnicodeDecodeError:
                log.debug("no text", topic=topic)
            except Exception:  # a message that trips us must not cost the connection, again and again
                log.exception("message not understood", topic=topic)

    def _take(self, topic: str, text: str, *, retained: bool) -> None:
        space, _, rest = topic.partition("/")
        if space == "dualloop" and self._among_us(topic, rest, text, retained=retained):
            return
        if self._book.hear(topic, text):
            self._unread = True
            self._nudge.set()
        now = now_ms()
        for line in self._lines.routes.get(topic, ()):
            if line.hear(topic, text, retained=retained, now=now):
                self._untold[line.described.wire] = None
                self._nudge.set()

    def _among_us(self, topic: str, rest: str, text: str, *, retained: bool) -> bool:
        """What workers, and devices of our own kind, say among themselves."""
        if topic == self._own:
            self._came_back(text)
            return True
        kind, _, wire = rest.partition("/")
        line = self.lines.get(wire)
        if kind not in {"acts", "answers", "changes"}:
            return False
        if line is None:
            return True
        if kind == "changes":
            if text:
                self._changed(wire, line, changes.read(text, now_ms()) or {})
        elif not retained:
            told = mapping(text)
            if kind == "answers":
                line.answered(told)
            elif isinstance(values := told.get("values"), Mapping) and isinstance(told.get("key"), str):
                fence, plain = number(told.get("fence")), {name: one for name, one in values.items() if _is_plain(one)}
                line.tracker.announce(told["key"], int(fence or 0), plain, now_ms())
        return True

    def _changed(self, wire: str, line: Line, told: Mapping[str, changes.Moved]) -> None:
        """Somebody has told who changed what, now or long ago."""
        self._retained.add(wire)
        if line.tracker.adopt(told):
            self._untold[wire] = None
            self._nudge.set()
        else:
            self._untold.pop(wire, None)  # all that is known here stands there

    def _came_back(self, mark: str) -> None:
        self._hears_itself = True
        told = number(mark)
        if not self._mark.is_set() and told is not None and self._settling is not None and told >= self._settling:
            self._settling = int(told)  # also a later one: what was to come before the first has come, or is lost
            self._mark.set()
        if (look := self._asking.get(mark)) is not None:
            look.posed = True


def _is_plain(value: object) -> bool:
    """Whether a device may show it: anybody may announce an act."""
    return isinstance(value, str | bool) or number(value) is not None


async def _set(event: asyncio.Event, within_s: float) -> bool:
    if not event.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, within_s)):
                await event.wait()
    return event.is_set()
