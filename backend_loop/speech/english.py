"""How English sounds, about: phones by rule, and how far two rows of them are apart."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from backend_loop.speech.pronunciation import by_letter, by_rule, is_initials
from backend_loop.speech.tongue import words

_VOWELS: Final = frozenset(words("AA AE AH AO AW AY EH ER EY IH IY OW OY UW"))
_PAIRS: Final = "BP DT GK VF ZS MN LR WV"
_ALIKE: Final = frozenset(
    {*map(frozenset, words(_PAIRS)), frozenset(("ZH", "SH")), frozenset(("JH", "CH")), frozenset(("N", "NG"))}
    | {frozenset(("TH", other)) for other in "FTS"}
)
_SINGLE: Final = 0.2
"""A single word may differ in so much."""

_VOWEL, _NEAR = 0.3, 0.4
"""What it costs to take one vowel, or one consonant of a pair, for the other; anything else costs 1."""


_COMMANDS: Final = """
turn switch open close shut raise lower lock unlock play pause stop resume music volume brightness temperature humidity
degrees percent brighten cancel everything"""

_OTHERS: Final = """
a all an and any are at be been both by can could did do does down everywhere first for from half halfway have hey hi
how hello i i'd i'm if in is it it's its let like me mind mode more much my never no not now of off okay on one or other
our out over please put right say set so some sure tell thank thanks that the their them then there these they
this those to too under up us want was we what what's when where which who will with would yes you your everyone
everybody warm warmer cold colder hot cool cooler heat dry fan auto dim make change start bright brighter dark darker
locked unlocked closed full humid minutes good zero two three four five six seven eight nine ten eleven twelve thirteen
fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred after
before every except but time"""


class English:
    """Word by word."""

    language: Final = "en"
    commands: Final = words(_COMMANDS)
    others: Final = words(_OTHERS)

    def pieces(self, text: str) -> list[str]:
        """Words, and signs between them; in small letters, but initials."""
        return [
            piece if piece.isupper() and len(piece) > 1 else piece.lower()
            for piece in re.findall(r"[\w']+|[^\w\s]", text.replace("’", "'"))
        ]

    def joined(self, pieces: Sequence[str]) -> str:
        """A sentence of them."""
        return re.sub(r"\s+([,.!?;:%])", r"\1", " ".join(pieces))

    def is_word(self, piece: str) -> bool:
        """Whether it has a sound."""
        return piece[0].isascii() and piece[0].isalpha()

    def doubt(self, _piece: str) -> float:
        """What it costs to take a known word for just that: nothing."""
        return 0.0

    def variants(self, known: Sequence[str]) -> Iterable[tuple[str, ...]]:
        """Other forms of a known word: its words alone, one or many."""
        for word in known:
            yield from ((word,), (f"{word}s",), (word.removesuffix("s"),))

    def sound(self, pieces: Sequence[str]) -> tuple[str, ...]:
        """Phones, whatever the words: "bed room" sounds as "bedroom" does."""
        return tuple(phone for piece in pieces for phone in _phones(piece))

    def distance(self, one: Sequence[str], other: Sequence[str]) -> float:
        """From 0, the same, to 1: what has to be changed of the longer one."""
        longer = max(len(one), len(other))
        if not longer or abs(len(one) - len(other)) > longer / 3:
            return 1.0
        row = [float(at) for at in range(len(other) + 1)]
        for count, phone in enumerate(one, 1):
            before, row = row, [float(count)]
            for at, against in enumerate(other):
                row.append(min(before[at] + _apart(phone, against), before[at + 1] + 1, row[at] + 1))
        return row[-1] / longer

    def enough(self, meant: Sequence[str], far: float) -> bool:
        """Whether it is long enough to say that it is this: short words sound like a dozen others."""
        return far <= 0.1 or (len(self.sound(meant)) > 3 and (len(meant) > 1 or far <= _SINGLE))


def _apart(one: str, other: str) -> float:
    if one == other:
        return 0.0
    if one in _VOWELS and other in _VOWELS:
        return _VOWEL
    return _NEAR if frozenset((one, other)) in _ALIKE else 1.0


@lru_cache(maxsize=10_000)
def _phones(word: str) -> tuple[str, ...]:
    return tuple((by_letter(word) if is_initials(word) else by_rule(word)).split())
