"""Who is meant: from what a clause says to the devices of a home, or to the question which of them. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from backend_loop.language.frame import VAGUE, Frame, Verb
from backend_loop.language.meaning import Problem, Reason
from backend_loop.language.names import NameBook, spoken
from shared.home import Entry, Inventory

_POWERED: Final = frozenset({"light", "climate", "media_player", "switch", "fan"})
_DOMAINS: Final[Mapping[str, frozenset[str]]] = {
    "speaker": frozenset({"media_player"}),
    "music": frozenset({"media_player"}),
    "switch": frozenset({"switch"}),
    "contact": frozenset({"sensor", "binary_sensor"}),
    "everything": _POWERED,
}
_NO_AIR: Final = re.compile(r"contact|door|window|motion|presence|leak|smoke|power|energy|门|窗|人体|烟|漏水|功率")
_CONTACT: Final = re.compile(r"contact|door|window|门|窗")
_WORDS: Final = {"temperature": re.compile(r"temp|thermo|air|温|空气"), "humidity": re.compile(r"humid|air|湿|空气")}
FEW: Final = 3
"""Devices of a kind that are few enough to be offered all."""

_NAMED_KINDS: Final[Mapping[str, re.Pattern[str]]] = {
    "light": re.compile(r"light|lamp|灯"),
    "climate": re.compile(r"\bacs?\b|air ?con|heater|heating|空调|冷气|暖气"),
    "cover": re.compile(r"blind|curtain|shade|shutter|drape|窗帘|百叶"),
    "lock": re.compile(r"door|lock|gate|门|锁"),
    "media_player": re.compile(r"speaker|stereo|radio|music|音箱|音响|喇叭"),
}
_OF_LOCK: Final = re.compile(r"(?<=.)(?: lock|锁)$", re.IGNORECASE)
_KIND_OF: Final[Mapping[str, str]] = {
    "temperature": "climate",
    "mode": "climate",
    "brightness": "light",
    "volume": "speaker",
    "position": "cover",
}

_KIND_TOLD: Final = {Verb.PLAY: "music", Verb.PAUSE: "music", Verb.LOCK: "lock", Verb.UNLOCK: "lock"}


class Puzzle(Exception):  # noqa: N818  an answer to the speaker, not a fault of the program
    """It does not say who is meant, or names nobody here."""

    def __init__(
        self,
        problem: Problem,
        candidates: Iterable[str] = (),
        unknown: str | None = None,
        limits: tuple[str, float, float] | None = None,
        reason: Reason | None = None,
    ) -> None:
        """Candidates are entities; of `which_area` the areas. ``limits``: of an action whose value is beyond them."""
        super().__init__(problem)
        self.problem, self.candidates, self.unknown, self.limits = problem, list(candidates), unknown, limits
        self.reason = reason


@dataclass(frozen=True)
class Things:
    """The devices of a home, and what they are called in one language."""

    home: Inventory
    book: NameBook
    language: str

    @cached_property
    def _spoken(self) -> Mapping[str, str]:
        parts = [(area.id, area.names) for area in self.home.areas]
        parts += [(entry.entity, entry.names) for entry in self.home.devices]
        parts += [(f"scene:{scene.id}", scene.names) for scene in self.home.scenes]
        return {key: named[0] for key, names in parts if (named := spoken(names, self.language))}

    def spoken(self, key: str) -> str:
        """What an entity, an area or ``scene:<id>`` is called when it is spoken of."""
        if key.startswith("lock.") and (name := self._spoken.get(key)):
            return _OF_LOCK.sub("", name) or name  # it is the door that is locked
        return self._spoken.get(key) or re.split(r"[.:]", key)[-1].replace("_", " ")

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """By entity, in the order of the inventory."""
        return {entry.entity: entry for entry in self.home.devices}

    def meant(self, frame: Frame, area: str | None, chosen: frozenset[str] = frozenset()) -> list[str]:
        """The devices that a clause is about.

        Args:
            frame: the clause.
            area: where it was said.
            chosen: devices or areas that were the answer to a question about it.

        Raises:
            Puzzle: none, or one cannot tell which.
        """
        if frame.name is not None:
            found = [entity for entity in self.entries if entity in self.book.devices[frame.name]]
        else:
            if (kind := _kind(frame)) is None:
                raise Puzzle("not_understood")
            found = self.of_kind(kind, frame.aspect if frame.verb == Verb.LOOK else None)
        place = frame.area or (area if frame.here else None)
        if frame.here and place is None:
            raise Puzzle("which_area", self._areas(found))
        within = [entity for entity in found if place is None or self.entries[entity].area == place]
        if not within and frame.lent:
            within = found
        if not within and frame.verb == Verb.LOOK and frame.aspect == "temperature":  # no sensor: what is it set to?
            within = self._all(lambda entry: _domain(entry) == "climate" and entry.area == place)
        if not within:
            raise Puzzle("no_such_device", self._instead(frame, found), frame.name)
        left_out = {entity for but in frame.but for entity in self.meant(_like(but, frame), area)}
        within = [entity for entity in within if entity not in left_out]
        if len(within) <= 1 or frame.every:
            return within
        return self._one_place(frame, within, area, chosen)

    def _one_place(self, frame: Frame, within: list[str], area: str | None, chosen: frozenset[str]) -> list[str]:
        """All of a kind in one room, but not in several, unless that was said."""
        if picked := [entity for entity in within if entity in chosen or self.entries[entity].area in chosen]:
            return picked
        if frame.area is None and (near := [one for one in within if self.entries[one].area == area is not None]):
            within = near
        if len(within) == 1:
            return within
        areas = {self.entries[entity].area for entity in within}
        if len(areas) > 1:
            if frame.verb == Verb.LOOK and frame.state is not None:
                return within  # looking at all of them harms nobody
            if None in areas:
                raise Puzzle("ambiguous", within)
            raise Puzzle("which_area", self._areas(within))
        if frame.name is not None:
            raise Puzzle("ambiguous", within)
        return within

    def _areas(self, entities: Iterable[str]) -> list[str]:
        here = {self.entries[entity].area for entity in entities}
        return [area.id for area in self.home.areas if area.id in here]

    def of_kind(self, kind: str, aspect: str | None = None) -> list[str]:
        """All that are called so; of the air, what tells that aspect."""
        if kind == "air" or (aspect in _WORDS and kind == "climate"):
            air = self._air(aspect or "temperature")
            return air or self._all(lambda entry: _domain(entry) == "climate" and aspect == "temperature")
        if kind == "opening":
            return self._openings() or self._all(lambda entry: _domain(entry) == "lock")
        if kind == "whole":
            return [*self._all(lambda entry: _domain(entry) in _POWERED), *self._openings()]
        domains = _DOMAINS.get(kind, frozenset({kind}))
        return self._all(lambda entry: _domain(entry) in domains)

    def _openings(self) -> list[str]:
        """What shows whether it is open: blinds, and what is fixed to doors and windows."""
        return self._all(
            lambda entry: (
                _domain(entry) == "cover"
                or (_domain(entry) in ("sensor", "binary_sensor") and _CONTACT.search(_called(entry)) is not None)
            )
        )

    def _air(self, aspect: str) -> list[str]:
        sensors = self._all(lambda entry: _domain(entry) == "sensor" and not _NO_AIR.search(_called(entry)))
        told = [one for one in sensors if aspect in _WORDS and _WORDS[aspect].search(_called(self.entries[one]))]
        return told or sensors

    def contact(self, name: str | None, lock: str) -> str | None:
        """The sensor that tells whether the door of a lock is open."""
        area = self.entries[lock].area
        contacts = self._all(lambda entry: _domain(entry) in ("sensor", "binary_sensor") and entry.area == area)
        contacts = [entity for entity in contacts if _NO_AIR.search(_called(self.entries[entity]))]
        own = [one for one in contacts if one.partition(".")[2] == lock.partition(".")[2]]
        said = [one for one in contacts if name and any(name in said for said in _names(self.entries[one]))]
        return next(iter([*own, *said]), None)

    def _all(self, fits: Callable[[Entry], bool]) -> list[str]:
        return [entry.entity for entry in self.home.devices if fits(entry)]

    def _instead(self, frame: Frame, found: list[str]) -> list[str]:
        if found:
            return found[:5]
        kind = _kind(frame)
        return self.near(
            frame.name or kind or "", self._all(lambda entry: frame.area is not None and entry.area == frame.area)
        )

    def near(self, what: str, among: Iterable[str] = ()) -> list[str]:
        """Devices whose names are like this; else those of the kind that it names, unless they are many."""
        kind = next((kind for kind, said in _NAMED_KINDS.items() if said.search(what)), None)
        alike = self._all(lambda entry: kind is None or _domain(entry) == kind)
        among = [one for one in among or alike if one in alike]
        if near := self.book.nearest(what, among):
            return near
        return alike if kind is not None and len(alike) <= FEW else []


def domain(entity: str) -> str:
    """The kind that an entity's id begins with."""
    return entity.partition(".")[0]


def _domain(entry: Entry) -> str:
    return domain(entry.entity)


def _names(entry: Entry) -> list[str]:
    return [name.casefold() for names in entry.names.values() for name in names]


def _called(entry: Entry) -> str:
    return " ".join([entry.entity, *_names(entry)])


def _kind(frame: Frame) -> str | None:
    """The kind that is meant where none is named: "set the bedroom to 20 degrees"."""
    kind = frame.kind
    if kind in ("everything", "whole"):
        kind = _all_that(frame)
    if kind is None and frame.degrees and frame.aspect in VAGUE:
        kind = "climate"  # "two degrees higher"
    elif kind is None and frame.aspect is not None:
        kind = "climate" if frame.aspect == "humidity" else _KIND_OF.get(frame.aspect)
    elif kind is None and (frame.degrees or frame.mode is not None):
        kind = "climate"
    elif kind is None and frame.verb in _KIND_TOLD:
        kind = _KIND_TOLD[frame.verb]
    elif kind is None and frame.number is not None:
        if not frame.percent:
            kind = "climate"  # "set it to 22"
        elif frame.area is not None:
            kind = "light"  # "the kitchen to 30 %"; "it" may be a blind as well
    elif kind is None and frame.area is not None and (frame.level or frame.verb in (Verb.ON, Verb.OFF)):
        kind = "light"
    return kind


def _all_that(frame: Frame) -> str:
    """Of everything what can be told that: nobody closes a lamp, or asks whether an air conditioner is open."""
    if frame.verb in (Verb.OPEN, Verb.CLOSE):
        return "cover"
    if frame.verb == Verb.LOCK or frame.state in ("locked", "unlocked"):
        return "lock"
    if frame.state in ("open", "closed"):
        return "opening"
    return _KIND_OF.get(frame.aspect or "", frame.kind or "everything")  # "dim everything to 10 percent"


def _like(but: Frame, frame: Frame) -> Frame:
    """What is left out is of the kind that was named: "all lights but the bedroom"."""
    kind = but.kind if but.thing else frame.kind
    return replace(but, verb=frame.verb, kind=kind, every=True, aspect=frame.aspect, but=())
