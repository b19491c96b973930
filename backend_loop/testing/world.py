"""One run of a bench: its time, its shard, its outside, and the workers that come and go."""

import asyncio
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from backend_loop.files import Files
from backend_loop.mission import MissionType
from backend_loop.spawning import Spawning
from backend_loop.testing.control import Control
from backend_loop.testing.ends import Carrier, Ends
from backend_loop.testing.faults import Call
from backend_loop.testing.home import Home, HomeWire
from backend_loop.testing.life import STATE, Life
from backend_loop.testing.points import Kill, KilledError
from backend_loop.testing.record import Record
from backend_loop.testing.script import Script, ScriptWire
from backend_loop.testing.sessions import Memory
from backend_loop.testing.shard import Shard, Write
from backend_loop.testing.skipping import Time, TooLongError
from shared.catalogue import Catalogue
from shared.fleet import Fleet
from shared.home import Inventory
from shared.ids import Ids
from shared.settings import Settings

if TYPE_CHECKING:
    from backend_loop.testing.trial import Trial

Happening = Callable[[], object]

TAKEOVER_LEASES: Final = 2
"""So many lease times pass at most until a dead worker's missions are taken over (P7)."""


class NeverEndsError(AssertionError):
    """A run goes on and on."""


class KitFleet(Fleet):
    """One shard, and ids that are the same in each run."""

    def __init__(self) -> None:
        """Joined to nothing."""
        super().__init__(1)

    @property
    def ids(self) -> Ids:
        """See `Fleet`."""
        return Ids(b"the kit's, so anybody's".ljust(32))


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a bench gives to each of its runs."""

    types: Mapping[str, MissionType]
    outside: Script
    home: Home
    inventory: Inventory
    children: Mapping[str, Ends | Sequence[Ends]]
    settings: Settings
    database: str
    files: Path | None
    begin: str
    commits: int
    days: float


class Meddler:
    """Lets more happen in a run than a bench does: nothing at all, here."""

    def within(self, _task_id: str) -> Iterator[Happening]:
        """What happens within a handler of this mission that begins now."""
        return iter(())

    def before(self, _write: Write) -> None:
        """A commit is about to be written."""

    def rests(self) -> bool:
        """Whether a mission that waits is to be left alone, whatever time would bring about."""
        return False


class World:
    """All that a run has; it begins empty."""

    def __init__(
        self,
        setting: Setting,
        kills: Iterable[Kill] = (),
        *,
        begin: str | None = None,
        known: frozenset[str] | None = None,
    ) -> None:
        """The bench's setting, and what is otherwise in this run.

        Args:
            setting: of the bench.
            kills: where workers die.
            begin: when time begins, RFC 3339.
            known: types of children that run for real; where it is said, the others end when they are told to.
        """
        self.setting, self.settings, self.types = setting, setting.settings, setting.types
        self.time = Time(begin or setting.begin, setting.days * 86_400)
        self.shard = Shard(self.time, self.settings)
        self.control = Control(self.shard, self.time)
        real, ends = (frozenset(self.types), setting.children) if known is None else (known, None)
        self.carrier = Carrier(self.shard, self.control, real, ends, self.time)
        self.fleet = KitFleet()
        self.spawning = Spawning(self.fleet, self.types.values(), Catalogue(), self.settings.deadline_s)
        self.services, self.home = ScriptWire(setting.outside, self), HomeWire(setting.home, self, self.time)
        self.files = Files(setting.files or _folder(self), self.settings.max_files_bytes)
        self.database = setting.database
        self.sessions = Memory()
        self.calls: list[Call] = []
        self.commits = 0
        self.kills, self.died = list(kills), list[Kill]()
        self.trial: Trial
        self._lives, self._dying = 0, False
        self._life: Life | None = None
        self.meddler = Meddler()

    def play(self, until_ms: int | None = None) -> None:
        """Let it go on until nothing moves any more, or, if that is later, until this time (epoch ms).

        Raises:
            NeverEndsError, UnscriptedError: as they say.
        """
        if self._life is not None:
            raise AssertionError("it runs already: what happens meanwhile may tell a mission something, and no more")
        _alone()
        try:
            while (dead := self._live(until_ms)) is not None:
                self.time.pass_(TAKEOVER_LEASES * self.settings.lease_s)
                self.shard.reclaim(dead)
        except TooLongError as error:
            raise self._never(str(error)) from None

    def _live(self, until_ms: int | None) -> str | None:
        """A worker, to its rest or its death; then who it was."""
        self._lives, self._dying = self._lives + 1, False
        self._life = life = Life(self, self._lives)
        try:
            life.live(until_ms)
        except KilledError:
            return life.owner
        finally:
            self._life = None
            self.shard.unheard()
        return None

    def replay(self, record: Record, data: Mapping[str, Any]) -> None:
        """A dead letter runs again; `data` is that of its event."""
        definition = self.types[record.type]
        deadline_s = definition.mission.deadline_s or self.settings.deadline_s
        start = data["from"] == "start"
        initial = definition.plan.initial
        self.control.replay(record, initial=initial, start=start, deadline_s=deadline_s, data=data)

    def committed(self) -> None:
        """One more commit."""
        self.commits += 1
        if self.commits >= self.setting.commits and self._life is not None:
            self._life.loop.end(self._never(f"there were {self.commits} commits"))

    def _never(self, why: str) -> NeverEndsError:
        return NeverEndsError(f"it goes on and on: {why}, and it has not ended. {self.trial.told()}")

    async def reach(self, when: str, what: str, number: int, name: str = "") -> None:
        """A place to be killed at; if one is meant by it, or the worker is dying, this never returns."""
        if self._dying:
            await self._never_again()
        for kill in list(self.kills):
            if kill.meets(when, what, number, name):
                self.die(kill)
                await self._never_again()

    def call(self, method: str, path: str, body: Mapping[str, Any], key: str, fence: int) -> Call:
        """See `Around`."""
        call = Call(len(self.calls) + 1, method, path, body, key, fence, STATE.get(), self.time.passed_s)
        self.calls.append(call)
        return call

    async def point(self, when: str, call: Call) -> None:
        """See `Around`."""
        await self.reach(when, "call", call.number, call.path)

    def meet(self, do: "Callable[[Trial], object]") -> None:
        """See `Around`."""
        do(self.trial)

    async def fail(self, error: BaseException) -> None:
        """See `Around`."""
        if self._life is not None:
            self._life.loop.end(error)
            await self._never_again()

    def die(self, kill: Kill) -> None:
        """The worker that lives is killed there."""
        if kill in self.kills:
            self.kills.remove(kill)
        self.died.append(kill)
        self._dying = True
        if self._life is not None:
            self._life.die()

    async def _never_again(self) -> None:
        await asyncio.get_running_loop().create_future()

    def within(self, task_id: str, state: str) -> Iterator[Happening]:
        """What is to happen within the handler that begins now."""
        for kill in set(self.kills):
            if kill.meets("within", "state", 0, state):
                yield partial(self.die, kill)
        yield from self.meddler.within(task_id)

    def rests(self) -> bool:
        """Whether a mission that waits is to be left alone, whatever time would bring about."""
        return self.meddler.rests()


def _alone() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("a bench runs an event loop of its own: use it in a plain `def test_…`, not in an `async def`")


def _folder(world: World) -> Path:
    """Not made before a mission writes a file; goes with the run."""
    folder = Path(tempfile.gettempdir(), f"dualloop-bench-{uuid4().hex}")
    weakref.finalize(world, shutil.rmtree, folder, ignore_errors=True)
    return folder
