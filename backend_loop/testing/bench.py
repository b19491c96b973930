"""The bench: a mission type, its outside, and runs of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from backend_loop.mission import Mission, MissionType
from backend_loop.testing.door import take
from backend_loop.testing.ends import Ends
from backend_loop.testing.faults import Answers
from backend_loop.testing.home import Home
from backend_loop.testing.points import Kill
from backend_loop.testing.script import Script
from backend_loop.testing.skipping import BEGIN
from backend_loop.testing.trial import Trial
from backend_loop.testing.world import Setting, World
from shared.settings import Settings


class Bench:
    """Runs missions of a type.

    Args:
        mission: the type.
        more: types of its children, which then run for real.
        outside: what services and the model answer.
        home: the devices.
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
        world = World(self._setting, [kill] if isinstance(kill, Kill) else kill)
        record = take(world, self._definition.type, payload, command)
        world.shard.accept(record)
        world.trial = Trial(world, record)
        return world.trial

    def run(
        self, payload: Mapping[str, Any] | BaseModel | None = None, *, kill: Kill | Iterable[Kill] = (), **command: Any
    ) -> Trial:
        """Take a command in, and run it until it ends or waits for what only the test can give; see `accept`."""
        return self.accept(payload, kill=kill, **command).run()


def _limited(definition: MissionType, settings: Settings) -> MissionType:
    """As a worker with these settings runs it."""
    return replace(definition, plan=replace(definition.plan, max_transitions=settings.max_transitions))
