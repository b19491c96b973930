"""A home's names, found in what somebody said. Pure.

Only the names that are in the sentence are handed to the grammar: how long it takes does not grow with the home.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Final

from backend_loop.language.numbers import digits
from backend_loop.language.text import chinese, fold
from shared.home import Inventory

CANDIDATES: Final = 5
ALIKE: Final = 0.85
"""From this likeness of 1 on two names may be one that was misheard; "garage light" and "kitchen light" have 0.64."""


@dataclass(frozen=True, slots=True)
class Span:
    """A name in a text: where, and what it may be the name of."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class NameBook:
    """Who is called what, in one language first and in all others too: families mix them."""

    areas: Mapping[str, str]
    devices: Mapping[str, frozenset[str]]
    kinds: Mapping[str, str]
    """Of the devices of a name."""
    places: Mapping[str, str | None]
    """The area of the one device of a name."""
    scenes: Mapping[str, str]
    phrases: Mapping[str, str]
    lengths: tuple[int, ...] = field(repr=False)

    def spans(self, text: str) -> list[Span]:
        """All areas, devices and scenes named in a folded text, the overlapping ones too."""
        found = []
        for start in range(len(text)):
            if start and not _edge(text, start):
                continue
            for length in self.lengths:
                end = start + length
                if end > len(text):
                    break
                said = text[start:end]
                if (said in self.devices or said in self.areas or said in self.scenes) and _edge(text, end):
                    found.append(Span(start, end, said))
        return found

    def nearest(self, what: str, among: Iterable[str]) -> list[str]:
        """Of these entities the ones whose names may have been misheard for what was said, the best first."""
        scores = dict.fromkeys(among, 0.0)
        for name, entities in self.devices.items():
            score = SequenceMatcher(None, what, name).ratio()
            for entity in entities & scores.keys():
                scores[entity] = max(scores[entity], score)
        best = sorted(scores, key=lambda entity: (-scores[entity], entity))[:CANDIDATES]
        return [entity for entity in best if scores[entity] >= ALIKE]


def outermost(spans: Iterable[Span]) -> Iterator[Span]:
    """The longest names, none within or across another."""
    end = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if span.start >= end:
            end = span.end
            yield span


def book(home: Inventory, language: str, but: frozenset[str] = frozenset()) -> NameBook:
    """The names of a home. ``but``: words for a kind of device, which are nobody's own name."""
    areas, devices = dict[str, str](), dict[str, set[str]]()
    for area in home.areas:
        for said in _ways([*spoken(area.names, language), area.id.replace("_", " ")], language):
            areas.setdefault(said, area.id)
    for entry in home.devices:
        for said in _ways(spoken(entry.names, language), language):
            if said not in but:
                devices.setdefault(said, set()).add(entry.entity)
    scenes = {
        fold(name, language): scene.id for scene in reversed(home.scenes) for name in spoken(scene.names, language)
    }
    phrases = {
        fold(said, language): scene.id for scene in reversed(home.scenes) for said in spoken(scene.phrases, language)
    }
    for whole in [said for said in areas if " " in said and said.isascii()]:  # "livingroom"
        joined = whole.replace(" ", "")
        areas[joined] = areas[whole]
        devices |= {said.replace(whole, joined): of for said, of in devices.items() if whole in said}
    for names in (areas, devices, scenes, phrases):
        names.pop("", None)
    lengths = sorted({len(name) for names in (areas, devices, scenes) for name in names})
    kinds = {name: min(entities).partition(".")[0] for name, entities in devices.items()}
    where = {entry.entity: entry.area for entry in home.devices}
    places = {name: where[next(iter(of))] if len(of) == 1 else None for name, of in devices.items()}
    named = {name: frozenset(of) for name, of in devices.items()}
    return NameBook(areas, named, kinds, places, scenes, phrases, tuple(lengths))


def spoken(names: Mapping[str, list[str]], language: str) -> list[str]:
    """All names, those of this language first, then those of its family, then the others."""
    family = language.split("-", maxsplit=1)[0]
    order = sorted(names, key=lambda tag: (tag != language, tag.split("-")[0] != family))
    return [name for tag in order for name in names[tag]]


def _ways(names: Iterable[str], language: str) -> Iterator[str]:
    """Each as it is written, and with its numbers as digits: "lamp two" is "lamp 2"."""
    for name in names:
        said = fold(name, language)
        yield said
        yield digits(said, language)


def _edge(text: str, at: int) -> bool:
    """A word may begin or end here: between signs it always may, within a word of letters it may not."""
    if at in (0, len(text)):
        return True
    before, after = text[at - 1], text[at]
    return chinese(before) or chinese(after) or not (before.isalnum() and after.isalnum())
