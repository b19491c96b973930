"""The bench: a mission type, its outside, and runs of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from backend_loop.mission import Mission, MissionType
from backend_loop.testing.door import take
from backend_loop.testing.ends import Ends
from backend_loop.testing.exported import Exported
from backend_loop.testing.faults import Answers
from backend_loop.testing.home import Home
from backend_loop.testing.points import Kill
from backend_loop.testing.replaying import Replayed, Replayer
from backend_loop.testing.restored import accepted, stood
from backend_loop.testing.script import Script
from backend_loop.testing.skipping import BEGIN
from backend_loop.testing.trial import Trial
from backend_loop.testing.world import Setting, World
from shared.home import EMPTY, Inventory, check
from shared.settings import Settings


class Bench:
    """Runs missions of a type.

    Args:
        mission: the type.
        more: types of its children, which then run for real.
        outside: what services and the model answer.
        home: the devices.
        inventory: what is known of the home, as `tools.home` tells it: an `Inventory`, or its document.
        children: how children of other types end, by type: one end, a function of the payload, or a
            list of these, one for each.
        begin: when time begins, RFC 3339.
        settings: such as ``Settings(max_transitions=50)``; by default those of a fresh installation, whatever the
            environment says.
        database: URL for `backend_loop.database.connect`.
        files: folder of the files that missions make; None: a temporary one for each run.
        commits, days: a run that takes more than these is said to go on for ever.
    """

    def __init__(  # noqa: PLR0913  what a mission has around it
        self,
        mission: type[Mission],
        *more: type[Mission],
        outside: Script | Mapping[str, Answers] | None = None,
        home: Home | Mapping[str, Mapping[str, Any]] | None = None,
        inventory: Inventory | Mapping[str, Any] = EMPTY,
        children: Mapping[str, Ends | Sequence[Ends]] | None = None,
        begin: str = BEGIN,
        settings: Settings | None = None,
        database: str = "",
        files: Path | None = None,
        commits: int = 5_000,
        days: float = 400.0,
    ) -> None:
        """Nothing runs yet."""
        settings = settings or Settings.model_construct()
        self._definition = _limited(mission.definition, settings)
        types = [self._definition, *(_limited(one.definition, settings) for one in more)]
        self._setting = Setting(
            types={one.type: one for one in types},
            outside=outside if isinstance(outside, Script) else Script(outside),
            home=home if isinstance(home, Home) else Home(home or {}),
            inventory=inventory if isinstance(inventory, Inventory) else check(dict(inventory)),
            children=children or {},
            settings=settings,
            database=database,
            files=files,
            begin=begin,
            commits=commits,
            days=days,
        )

    def accept(
        self, payload: Mapping[str, Any] | BaseModel | None = None, *, kill: Kill | Iterable[Kill] = (), **command: Any
    ) -> Trial:
        """Take a command in, and run nothing yet.

        Args:
            payload: of the command.
            kill: where workers are to die.
            command: its other fields: ``target priority deadline_s snapshot session area conflict payload_version``.

        Raises:
            RefusedError: the door would say 422.
        """
        world = World(self._setting, _kills(kill))
        record = take(world, self._definition.type, payload, command)
        world.shard.accept(record)
        world.trial = Trial(world, record)
        return world.trial

    def run(
        self, payload: Mapping[str, Any] | BaseModel | None = None, *, kill: Kill | Iterable[Kill] = (), **command: Any
    ) -> Trial:
        """Take a command in, and run it until it ends or waits for what only the test can give; see `accept`."""
        return self.accept(payload, kill=kill, **command).run()

    def killed_everywhere(
        self,
        payload: Mapping[str, Any] | BaseModel | None = None,
        *,
        then: Callable[[Trial], object] | None = None,
        **command: Any,
    ) -> Iterator[Trial]:
        """The same mission again and again, its worker killed in another place each time.

        That is before and after each commit, and before and after each call to the outside, of those that it has
        undisturbed; its children's count too. The places are those of the undisturbed run: one that a killed run does
        not come to kills nobody, and `Trial.killed` is empty.

        Args:
            payload: of the command.
            then: what is said to it where it first waits for what only a test can give, such as
                ``lambda mission: mission.event("PAID")``.
            command: as of `accept`.

        Raises:
            AssertionError: undisturbed it does not end; or a kill made an effect happen twice, under different keys.
        """
        whole = self._told(payload, (), then, command)
        if not whole.ended:
            raise AssertionError(f"undisturbed it does not end: say by `then` what it waits for. {whole.told()}")
        for kill in whole.places:
            killed = self._told(payload, (kill,), then, command)
            if more := set(killed.doubled) - set(whole.doubled):
                raise AssertionError(f"{kill} made an effect happen twice: {'; '.join(sorted(more))}. {killed.told()}")
            yield killed

    def replay(self, file: str | Path | Mapping[str, Any]) -> Replayed:
        """Run the mission of a file of ``dualloop missions export`` from its start, with the handlers as they are now.

        What came to it from outside comes again at the same points of its log: events, cancels and all else that was
        said to it, the ends of its children, and deaths of its workers. What services and devices answered does not
        stand in a file: that the bench says. Its time begins when the mission was accepted.

        Raises:
            ExportError: the file cannot be used; the sentence says why.
        """
        exported = Exported.read(file, self._definition)
        world = World(self._setting, begin=exported.created_at, known=frozenset())
        record = accepted(world, exported)
        world.trial = Trial(world, record)
        return Replayer(world, record, exported).play()

    def resume(self, file: str | Path | Mapping[str, Any], *, kill: Kill | Iterable[Kill] = ()) -> Trial:
        """Put the mission of such a file where it stood and let it go on with the handlers as they are now.

        A dead letter goes on in the state that it failed in, as a new run, as ``dualloop dead-letters replay`` would
        have it: does my fix get it through? What was begun with an older version is upcast. Children that live end as
        the bench says.

        Raises:
            ExportError: the file cannot be used, or the mission has ended and is no dead letter.
        """
        exported = Exported.read(file, self._definition)
        world = World(self._setting, _kills(kill), begin=exported.exported_at)
        world.trial = Trial(world, stood(world, exported))
        return world.trial.run()

    def _told(
        self,
        payload: Mapping[str, Any] | BaseModel | None,
        kills: Iterable[Kill],
        then: Callable[[Trial], object] | None,
        command: Mapping[str, Any],
    ) -> Trial:
        trial = self.run(payload, kill=kills, **command)
        if then is not None and not trial.ended:
            then(trial)
            trial.run()
        return trial


def _kills(kill: Kill | Iterable[Kill]) -> Iterable[Kill]:
    return [kill] if isinstance(kill, Kill) else kill


def _limited(definition: MissionType, settings: Settings) -> MissionType:
    """As a worker with these settings runs it."""
    return replace(definition, plan=replace(definition.plan, max_transitions=settings.max_transitions))
