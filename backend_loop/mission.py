"""How a mission type is written: one class in one file; what is wrong with it is said at import."""

import inspect
from collections.abc import Mapping
from typing import ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict

from backend_loop.author_frames import raised_in
from backend_loop.budget import BudgetSpentError
from backend_loop.course import Plan, StatePlan
from backend_loop.definition import check, check_versions, skip_event
from backend_loop.files import FilesTooLargeError
from backend_loop.mission_type import MissionType
from backend_loop.outcomes import LONGEST_S, Fail
from backend_loop.outcomes import Retry as Again
from backend_loop.promises import DefinitionError
from backend_loop.states import Latest, StateSpec, UndoSpec, state, steps, undo
from backend_loop.versions import Example, Upcast, Versions
from shared.status import ErrorCode, Priority

__all__ = [
    "DefinitionError",
    "Example",
    "Latest",
    "Mission",
    "MissionType",
    "StateSpec",
    "UndoSpec",
    "Upcast",
    "foreseen",
    "outcome_of",
    "state",
    "steps",
    "undo",
]

Model = type[BaseModel]
Errors = tuple[type[Exception], ...]
Spec = TypeVar("Spec", StateSpec, UndoSpec)


class Nothing(BaseModel):
    """A payload or context without fields; what is sent nevertheless is kept."""

    model_config = ConfigDict(extra="allow")


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
        version: of payload, context and states together, from 1. oldest: the first one that is still taken.
        upcasters: older version → the step to the next one, for each from `oldest` on.
        Payload, Context: pydantic models.
        table: state → event → next state; the first state is the initial one.
        target: payload field whose value is the target: one mission at a time acts on it.
        pool: workers that serve it. priority: when the command names none. deadline_s: likewise; None: the fleet's.
        concurrency: missions of this type that may run a handler at once, over all workers; None: any number.
        latest: what a newer command on the same target replaces. events: outside events that it may wait for;
            None: those of the WaitFor calls in its handlers' files.
        permanent, retryable: exceptions that end the mission at once, or that the state's retry policy repeats; the
            nearest class decides, so that one of them may be an exception to the other; unknown ones are repeated.
    """

    type: ClassVar[str] = ""
    version: ClassVar[int] = 1
    Payload: ClassVar[Model] = Nothing
    Context: ClassVar[Model] = Nothing
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    target: ClassVar[str | None] = None
    pool: ClassVar[str] = "default"
    priority: ClassVar[Priority] = Priority.NORMAL
    deadline_s: ClassVar[float | None] = None
    concurrency: ClassVar[int | None] = None
    latest: ClassVar[Latest | None] = None
    events: ClassVar[tuple[str, ...] | None] = None
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


def outcome_of(error: BaseException, definition: MissionType) -> Fail | Again:
    """What a handler's exception means: its nearest class that the type names decides; unknown ones are tried again.

    One that has `after_s` is tried again in so many seconds at the earliest, as the other side asked. A batch in which
    too much has failed has failed. Of what nobody foresaw it is said where it was raised.
    """
    if isinstance(error, BudgetSpentError):
        return Fail(str(error), result=error.report)
    if isinstance(error, FilesTooLargeError):
        return Fail(str(error), ErrorCode.TOO_LARGE)
    mission = definition.mission
    sentence = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    for kind in type(error).__mro__:
        if kind in mission.retryable:
            break
        if kind in mission.permanent:
            return Fail(sentence)
    after_s = getattr(error, "after_s", 0.0)
    after_s = after_s if isinstance(after_s, int | float) and 0 <= after_s <= LONGEST_S else 0.0
    return Again(sentence, after_s=after_s, at=None if foreseen(error, definition) else raised_in(error))


def foreseen(error: BaseException, definition: MissionType) -> bool:
    """Whether the type knows of such errors, or everybody does: a line of the log is enough, without its stack."""
    mission = definition.mission
    return isinstance(
        error, (TimeoutError, BudgetSpentError, FilesTooLargeError, *mission.permanent, *mission.retryable)
    )


def _define(cls: type[Mission]) -> MissionType:
    where = f"{cls.__module__}.{cls.__qualname__}"
    specs = {spec.name: spec for spec in _marked(where, cls, "__state__", StateSpec)}
    undos = {spec.state: spec for spec in _marked(where, cls, "__undo__", UndoSpec)}
    check(where, cls, specs, undos)
    versions = Versions(cls.version, cls.oldest, cls.upcasters)
    check_versions(where, cls, versions)
    plan = Plan(
        initial=next(iter(cls.table)),
        states={name: _plan(row, specs[name], undos.get(name)) for name, row in cls.table.items()},
    )
    return MissionType(cls.type, cls.version, cls, plan, specs, undos, versions)


def _marked(where: str, cls: type[Mission], mark: str, kind: type[Spec]) -> list[Spec]:
    """The marks of a class and its bases, those of the bases first: a class may replace them, by method or by state."""
    found: list[Spec] = []
    for base in reversed(cls.__mro__):
        own: dict[str, str] = {}
        for name, value in vars(base).items():
            spec = getattr(value, mark, None)
            if isinstance(spec, kind) and inspect.getattr_static(cls, name) is value:
                if (other := own.setdefault(spec.name, name)) != name:
                    raise DefinitionError(f"{where}: {spec.name} has two handlers, {other} and {name}: leave one")
                found.append(spec)
    return found


def _plan(row: Mapping[str, str], spec: StateSpec, undo_: UndoSpec | None) -> StatePlan:
    return StatePlan(
        dict(row),
        spec.retry,
        acting=spec.acting,
        undo=None if undo_ is None else undo_.retry,
        skip=skip_event(spec, row),
    )
