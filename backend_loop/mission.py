"""How a mission type is written: one class in one file; what is wrong with it is said at import."""

import inspect
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from backend_loop.course import Course, Plan, StatePlan
from backend_loop.outcomes import LONGEST_S, Fail
from backend_loop.outcomes import Retry as Again
from backend_loop.retry import Retry
from backend_loop.states import Latest, StateSpec, UndoSpec, state, steps, undo
from backend_loop.versions import Example, Upcast, Versions
from shared.catalogue import Row
from shared.status import TERMINAL, Priority

__all__ = [
    "DefinitionError",
    "Example",
    "Latest",
    "Mission",
    "MissionType",
    "StateSpec",
    "UndoSpec",
    "Upcast",
    "outcome_of",
    "state",
    "steps",
    "undo",
]

Model = type[BaseModel]
Errors = tuple[type[Exception], ...]

NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
STATE = re.compile(r"[A-Z][A-Z0-9_]*")
POOL = re.compile(r"[a-z][a-z0-9_-]*")
EVENT = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class DefinitionError(TypeError):
    """A mission type is not well formed; the sentence says what to change."""


class Nothing(BaseModel):
    """A payload or context without fields; what is sent nevertheless is kept."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True, slots=True)
class MissionType:
    """A checked definition."""

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
        """All that it can run: its own version and those that are upcast."""
        return tuple(f"{self.type}@{version}" for version in range(self.versions.oldest, self.version + 1))

    def spec(self, course: Course) -> StateSpec | UndoSpec:
        """What is to be run now."""
        return self.undos[course.state] if course.undoing else self.states[course.state]

    def row(self) -> Row:
        """What foregrounds need to know (P15)."""
        mission = self.mission
        return Row(
            type=self.type,
            version=self.version,
            description=inspect.cleandoc(mission.__doc__ or ""),
            payload_schema=mission.Payload.model_json_schema(),
            target=mission.target,
            pool=mission.pool,
            priority=mission.priority,
            deadline_s=mission.deadline_s,
            initial=self.plan.initial,
            states={
                name: {
                    "timeout_s": spec.timeout_s,
                    "acting": spec.acting,
                    "retry": {"tries": spec.retry.tries, "base_s": spec.retry.base_s, "cap_s": spec.retry.cap_s},
                }
                for name, spec in self.states.items()
            },
            transitions=[
                {"from": name, "event": event, "to": to}
                for name, plan in self.plan.states.items()
                for event, to in plan.row.items()
            ],
        )


class Mission:
    """Base of all mission types.

    Example::

        class Greet(Mission):
            type = "demo.greet"
            table = {"COMPOSING": {"composed": "SENDING"}, "SENDING": {"sent": "SUCCEEDED"}}

            class Payload(BaseModel):
                name: str

            class Context(BaseModel):
                text: str = ""

            @state("COMPOSING")
            async def compose(self, tools: Toolbox[Payload, Context]) -> Outcome:
                tools.context.text = f"Hello {tools.payload.name}"
                return Go("composed")

            @state("SENDING", acting=True, timeout_s=5)
            async def send(self, tools: Toolbox[Payload, Context]) -> Outcome:
                ...  # the effect carries tools.key, so that a second try does it no second time
                return Go("sent", result={"said": tools.context.text})

    Class attributes:
        type: dotted lower-case name.
        version: of the payload, from 1.
        Payload, Context: pydantic models.
        table: state → event → next state; the first state is the initial one.
        target: payload field whose value is the target: one mission at a time acts on it.
        pool: workers that serve it. priority: when the command names none. deadline_s: likewise; None: the fleet's.
    """

    type: ClassVar[str]
    version: ClassVar[int] = 1
    Payload: ClassVar[Model] = Nothing
    Context: ClassVar[Model] = Nothing
    table: ClassVar[Mapping[str, Mapping[str, str]]]
    target: ClassVar[str | None] = None
    pool: ClassVar[str] = "default"
    priority: ClassVar[Priority] = Priority.NORMAL
    deadline_s: ClassVar[float | None] = None
    concurrency: ClassVar[int | None] = None
    latest: ClassVar[Latest | None] = None
    permanent: ClassVar[Errors] = ()
    retryable: ClassVar[Errors] = ()
    oldest: ClassVar[int] = 1
    upcasters: ClassVar[Mapping[int, Upcast]] = {}
    definition: ClassVar[MissionType]

    def __init_subclass__(cls) -> None:
        """Check the definition and keep it.

        Raises:
            DefinitionError: with what to change.
        """
        super().__init_subclass__()
        cls.definition = _define(cls)


MissionClass = type[Mission]


def outcome_of(error: BaseException, definition: MissionType) -> Fail | Again:
    """What a handler's exception means: its nearest class that the type names decides; an unknown one is tried again."""
    mission = definition.mission
    sentence = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    for kind in type(error).__mro__:
        if kind in mission.retryable:
            break
        if kind in mission.permanent:
            return Fail(sentence)
    return Again(sentence)


def _define(cls: MissionClass) -> MissionType:
    where = f"{cls.__module__}.{cls.__qualname__}"
    name = getattr(cls, "type", "")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise DefinitionError(f'{where}: set type to a dotted lower-case name, such as "order.fulfil"')
    if not isinstance(cls.version, int) or cls.version < 1:
        raise DefinitionError(f"{where}: version is a whole number from 1")
    table = getattr(cls, "table", None)
    if not table:
        raise DefinitionError(f'{where}: set table to state → event → next state, or to steps("A", "B")')
    marks = [getattr(value, "__state__", None) for base in reversed(cls.__mro__) for value in vars(base).values()]
    specs = {mark.name: mark for mark in marks if isinstance(mark, StateSpec)}
    marks = [getattr(value, "__undo__", None) for base in reversed(cls.__mro__) for value in vars(base).values()]
    undos = {mark.state: mark for mark in marks if isinstance(mark, UndoSpec)}
    _check_table(where, table, specs)
    _check_defaults(where, cls)
    for spec in specs.values():
        _check_promises(where, spec)
    if cls.target is not None and cls.target not in cls.Payload.model_fields:
        raise DefinitionError(f"{where}: target names the payload field {cls.target!r}, which Payload does not have")
    plan = Plan(
        initial=next(iter(table)),
        states={name: _plan(row, specs[name], undos.get(name)) for name, row in table.items()},
    )
    return MissionType(name, cls.version, cls, plan, specs, undos, Versions(cls.version, cls.oldest, cls.upcasters))


def _plan(row: Mapping[str, str], spec: StateSpec, undo_: UndoSpec | None) -> StatePlan:
    skip = None
    if spec.on_failure == "skip":
        skip = "skipped" if "skipped" in row else next(iter(row))
    return StatePlan(dict(row), spec.retry, spec.acting, undo_.retry if undo_ is not None else None, skip)


def _check_defaults(where: str, cls: MissionClass) -> None:
    if not isinstance(cls.pool, str) or not POOL.fullmatch(cls.pool):
        raise DefinitionError(f"{where}: pool is {cls.pool!r}: write small letters, digits, _ and -, a letter first")
    if not isinstance(cls.priority, Priority):
        raise DefinitionError(f"{where}: priority is {cls.priority!r}: set it to a Priority, such as Priority.URGENT")
    if cls.deadline_s is not None and not (_is_number(cls.deadline_s) and 0 < cls.deadline_s <= LONGEST_S):
        sentence = f"deadline_s is {cls.deadline_s!r}: say seconds, more than 0 and at most {LONGEST_S:.0f}, or None"
        raise DefinitionError(f"{where}: {sentence}")


def _check_promises(where: str, spec: StateSpec) -> None:
    head = f"{where}: state {spec.name}:"
    if not (_is_number(spec.timeout_s) and 0 < spec.timeout_s < math.inf):
        raise DefinitionError(f"{head} timeout_s is {spec.timeout_s!r}: say seconds, more than 0 and finite")
    retry = spec.retry
    if not isinstance(retry, Retry):
        raise DefinitionError(f"{head} retry is {retry!r}: set it to a backend_loop.retry.Retry")
    if type(retry.tries) is not int or retry.tries < 1:
        raise DefinitionError(f"{head} tries is {retry.tries!r}: a whole number from 1, the first run included")
    for name, value in (("base_s", retry.base_s), ("cap_s", retry.cap_s)):
        if not (_is_number(value) and 0 <= value <= LONGEST_S):
            raise DefinitionError(f"{head} {name} is {value!r}: say seconds from 0 to {LONGEST_S:.0f}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_table(where: str, table: Mapping[str, Mapping[str, str]], specs: Mapping[str, StateSpec]) -> None:
    for name, row in table.items():
        if name in TERMINAL or not STATE.fullmatch(name):
            raise DefinitionError(f"{where}: {name!r} cannot be a state: write capitals, and not one of the ends")
        if name not in specs:
            raise DefinitionError(f'{where}: state {name} has no handler: mark a method with @state("{name}")')
        _check_row(where, name, row, table)
    for name in specs:
        if name not in table:
            raise DefinitionError(f"{where}: the handler of {name} is never reached: give {name} a row in the table")
    initial = next(iter(table))
    reached, frontier = set[str](), [initial]
    while frontier:
        name = frontier.pop()
        if name not in reached and name in table:
            reached.add(name)
            frontier.extend(table[name].values())
    if lost := [name for name in table if name not in reached]:
        raise DefinitionError(f"{where}: state {lost[0]} is not reachable from {initial}")


def _check_row(where: str, name: str, row: Mapping[str, str], table: Mapping[str, Mapping[str, str]]) -> None:
    if not row:
        raise DefinitionError(f"{where}: state {name} has an empty row: no event leads out of it")
    for event, to in row.items():
        if not EVENT.fullmatch(event):
            raise DefinitionError(f"{where}: {event!r} in the row of {name} cannot be an event: letters, digits, _")
        if to not in table and to not in TERMINAL:
            raise DefinitionError(f"{where}: {name} --{event}--> {to} leads nowhere: give {to} a row of its own")
