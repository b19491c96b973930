"""A checked mission type: what the runner, the machine and the catalogue take from it."""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from backend_loop.answers import awaited_in
from backend_loop.course import Course, Plan
from backend_loop.retry import Retry
from backend_loop.states import StateSpec, UndoSpec
from backend_loop.versions import Versions
from shared.catalogue import Row

if TYPE_CHECKING:
    from backend_loop.mission import Mission

    MissionClass = type[Mission]


@dataclass(frozen=True, slots=True)
class MissionType:
    """A definition without faults.

    Args:
        type, version: its name and newest version.
        mission: the class.
        plan: for the machine.
        states: the handlers by state. undos: likewise, of the states that have one.
        versions: how older ones become the newest.
    """

    type: str
    version: int
    mission: "MissionClass"
    plan: Plan
    states: Mapping[str, StateSpec] = field(repr=False)
    undos: Mapping[str, UndoSpec] = field(repr=False)
    versions: Versions = field(repr=False)

    @property
    def kind(self) -> str:
        """``type@version``, as scripts and catalogue name it."""
        return f"{self.type}@{self.version}"

    @property
    def kinds(self) -> tuple[str, ...]:
        """All that it can run: the versions that are upcast, and its own."""
        return tuple(f"{self.type}@{version}" for version in range(self.versions.oldest, self.version + 1))

    @property
    def specs(self) -> tuple[StateSpec | UndoSpec, ...]:
        """All that can be run: handlers, then undos."""
        return (*self.states.values(), *self.undos.values())

    def spec(self, course: Course) -> StateSpec | UndoSpec:
        """What is to be run now."""
        return self.undos[course.state] if course.undoing else self.states[course.state]

    def row(self, version: int | None = None) -> Row:
        """What foregrounds need to know of a version (P15); None: the newest. An older one runs as the newest does."""
        mission = self.mission
        return Row(
            type=self.type,
            version=version or self.version,
            description=inspect.cleandoc(mission.__doc__ or ""),
            payload_schema=self._schema(version or self.version),
            target=mission.target,
            pool=mission.pool,
            priority=mission.priority,
            deadline_s=mission.deadline_s,
            initial=self.plan.initial,
            states={name: _state(spec, self.undos.get(name)) for name, spec in self.states.items()},
            transitions=[
                {"from": name, "event": event, "to": to}
                for name, plan in self.plan.states.items()
                for event, to in plan.row.items()
            ],
            events=self._events(),
            optional=[name for name, plan in self.plan.states.items() if plan.skip is not None],
            undos=[name for name in self.plan.states if name in self.undos],
            latest=None if mission.latest is None else mission.latest.row(),
            oldest=self.versions.oldest,
            concurrency=mission.concurrency,
        )

    def rows(self) -> list[Row]:
        """One for each version that it can run, the oldest first."""
        return [self.row(version) for version in range(self.versions.oldest, self.version + 1)]

    def _schema(self, version: int) -> dict[str, Any]:
        if version == self.version:
            return self.mission.Payload.model_json_schema()
        schema = self.versions.steps[version].schema
        return {"type": "object"} if schema is None else schema.model_json_schema()

    def _events(self) -> list[str]:
        """What its handlers may wait for; where their files do not say it, whatever leads out of a state."""
        if self.mission.events is not None:
            return sorted(self.mission.events)
        rows = {event for plan in self.plan.states.values() for event in plan.row} - {"timed_out", "skipped"}
        waits = set[str]()
        for spec in self.states.values():
            if (words := awaited_in(spec.handler)) is None:
                return sorted(rows)
            waits |= words
        return sorted(rows & waits)


def _state(spec: StateSpec, undo: UndoSpec | None) -> dict[str, Any]:
    said: dict[str, Any] = {
        "timeout_s": spec.timeout_s,
        "acting": spec.acting,
        "retry": _retry(spec.retry),
        "on_failure": spec.on_failure,
        "runs": spec.runs,
        "uses": [dependency.name for dependency in spec.uses],
    }
    if undo is not None:
        said["undo"] = {
            "timeout_s": undo.timeout_s,
            "retry": _retry(undo.retry),
            "runs": undo.runs,
            "uses": [dependency.name for dependency in undo.uses],
        }
    return said


def _retry(policy: Retry) -> dict[str, Any]:
    return {
        "tries": policy.tries,
        "base_s": policy.base_s,
        "cap_s": policy.cap_s,
        "max_elapsed_s": policy.max_elapsed_s,
    }


def pools_of(types: Iterable[MissionType]) -> tuple[str, ...]:
    """The pools in which missions of these types wait, by name."""
    return tuple(sorted({definition.mission.pool for definition in types}))


def rows_of(types: Iterable[MissionType]) -> list[Row]:
    """A row for each version of each type; a type may be named more than once."""
    return list({row.kind: row for definition in types for row in definition.rows()}.values())
