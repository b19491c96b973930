"""How a handler's `spawn` becomes a child: its id, known at once, its lane and deadline, its payload checked."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypedDict

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from backend_loop.children import MOST, Child
from backend_loop.mission_type import MissionType
from shared.catalogue import Catalogue, Row
from shared.fleet import Fleet
from shared.ids import shard_of
from shared.status import Priority

UNKNOWN = "UNKNOWN"
"""State of a child whose type nobody has announced yet; a worker that knows it begins it in the type's first one."""


class SpawnError(ValueError):
    """A child cannot be: its payload is not its type's, or there are too many. The mission fails as `permanent`."""


class Parent(NamedTuple):
    """Who spawns, and where it is.

    Attributes:
        task_id, run, key_run: of the mission.
        state, visit: where it is; of an undo, ``UNDO_STATE``.
        tenant: whose it is.
        priority: which its children have too.
        deadline: epoch ms, which theirs may not pass; None: an undo's, which has none.
        now: epoch ms by Redis.
        traceparent: of the handler.
        children: the ones it has.
    """

    task_id: str
    run: int
    key_run: int
    state: str
    visit: int
    tenant: str
    priority: Priority
    deadline: int | None
    now: int
    traceparent: str
    children: tuple[Child, ...]


class Spec(TypedDict):
    """What a child's outbox row is made of, besides its parent's envelope."""

    version: int
    payload: Mapping[str, Any]
    target: str | None
    lane: str
    deadline: int
    state: str
    latest: str
    traceparent: str
    created_at: int


class Spawning:
    """Makes children.

    Args:
        fleet: its shards and ids.
        types: that this process knows.
        catalogue: of the others.
        deadline_s: of a child where nobody says one.
    """

    def __init__(self, fleet: Fleet, types: Iterable[MissionType], catalogue: Catalogue, deadline_s: float) -> None:
        """Ready at once; `catalogue` is kept fresh by somebody else."""
        self._fleet, self._catalogue, self._deadline_s = fleet, catalogue, deadline_s
        self._own = {one.type: one for one in types}
        self._rows = dict[str, Row]()
        """Made when first asked for: to describe a type takes milliseconds."""

    def row(self, type_: str) -> Row | None:
        """What is known of a type; None: nobody has announced it."""
        if type_ in self._own:
            if type_ not in self._rows:
                self._rows[type_] = self._own[type_].row()
            return self._rows[type_]
        return None if (entry := self._catalogue.find(type_)) is None else entry.row

    def child(  # noqa: PLR0913  what may be said of a child
        self,
        parent: Parent,
        n: int,
        type_: str,
        payload: Mapping[str, Any] | BaseModel,
        *,
        target: str | None,
        name: str | None,
        priority: Priority | None,
        deadline_s: float | None,
    ) -> Child:
        """The `n`-th child of this visit of this state; raises SpawnError with what to change."""
        row, content = self._checked(type_, payload)
        target = target if target is not None else _target(row, content)
        held = f"{parent.tenant}:{target}" if target is not None else ""
        return Child(
            self._id(parent, n, held),
            type_,
            name,
            parent.state,
            parent.visit,
            n,
            parent.run,
            _spec(parent, row, content, target, held, priority, self._deadline(parent, row, deadline_s)),
        )

    def _id(self, parent: Parent, n: int, held: str) -> str:
        key = f"{parent.task_id}:{parent.run}:{parent.state}:{parent.visit}:{n}"
        ids = self._fleet.ids
        mother = ids.read(parent.task_id)
        return ids.derived(shard_of(held or key, self._fleet.shards), mother.ms if mother is not None else 0, key)

    def _deadline(self, parent: Parent, row: Row | None, deadline_s: float | None) -> int:
        """Never later than the parent's."""
        seconds = deadline_s or (row.deadline_s if row is not None else None)
        if parent.deadline is None:
            return parent.now + round((seconds or self._deadline_s) * 1000)
        return parent.deadline if seconds is None else min(parent.deadline, parent.now + round(seconds * 1000))

    def _checked(self, type_: str, payload: Mapping[str, Any] | BaseModel) -> tuple[Row | None, Mapping[str, Any]]:
        """The type as far as it is known, and the payload as JSON carries it."""
        try:
            content = from_json(to_json(payload, inf_nan_mode="constants"), allow_inf_nan=False)
        except ValueError as error:
            raise SpawnError(f"the payload of a {type_} is no JSON: {error}") from error
        if not isinstance(content, dict):
            raise SpawnError(f"the payload of a {type_} is no object: {payload!r}"[:200])
        if (own := self._own.get(type_)) is not None:
            try:
                own.mission.Payload.model_validate(content)
            except ValidationError as error:
                raise SpawnError(f"the payload of a {type_} is wrong: {_faults(error)}") from error
            return self.row(type_), content
        if (entry := self._catalogue.find(type_)) is None:
            return None, content
        if (fault := next(iter(entry.validator.iter_errors(content)), None)) is not None:
            where = "".join(f"/{part}" for part in fault.instance_path)
            raise SpawnError(f"the payload of a {type_} is wrong: {where}: {fault.message}")
        return entry.row, content


def _faults(error: ValidationError) -> str:
    return "; ".join(
        "".join(f"/{part}" for part in fault["loc"]) + f": {fault['msg']}"
        for fault in error.errors(include_url=False, include_context=False, include_input=False)[:5]
    )


def _target(row: Row | None, payload: Mapping[str, Any]) -> str | None:
    """As its type's rule says."""
    value = payload.get(row.target) if row is not None and row.target is not None else None
    return value if isinstance(value, str) and value else None


def _spec(  # noqa: PLR0913, PLR0917  the parts of a child
    parent: Parent,
    row: Row | None,
    payload: Mapping[str, Any],
    target: str | None,
    held: str,
    priority: Priority | None,
    deadline: int,
) -> Spec:
    pool = row.pool if row is not None else "default"
    return Spec(
        version=row.version if row is not None else 1,
        payload=payload,
        target=target,
        lane=f"{priority or parent.priority}:{pool}:{parent.tenant}",
        deadline=deadline,
        state=row.initial if row is not None else UNKNOWN,
        latest=row.latest_of(held, payload) if row is not None else "",
        traceparent=parent.traceparent,
        created_at=parent.now,
    )


class Brood:
    """What one run of a handler spawns."""

    def __init__(self, spawning: Spawning, parent: Parent) -> None:
        """Nothing is spawned yet."""
        self._spawning, self._parent = spawning, parent
        here = [one for one in parent.children if (one.state, one.visit) == (parent.state, parent.visit)]
        present = [one for one in here if not one.old]
        self._names = {one.name: one.task_id for one in present if one.name is not None}
        self._n = max((one.n for one in present), default=0)
        self._old = {one.n: one for one in here if one.old and one.run >= parent.key_run}
        self.spawned: list[Child] = []

    def spawn(  # noqa: PLR0913  what may be said of a child
        self,
        type_: str,
        payload: Mapping[str, Any] | BaseModel,
        *,
        target: str | None,
        name: str | None,
        priority: Priority | None,
        deadline_s: float | None,
    ) -> str:
        """The child's id: of a new one, of the one of this name, or of the one that an earlier run saw succeed.

        Raises:
            SpawnError: with what to change.
        """
        if name is not None and (known := self._names.get(name)) is not None:
            return known
        if len(self._parent.children) + len(self.spawned) >= MOST:
            raise SpawnError(f"a mission has {MOST} children at most: spawn missions that spawn")
        parent, n = self._parent, self._n + 1
        old = self._old.get(n)
        if old is not None and (old.type, old.name) == (type_, name):
            child = old._replace(old=False, run=parent.run)
        else:
            child = self._spawning.child(
                parent, n, type_, payload, target=target, name=name, priority=priority, deadline_s=deadline_s
            )
        self._n = n
        self.spawned.append(child)
        if name is not None:
            self._names[name] = child.task_id
        return child.task_id
