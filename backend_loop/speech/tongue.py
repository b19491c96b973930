"""What a language has to know of itself so that what was heard can be put right."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol


class Tongue(Protocol):
    """One language: its pieces are what sentences are made of, and what changes replace."""

    @property
    def language(self) -> str:
        """As inventories name it."""

    @property
    def commands(self) -> tuple[str, ...]:
        """What is said of devices in all homes, besides their names."""

    @property
    def others(self) -> tuple[str, ...]:
        """What is left as it is, though it may sound like a name."""

    def pieces(self, text: str) -> list[str]:
        """Words or signs, and what is between them."""

    def joined(self, pieces: Sequence[str]) -> str:
        """A sentence of them."""

    def is_word(self, piece: str) -> bool:
        """Whether it has a sound."""

    def doubt(self, piece: str) -> float:
        """What it costs to take a known word for just that."""

    def variants(self, known: Sequence[str]) -> Iterable[tuple[str, ...]]:
        """Other forms of what is known."""

    def sound(self, pieces: Sequence[str]) -> Sequence[Any]:
        """How they sound."""

    def distance(self, one: Sequence[Any], other: Sequence[Any]) -> float:
        """How far two sounds are apart, from 0 to 1."""

    def enough(self, meant: Sequence[str], far: float) -> bool:
        """Whether so short a name may be meant by what sounds so far from it."""


def words(text: str) -> tuple[str, ...]:
    """What stands between spaces."""
    return tuple(text.split())
