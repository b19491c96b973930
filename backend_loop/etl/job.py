"""What is to be moved from where to where, as the payload of an `etl.run` says it: data, checked first."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from backend_loop.budget import MayFail
from backend_loop.etl.rules import Case, Constant, FieldName, Join, Kind, Product, Rule, Sum

Form = Literal["csv", "json", "jsonl"]

SUFFIXES: Final[Mapping[str, Form]] = {"csv": "csv", "json": "json", "jsonl": "jsonl", "ndjson": "jsonl"}

COLUMN: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,62}$"
"""A name that needs no quotes in any database."""
ColumnName = Annotated[str, Field(pattern=COLUMN)]

PATH: Final = r"^[^/\\.\x00-\x1f][^/\\\x00-\x1f]*(/[^/\\.\x00-\x1f][^/\\\x00-\x1f]*)*$"
"""A path that can only lead down: no part of it begins with a dot or is empty."""

OWN: Final = ("dualloop_", "sqlite_")
"""What the names of tables that are not the user's begin with."""


class Source(BaseModel):
    """A field of the source, and what a value has to be to pass."""

    model_config = ConfigDict(extra="forbid")

    name: FieldName
    type: Kind = "text"
    required: bool = False


class Allowance(MayFail):
    """How many rows may be rejected, or lost with a chunk, before all of it is given up."""


class Job(BaseModel):
    """One table out of one file.

    Args:
        source: path of the file, under ``DUALLOOP_DATA_DIR``.
        format: csv (with a header), json (one array of objects) or jsonl (an object a line); None: by the suffix.
        delimiter: of a csv.
        fields: what is read of each record, and cleaned; the rest is left alone.
        table: into which it goes; made if it is not there.
        columns: how each column is made; empty: each field is one, under its own name.
        key: columns that tell one row from another. A row whose key is there already is a reject: of two in one file
            the first one stays.
        chunk_rows: rows that one mission carries through one stage; more, where a file would need too many of them.
        at_once: chunks that are extracted, and transformed, at a time; loaded is one after the other.
        budget: what may be rejected; by default a row in a hundred.
    """

    model_config = ConfigDict(extra="forbid")

    source: str = Field(min_length=1, max_length=500, pattern=PATH, examples=["people.csv"])
    format: Form | None = None
    delimiter: Literal[",", ";", "\t", "|"] = ","
    fields: list[Source] = Field(min_length=1, max_length=200)
    table: ColumnName
    columns: dict[ColumnName, FieldName | Join | Case | Sum | Product | Constant] = Field(
        default_factory=dict, max_length=200
    )
    key: list[FieldName] = Field(default_factory=list, max_length=10)
    chunk_rows: int = Field(2_000, ge=1, le=100_000)
    at_once: int = Field(2, ge=1, le=64)
    budget: Allowance = Allowance(share=0.01)

    @field_validator("table")
    @classmethod
    def _not_ours(cls, table: str) -> str:
        if table.lower().startswith(OWN):
            raise ValueError(f"tables that begin with {' or '.join(OWN)} are not yours to fill")
        return table

    @model_validator(mode="after")
    def _coherent(self) -> "Job":
        names = [field.name for field in self.fields]
        _no_doubles("fields", names)
        _no_doubles("columns", [name.lower() for name in self.made])
        for column, rule in self.made.items():
            needs = [rule] if isinstance(rule, str) else rule.needs
            if wrong := [name for name in needs if name not in names]:
                raise ValueError(f"columns/{column} needs {wrong[0]}, which is none of the fields")
        if wrong := [name for name in self.key if name not in self.made]:
            raise ValueError(f"key has {wrong[0]}, which is none of the columns")
        _ = self.kinds, self.form
        return self

    @cached_property  # asked for each row
    def made(self) -> Mapping[str, str | Rule]:
        """Each column's rule: the name of a field, or what is to be made of some."""
        return self.columns or {field.name: field.name for field in self.fields}

    @property
    def kinds(self) -> dict[str, Kind]:
        """What each column holds; raises ValueError: one cannot be made of its fields."""
        fields = {field.name: field.type for field in self.fields}
        return {
            column: fields[rule] if isinstance(rule, str) else rule.kind(fields) for column, rule in self.made.items()
        }

    @property
    def form(self) -> Form:
        """What the file is; raises ValueError: nobody says so."""
        suffix = self.source.rpartition(".")[2].lower()
        if (form := self.format or SUFFIXES.get(suffix)) is None:
            raise ValueError(f"{self.source} does not say what it is: give format, csv, json or jsonl")
        return form


def _no_doubles(where: str, names: Sequence[str]) -> None:
    if doubled := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{where} has {doubled[0]} twice")
