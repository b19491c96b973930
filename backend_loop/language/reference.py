"""Whom "it" means: by what the command before was about. Pure.

Whoever says so has something of that command in mind. Where it may be one thing or another it is asked which; where it
can be none of them, the sentence is read as if nothing had been said before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from backend_loop.language import wishes
from backend_loop.language.amounts import Amount
from backend_loop.language.frame import Frame, Verb
from backend_loop.language.meaning import Wish
from backend_loop.language.things import Puzzle, Things, domain

NOBODY: Final[frozenset[str]] = frozenset()
_ONLY: Final[Mapping[Verb, frozenset[str]]] = {
    **dict.fromkeys((Verb.PLAY, Verb.PAUSE), frozenset({"media_player"})),
    **dict.fromkeys((Verb.OPEN, Verb.CLOSE), frozenset({"cover", "lock"})),
}
"""Of what is not named, the kinds that can be meant by some verbs, though others are told so by name."""


@dataclass(frozen=True, slots=True)
class Around:
    """What is known beside the words of an utterance.

    Attributes:
        area: where it was said.
        chosen: devices or areas that were the answer to a question about it.
        much: the answer to how much.
        last: what the command before was about, if that was only just.
        again: it goes on with that by a word for it ("again"), wherever it is said.
        felt: it says how it is where the speaker is: "it" may be that.
    """

    area: str | None = None
    chosen: frozenset[str] = NOBODY
    much: Amount | None = None
    last: tuple[Wish, ...] = ()
    again: bool = False
    felt: bool = False


def referred(frame: Frame, around: Around, things: Things) -> tuple[Frame, list[str]]:
    """A clause and the devices, of the answer or of the command before, that it means without a word for them.

    No devices: it means others.

    Raises:
        Puzzle: one cannot tell which of them, or whether not rather the one where it is said.
    """
    whole = frame.kind == "everything" and frame.it is not None  # 都关了: all that there is, or both of them
    if not whole and (frame.thing or frame.area is not None or frame.here or frame.every):
        return frame, []
    told = replace(frame, kind=None, every=False) if whole else frame
    if chosen := [one for one in things.entries if one in around.chosen and _fits(told, one, things)]:
        return told, chosen
    told = _going_on(told, around.last)
    fit = [one for one in _spoken_of(told, around.last, things) if _fits(told, one, things)]
    if not fit or (whole and len(fit) == 1):
        return frame, []
    if len(fit) > 1 and frame.it != "many" and not _alike(fit, around.last):
        raise Puzzle("ambiguous", fit)
    unsure = frame.it is None or (_bare_number(told) and domain(fit[0]) != "climate")
    if (around.felt or (unsure and not around.again)) and (here := _here(told, fit, around.area, things)):
        raise Puzzle("ambiguous", [*fit, *here])
    return told, fit


def _here(frame: Frame, fit: list[str], area: str | None, things: Things) -> list[str]:
    """What else may be meant, as it is in the room where it is said, and nothing of the command before is."""
    if area is None or any(things.entries[one].area == area for one in fit):
        return []
    try:
        return [one for one in things.meant(frame, area) if things.entries[one].area == area]
    except Puzzle:
        return []


def _bare_number(frame: Frame) -> bool:
    """It may be degrees."""
    return frame.verb == Verb.SET and frame.number is not None and not (frame.percent or frame.degrees or frame.aspect)


def _going_on(frame: Frame, last: Sequence[Wish]) -> Frame:
    """The clause, in which "more" of what was made less is still less; of what was not, it says nothing."""
    if frame.aspect != "more" or frame.degrees:  # "one degree more" is warmer, whatever was before
        return frame
    told = {(str(wish.payload.get("action")), _less(wish)) for wish in last}
    action, less = told.pop() if len(told) == 1 else ("", False)
    aspect = action.removeprefix("change_")
    change = frame.change if not less else "+" if frame.change == "-" else "-"
    return replace(frame, aspect="none" if aspect == action else aspect, change=change)


def _less(wish: Wish) -> bool:
    value = wish.payload.get("value")
    return isinstance(value, int | float) and value < 0


def _spoken_of(frame: Frame, last: Sequence[Wish], things: Things) -> list[str]:
    """The devices that the command before was about; who asks how warm a room is then means what makes it so."""
    found = entities(last, things)
    if frame.aspect == "temperature" or frame.degrees:
        rooms = {things.entries[one].area for one in found if domain(one) == "sensor"} - {None}
        found += [one for one, entry in things.entries.items() if domain(one) == "climate" and entry.area in rooms]
    return list(dict.fromkeys(found))


def entities(last: Iterable[Wish], things: Things) -> list[str]:
    """The devices of a command that are still at home, as often as it was about them."""
    return [wish.entity for wish in last if wish.entity is not None and wish.entity in things.entries]


def _alike(some: Iterable[str], last: Sequence[Wish]) -> bool:
    """Of one kind, and told the same: "the kitchen light and the hall light" are "it" as well."""
    told = [
        (domain(one), tuple(str({**wish.payload, "entity": ""}) for wish in last if wish.entity == one)) for one in some
    ]
    return len(set(told)) == 1


def _fits(frame: Frame, entity: str, things: Things) -> bool:
    """It can be told that, or shows it; nobody asks of a device how warm "it" is, or plays or closes a lamp."""
    if domain(entity) not in _ONLY.get(frame.verb, (domain(entity),)):
        return False
    if frame.verb == Verb.LOOK:
        if frame.it is None or frame.state is None:
            return False
        try:
            return bool(wishes.looks(frame, [entity], things))
        except Puzzle:
            return False
    try:
        return bool(wishes.acts(frame, [entity]))
    except Puzzle as puzzle:
        return puzzle.reason == "relative" or puzzle.limits is not None
