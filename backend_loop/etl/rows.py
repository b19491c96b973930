"""What becomes of a record: fields read, cleaned, made into a table's columns; or a reject with its reason. Pure."""

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, Final

from pydantic_core import from_json

from backend_loop.etl.job import Job
from backend_loop.etl.records import Record, SourceError, cells
from backend_loop.etl.rules import LARGEST, Kind, RowError, Scalar
from shared.shortened import shortened

Fields = dict[str, Any]
Reading = Callable[[Record], Fields]

TOLD: Final = 60
"""Characters of a value in a reason."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def reading(job: Job, columns: Sequence[str]) -> Reading:
    """What gives the job's fields of a record, as the source has them; it raises RowError.

    Args:
        job: says which.
        columns: of a csv, as its header has them.

    Raises:
        SourceError: the header lacks one, or has one twice.
    """
    names = [field.name for field in job.fields]
    if job.form != "csv":
        return lambda record: _of_json(names, record)
    for name in names:
        if columns.count(name) != 1:
            times = columns.count(name)
            raise SourceError(f"the header has {name!r} {times} times, and not once: {', '.join(columns)}"[:500])
    places = {name: columns.index(name) for name in names}
    return lambda record: _of_csv(places, len(columns), job.delimiter, record)


def _of_csv(places: Mapping[str, int], width: int, delimiter: str, record: Record) -> Fields:
    try:
        found = cells(_text(record), delimiter)
    except csv.Error as error:
        raise RowError(f"it is no csv: {error}") from error
    if len(found) != width:
        raise RowError(f"it has {len(found)} cells, and the header {width}")
    return {name: found[place] for name, place in places.items()}


def _of_json(names: Sequence[str], record: Record) -> Fields:
    try:
        found = from_json(_text(record), allow_inf_nan=False)
    except ValueError as error:
        raise RowError(f"it is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise RowError("it is no object")
    return {name: found.get(name) for name in names}


def _text(record: Record) -> str:
    if record.fault is not None:
        raise RowError(record.fault)
    try:
        return record.raw.decode()
    except UnicodeDecodeError as error:
        raise RowError(f"its byte {error.start} is no UTF-8") from error


def clean(job: Job, fields: Mapping[str, Any]) -> dict[str, Scalar]:
    """The fields as values of their types, trimmed; what is empty is None.

    Raises:
        RowError: one is missing, or is no such value.
    """
    row = dict[str, Scalar]()
    for field in job.fields:
        value = fields[field.name]
        if isinstance(value, str):
            value = value.strip() or None
        if value is None:
            if field.required:
                raise RowError(f"{field.name} is missing")
        elif (value := CLEAN[field.type](value)) is None:
            raise RowError(f"{field.name} is {shortened(repr(fields[field.name]), TOLD)}, and no {field.type}")
        row[field.name] = value
    return row


def transform(job: Job, row: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The columns of a clean row.

    Raises:
        RowError: one cannot be made, or a part of the key is missing.
    """
    made = {column: row[rule] if isinstance(rule, str) else rule.value(row) for column, rule in job.made.items()}
    for column in job.key:
        if made[column] is None:
            raise RowError(f"{column} is missing, which is a part of the key")
    return made


def told(job: Job, row: Mapping[str, Scalar]) -> str:
    """What tells a row from others, for a person."""
    return ", ".join(f"{column} {shortened(repr(row[column]), TOLD)}" for column in job.key)


def _to_text(value: Any) -> str | None:
    """As it is; numbers of a json are written out."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value) if math.isfinite(value) else None
    return value if isinstance(value, str) else None


def _to_integer(value: Any) -> int | None:
    if isinstance(value, str):
        value = int(value) if _INTEGER.fullmatch(value) else None
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and -LARGEST <= value <= LARGEST else None


def _to_number(value: Any) -> float | None:
    if isinstance(value, str):
        value = float(value) if _NUMBER.fullmatch(value) else None
    elif type(value) is int:
        value = float(value) if -LARGEST <= value <= LARGEST else None
    return value if isinstance(value, float) and math.isfinite(value) else None


def _to_boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else _BOOLEANS.get(str(value).lower())


def _to_date(value: Any) -> str | None:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return None
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        return None


CLEAN: Final[Mapping[Kind, Callable[[Any], Scalar]]] = {
    "text": _to_text,
    "integer": _to_integer,
    "number": _to_number,
    "boolean": _to_boolean,
    "date": _to_date,
}
"""What a value is in each type; None: it is none."""
