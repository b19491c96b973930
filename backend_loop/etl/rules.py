"""How a table's columns are made of a source's fields: each rule is data, and none is code. Pure.

A column is a field as it is (``"name"``), or an object: ``{"join": ["first", "last"], "with": " "}``,
``{"from": "email", "case": "lower"}``, ``{"sum": ["net", "tax"]}``, ``{"product": ["price", "quantity"]}``,
``{"constant": "import"}``. Where a field is empty so is what is made of it, but for `join`, which leaves it out.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["text", "integer", "number", "boolean", "date"]
Scalar = str | int | float | bool | None
Row = Mapping[str, Scalar]
Kinds = Mapping[str, Kind]

FieldName = Annotated[str, Field(min_length=1, max_length=200)]
Terms = Annotated[list[FieldName | int | float], Field(min_length=1, max_length=20)]

LARGEST: Final = 2**63 - 1
"""What a database takes for an integer."""

NUMBERS: Final = {"integer", "number"}


class RowError(ValueError):
    """A row cannot be taken; the sentence is the reason with which it is told among the rejects."""


class Rule(BaseModel, ABC):
    """How one column is made."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, serialize_by_alias=True)

    @property
    @abstractmethod
    def needs(self) -> list[str]:
        """The fields that it reads."""

    @abstractmethod
    def kind(self, kinds: Kinds) -> Kind:
        """What its column holds, by what its fields hold; raises ValueError: it cannot be made of these."""

    @abstractmethod
    def value(self, row: Row) -> Scalar:
        """Of one row; raises RowError."""


class Join(Rule):
    """Fields as texts, one behind the other."""

    join: Annotated[list[FieldName], Field(min_length=1, max_length=20)]
    with_: str = Field(" ", alias="with", max_length=20)

    @property
    def needs(self) -> list[str]:
        """All of them."""
        return self.join

    def kind(self, kinds: Kinds) -> Kind:  # noqa: ARG002  whatever they hold
        """A text."""
        return "text"

    def value(self, row: Row) -> Scalar:
        """Those that are there; with none there is none."""
        return self.with_.join(str(row[name]) for name in self.join if row[name] is not None) or None


class Case(Rule):
    """A text in small or capital letters."""

    from_: FieldName = Field(alias="from")
    case: Literal["lower", "upper"]

    @property
    def needs(self) -> list[str]:
        """The one."""
        return [self.from_]

    def kind(self, kinds: Kinds) -> Kind:
        """A text, of a text."""
        if kinds[self.from_] != "text":
            raise ValueError(f"{self.from_} is no text, so it has no case")
        return "text"

    def value(self, row: Row) -> Scalar:
        """In those letters."""
        text = row[self.from_]
        return text if not isinstance(text, str) else text.lower() if self.case == "lower" else text.upper()


class Arithmetic(Rule):
    """A number of several."""

    @property
    @abstractmethod
    def terms(self) -> Sequence[str | float]:
        """Fields and numbers."""

    @abstractmethod
    def of(self, numbers: Sequence[float]) -> float:
        """What comes of them."""

    @property
    def needs(self) -> list[str]:
        """Those of the terms that are fields."""
        return [term for term in self.terms if isinstance(term, str)]

    def kind(self, kinds: Kinds) -> Kind:
        """An integer, if all of them are."""
        if wrong := [name for name in self.needs if kinds[name] not in NUMBERS]:
            raise ValueError(f"{wrong[0]} is no number, so it cannot be calculated with")
        whole = all(kinds[term] == "integer" if isinstance(term, str) else isinstance(term, int) for term in self.terms)
        return "integer" if whole else "number"

    def value(self, row: Row) -> Scalar:
        """Of the row's numbers."""
        numbers = list[float]()
        for term in self.terms:
            number = row[term] if isinstance(term, str) else term
            if not isinstance(number, int | float):
                return None
            numbers.append(number)
        try:
            result = self.of(numbers)
            fits = -LARGEST <= result <= LARGEST if isinstance(result, int) else math.isfinite(result)
        except OverflowError:
            fits = False
        if not fits:
            raise RowError(f"what comes of {', '.join(map(str, self.terms))} is too large")
        return result


class Sum(Arithmetic):
    """All of them together."""

    sum: Terms

    @property
    def terms(self) -> Sequence[str | float]:
        """What is added up."""
        return self.sum

    def of(self, numbers: Sequence[float]) -> float:
        """The sum."""
        return sum(numbers)


class Product(Arithmetic):
    """Each by the next."""

    product: Terms

    @property
    def terms(self) -> Sequence[str | float]:
        """What is multiplied."""
        return self.product

    def of(self, numbers: Sequence[float]) -> float:
        """The product."""
        return math.prod(numbers)


class Constant(Rule):
    """The same for each row."""

    constant: Annotated[str, Field(max_length=1_000)] | bool | int | float

    @property
    def needs(self) -> list[str]:
        """Nothing."""
        return []

    def kind(self, kinds: Kinds) -> Kind:  # noqa: ARG002  it needs none
        """What it is."""
        match self.constant:
            case bool():
                return "boolean"
            case int():
                return "integer"
            case float():
                return "number"
            case _:
                return "text"

    def value(self, row: Row) -> Scalar:  # noqa: ARG002  as above
        """It."""
        return self.constant
