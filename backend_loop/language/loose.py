"""A clause whose words are in no order that a sentence has: "AC study on". Pure.

Each of its words must be one that is known, and none may speak against another: what is left over may be a "not".
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hassil import Intents
from hassil.intents import TextSlotList
from hassil.sample import sample_expression

from backend_loop.language.frame import Frame, Verb
from backend_loop.language.names import NameBook
from backend_loop.language.numbers import number
from backend_loop.language.text import chinese

LONGEST: Final = 80
"""Characters of such a clause; who says more says it in sentences."""

_LISTS: Final = ("filler", "act", "quantity", "everywhere", "kind", "aspect", "level", "part", "mode", "unit", "change")
_AMOUNT: Final = re.compile(r"-?\d+(?:\.\d+)?%?")
_VERBS: Final[Mapping[frozenset[str], Verb]] = {
    frozenset({"on"}): Verb.ON,
    frozenset({"off"}): Verb.OFF,
    frozenset({"open"}): Verb.OPEN,
    frozenset({"close"}): Verb.CLOSE,
    frozenset({"close", "down"}): Verb.CLOSE,
    frozenset({"open", "up"}): Verb.OPEN,
    frozenset({"lock"}): Verb.LOCK,
}
_COVER: Final[Mapping[frozenset[str], Verb]] = {frozenset({"up"}): Verb.OPEN, frozenset({"down"}): Verb.CLOSE}
_SLOTS: Final = ("level", "mode", "change", "aspect", "number")


@dataclass(frozen=True)
class Words:
    """What single words mean in one language, whatever stands beside them."""

    known: Mapping[str, tuple[str, str]]
    longest: int

    def read(self, text: str, book: NameBook) -> list[Frame] | None:
        """What all words together say; None: a word is unknown, or they do not go together."""
        pieces = self._pieces(text, book) if len(text) <= LONGEST else None
        return _frames(pieces, book) if pieces else None

    def _pieces(self, text: str, book: NameBook) -> list[tuple[str, str]] | None:
        """The words by what they are, the longest first: ``("area", "hall")``."""
        spans = {(span.start, span.end): span.text for span in book.spans(text)}
        found, at = list[tuple[str, str]](), 0
        while at < len(text):
            if text[at] in " ,，、":
                at += 1
                continue
            step = next(self._at(text, at, spans, book), None)
            if step is None:
                return None
            end, slot, value = step
            found.append((slot, value))
            at = end
        return found

    def _at(
        self, text: str, at: int, spans: Mapping[tuple[int, int], str], book: NameBook
    ) -> Iterator[tuple[int, str, str]]:
        if amount := _AMOUNT.match(text, at):
            yield amount.end(), "number", amount[0]
        for end in range(min(len(text), at + max(self.longest, *book.lengths)), at, -1):
            if (name := spans.get((at, end))) is not None and name not in book.scenes:
                yield (end, "area", book.areas[name]) if name in book.areas else (end, "name", name)
            whole = chinese(text[at]) or end == len(text) or not text[end].isalnum()
            if whole and (known := self.known.get(text[at:end])) is not None:
                yield end, *known


def words_of(own: Intents) -> Words:
    """The words of a language's own lists."""
    known = dict[str, tuple[str, str]]()
    for slot in _LISTS:
        entries = own.slot_lists.get(slot)
        for value in entries.values if isinstance(entries, TextSlotList) else ():
            for said in sample_expression(value.text_in):
                known.setdefault(" ".join(said.split()), (slot, str(value.value_out)))
    return Words(known, max(map(len, known), default=0))


def _frames(pieces: Sequence[tuple[str, str]], book: NameBook) -> list[Frame] | None:
    given = {
        slot: [value for kind, value in pieces if kind == slot] for slot in ("name", "area", "kind", "act", *_SLOTS)
    }
    if any(len(set(given[slot])) > 1 for slot in _SLOTS):
        return None
    told = _told({slot: values[0] for slot, values in given.items() if slot in _SLOTS and values}, given["act"], pieces)
    every = any(slot in ("quantity", "everywhere") for slot, _ in pieces) or "everything" in given["kind"]
    frames = [replace(frame, every=every) for frame in _things(given["name"], given["area"], given["kind"], book)]
    if told is None or not frames or (len(frames) > 1 and told.verb != Verb.BARE):
        return None
    verbs = [_verb(told, frame, frozenset(given["act"])) for frame in frames]
    if any(verb is None for verb in verbs):
        return None
    return [
        replace(
            told, verb=verb or told.verb, name=one.name, area=one.area, kind=one.kind, every=every,
            own_kind=one.own_kind, own_area=one.own_area,
        )
        for verb, one in zip(verbs, frames, strict=True)
    ]  # fmt: skip


def _things(names: Sequence[str], areas: Sequence[str], kinds: Sequence[str], book: NameBook) -> list[Frame]:
    """Who is meant: one thing, one in several rooms, or several."""
    things = [Frame(Verb.BARE, name=name, own_kind=book.kinds[name], own_area=book.places[name]) for name in names]
    things += [Frame(Verb.BARE, kind=kind) for kind in dict.fromkeys(kinds)]
    if len(things) == 1 and areas:
        one = things[0]
        if one.own_area is None:
            return [replace(one, area=area) for area in areas]
        kind = one.own_kind
        return [*(Frame(Verb.BARE, area=area, kind=kind) for area in areas if area != one.own_area), one]
    if len(areas) == 1:
        things = [one if one.own_area is not None else replace(one, area=areas[0]) for one in things]
    return things if len(areas) <= 1 else []


def _told(slots: Mapping[str, str], acts: Sequence[str], pieces: Sequence[tuple[str, str]]) -> Frame | None:
    """What is wanted, whoever is meant; a verb of None is still open: ``up`` and ``down`` depend on the thing."""
    amount, change = slots.get("number"), slots.get("change")
    frame = Frame(
        Verb.BARE,
        aspect=slots.get("aspect"),
        number=number(amount.rstrip("%")) if amount is not None else None,
        percent=amount is not None and amount.endswith("%"),
        degrees=any(slot == "unit" for slot, _ in pieces),
        level=slots.get("level"),
        mode=slots.get("mode"),
    )
    toward = "to" in acts
    acts = [act for act in acts if act != "to"]
    if change is not None:
        if acts or toward or frame.mode is not None or frame.number is not None:  # "40% bright" is no more of it
            return None
        return replace(frame, verb=Verb.CHANGE, aspect=change[:-1] or frame.aspect, change=change[-1])
    if frame.number is None and frame.level is None and frame.mode is None:
        return frame if frame.aspect is None else None
    if acts and not (toward and set(acts) <= {"up", "down"}):
        return None
    return replace(frame, verb=Verb.SET)


def _verb(told: Frame, one: Frame, acts: frozenset[str]) -> Verb | None:
    if told.verb != Verb.BARE:
        return told.verb
    cover = "cover" in (one.kind, one.own_kind)
    return (_VERBS.get(acts) if acts else Verb.BARE) or (_COVER.get(acts) if cover else None)
