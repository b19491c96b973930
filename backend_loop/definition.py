"""What is wrong with a mission type, found when its class is made: each fault has a sentence that says what to do."""

import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from backend_loop.answers import said_by
from backend_loop.outcomes import LONGEST_S
from backend_loop.promises import DefinitionError, check_promises, is_count, is_number
from backend_loop.states import Latest, StateSpec, UndoSpec
from backend_loop.versions import Example, Upcast, Versions
from shared.status import TERMINAL, Priority

NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
STATE = re.compile(r"[A-Z][A-Z0-9_]*")
WORD = re.compile(r"[a-z][a-z0-9_-]*")
EVENT = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
SKIPPED: Final = "skipped"
"""The event of an optional state that is left undone, unless its row has just one."""

Table = Mapping[str, Mapping[str, str]]


def skip_event(spec: StateSpec, row: Mapping[str, str]) -> str | None:
    """The event taken when the state finally fails; None: the mission fails."""
    if spec.on_failure != "skip":
        return None
    return SKIPPED if SKIPPED in row else next(iter(row))


def check(where: str, cls: Any, specs: Mapping[str, StateSpec], undos: Mapping[str, UndoSpec]) -> None:
    """Check all but the older versions.

    Raises:
        DefinitionError: with what to change.
    """
    if not isinstance(cls.type, str) or not NAME.fullmatch(cls.type):
        raise DefinitionError(f'{where}: set type to a dotted lower-case name, such as "order.fulfil"')
    if not is_count(cls.version):
        raise DefinitionError(f"{where}: version is a whole number from 1")
    if not cls.table or not isinstance(cls.table, Mapping):
        raise DefinitionError(f'{where}: set table to state → event → next state, or to steps("A", "B")')
    _check_models(where, cls)
    _check_table(where, cls.table, specs)
    _check_defaults(where, cls)
    nested = "<locals>" in cls.__qualname__
    for name, spec in specs.items():
        check_promises(where, spec, nested=nested)
        _check_optional(where, spec, cls.table[name])
        _check_answers(where, spec, cls.table[name])
    for undo in undos.values():
        check_promises(where, undo, nested=nested)
        _check_undo(where, undo, cls.table)
    _check_errors(where, cls)
    if cls.latest is not None:
        _check_latest(where, cls, specs)


def _check_defaults(where: str, cls: Any) -> None:
    if not isinstance(cls.pool, str) or not WORD.fullmatch(cls.pool):
        raise DefinitionError(f"{where}: pool is {cls.pool!r}: write small letters, digits, _ and -, a letter first")
    if not isinstance(cls.priority, Priority):
        raise DefinitionError(
            f"{where}: priority is {cls.priority!r}: set it to a shared.status.Priority, such as Priority.URGENT"
        )
    if cls.deadline_s is not None and not (is_number(cls.deadline_s) and 0 < cls.deadline_s <= LONGEST_S):
        sentence = f"deadline_s is {cls.deadline_s!r}: say seconds, more than 0 and at most {LONGEST_S:.0f}, or None"
        raise DefinitionError(f"{where}: {sentence}")
    if cls.concurrency is not None and not is_count(cls.concurrency):
        raise DefinitionError(f"{where}: concurrency is {cls.concurrency!r}: say a whole number from 1, or None")
    if cls.target is not None and cls.target not in cls.Payload.model_fields:
        raise DefinitionError(f"{where}: target names the payload field {cls.target!r}, which Payload does not have")
    for event in cls.events or ():
        if not any(event in row for row in cls.table.values()):
            raise DefinitionError(f"{where}: events names {event!r}, which is in no row of the table: give it one")


def _check_models(where: str, cls: Any) -> None:
    for name in ("Payload", "Context"):
        model = getattr(cls, name)
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            raise DefinitionError(f"{where}: {name} is no pydantic model: write class {name}(BaseModel)")
    for name, field in cls.Context.model_fields.items():
        if field.is_required():
            raise DefinitionError(f"{where}: a Context begins empty, and its {name} has no default: give it one")


def _check_table(where: str, table: Table, specs: Mapping[str, StateSpec]) -> None:
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
        raise DefinitionError(f"{where}: state {lost[0]} is not reachable from {initial}: lead a row there")


def _check_row(where: str, name: str, row: Mapping[str, str], table: Table) -> None:
    if not isinstance(row, Mapping):
        raise DefinitionError(f"{where}: the row of {name} is {row!r}: write event → next state, in braces")
    if not row:
        raise DefinitionError(f"{where}: state {name} has an empty row: no event leads out of it")
    for event, to in row.items():
        if not EVENT.fullmatch(event):
            raise DefinitionError(f"{where}: {event!r} in the row of {name} cannot be an event: letters, digits, _")
        if to not in table and to not in TERMINAL:
            raise DefinitionError(f"{where}: {name} --{event}--> {to} leads nowhere: give {to} a row of its own")


def _check_optional(where: str, spec: StateSpec, row: Mapping[str, str]) -> None:
    if spec.on_failure != "skip":
        return
    if SKIPPED not in row and len(row) > 1:
        raise DefinitionError(
            f"{where}: state {spec.name} is optional and its row has {len(row)} events: "
            f'say where a failure leads, by one that is called "{SKIPPED}"'
        )
    if row[skip_event(spec, row) or ""] == spec.name:
        raise DefinitionError(
            f"{where}: state {spec.name} is optional and skipping it leads back to it: lead elsewhere"
        )


def _check_answers(where: str, spec: StateSpec, row: Mapping[str, str]) -> None:
    said = said_by(spec.handler)
    if said is None:
        return
    head = f"{where}: state {spec.name}:"
    for kind, words in (("Go", said.goes), ("WaitFor", said.waits), ("WaitForChildren", said.joins)):
        if unknown := sorted(words - set(row)):
            known = ", ".join(sorted(row))
            raise DefinitionError(
                f"{head} its handler answers {_call(kind, unknown[0])}, and its row has {known}: "
                f"add {unknown[0]} to the row, or answer one of these"
            )
    family = "WaitForChildren" in said.kinds
    if said.whole and (said.goes or said.waits or family):  # one that only ever fails has to have some row, too
        given = {*said.goes, *said.waits, *said.joins, skip_event(spec, row)}
        given |= {*(["timed_out"] if said.waits or family else []), *(["child_failed"] if family else [])}
        if dead := sorted(set(row) - given):
            raise DefinitionError(
                f"{head} its row has {dead[0]}, which its handler never answers: "
                f'take it out of the row, or return Go("{dead[0]}")'
            )


def _call(kind: str, event: str) -> str:
    return f'{kind}(event="{event}")' if kind == "WaitForChildren" else f'{kind}("{event}")'


def _check_undo(where: str, undo: UndoSpec, table: Table) -> None:
    if undo.state not in table:
        raise DefinitionError(f"{where}: the undo of {undo.state} undoes nothing: the table has no state {undo.state}")
    said = said_by(undo.handler)
    if said is not None and (wrong := sorted(said.kinds & {"WaitFor", "Stop"})):
        raise DefinitionError(
            f"{where}: the undo of {undo.state} answers {wrong[0]}: return nothing once it is undone, "
            "Retry or Sleep to be called again, Fail to give up"
        )


def _check_errors(where: str, cls: Any) -> None:
    for name in ("permanent", "retryable"):
        if not isinstance(getattr(cls, name), tuple):
            raise DefinitionError(f"{where}: {name} is {getattr(cls, name)!r}: write a tuple, such as (ValueError,)")
        for kind in getattr(cls, name):
            if not (isinstance(kind, type) and issubclass(kind, Exception)):
                raise DefinitionError(f"{where}: {name} has {kind!r}: name classes of exceptions, such as ValueError")
    if both := set(cls.permanent) & set(cls.retryable):
        doubled = min(kind.__name__ for kind in both)
        raise DefinitionError(f"{where}: {doubled} is both permanent and retryable: take it out of one of them")


def _check_latest(where: str, cls: Any, specs: Mapping[str, StateSpec]) -> None:
    latest = cls.latest
    if not isinstance(latest, Latest):
        raise DefinitionError(
            f'{where}: latest is {latest!r}: set it to Latest(aspect="…") or Latest(field=, aspects=)'
        )
    if cls.target is None:
        raise DefinitionError(f"{where}: latest needs a target: newer commands replace older ones on the same target")
    if (latest.aspect is None) == (latest.field is None):
        raise DefinitionError(f"{where}: latest takes either an aspect, or a field and the aspects of its values")
    if latest.field is not None and latest.field not in cls.Payload.model_fields:
        raise DefinitionError(f"{where}: latest names the payload field {latest.field!r}, which Payload does not have")
    aspects = [latest.aspect] if latest.aspect is not None else list((latest.aspects or {}).values())
    if not aspects or not all(isinstance(aspect, str) and WORD.fullmatch(aspect) for aspect in aspects):
        raise DefinitionError(
            f"{where}: latest has the aspects {aspects!r}: small letters, digits, _ and -, at least one"
        )
    if not any(spec.acting for spec in specs.values()):
        raise DefinitionError(f"{where}: latest is asked when an acting state is entered: mark one with acting=True")


def check_versions(where: str, cls: Any, versions: Versions) -> None:
    """Check that every older version has a step, and that its examples pass all of them.

    Raises:
        DefinitionError: with what to change.
    """
    newest, oldest, given = versions.newest, versions.oldest, versions.steps
    if not is_count(oldest) or oldest > newest:
        raise DefinitionError(f"{where}: oldest is {oldest!r}: say a version from 1 to {newest}")
    for version in range(oldest, newest):
        if version not in given:
            raise DefinitionError(
                f"{where}: version {version} is still taken and has no upcaster: give upcasters[{version}], "
                f"an Upcast to version {version + 1}, or set oldest to {version + 1}"
            )
    for version, step in given.items():
        if version not in range(oldest, newest):
            raise DefinitionError(
                f"{where}: upcasters[{version!r}] is never used: versions {oldest} to {newest} are run"
            )
        if not isinstance(step, Upcast):
            raise DefinitionError(f"{where}: upcasters[{version}] is {step!r}: set it to an Upcast")
        if not step.examples:
            raise DefinitionError(f"{where}: upcasters[{version}] has no examples: give a stored mission as an Example")
        for example in step.examples:
            _check_example(f"{where}: an example of version {version}", cls, versions, version, example)


def _check_example(head: str, cls: Any, versions: Versions, version: int, example: Example) -> None:
    try:
        payload, context = versions.payload(example.payload, version), versions.context(example.context, version)
        again = versions.payload(example.payload, version), versions.context(example.context, version)
        cls.Payload.model_validate(payload)
        cls.Context.model_validate(context)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"  # a KeyError says nothing but the key
        raise DefinitionError(f"{head} does not come through: {told}: mend the upcaster") from error
    if again != (payload, context):
        raise DefinitionError(f"{head} comes through differently each time: an upcaster is a pure function of its dict")
    state = versions.state(example.state, version) if example.state is not None else None
    if state is not None and state not in cls.table:
        raise DefinitionError(
            f"{head} is in state {state}, which the table does not have: name it in an Upcast's states"
        )
