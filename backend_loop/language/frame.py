"""One clause as it was read: who is meant, and what is wanted of them. Pure; what a clause leaves out it may borrow."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Literal

VAGUE: Final = frozenset({"level", "size", "more"})
"""Aspects by which one says more or less of whatever a device has."""


class Verb(StrEnum):
    """What is wanted."""

    ON = "on"
    OFF = "off"
    OPEN = "open"
    CLOSE = "close"
    LOCK = "lock"
    UNLOCK = "unlock"
    SET = "set"
    CHANGE = "change"
    LOOK = "look"
    PLAY = "play"
    PAUSE = "pause"
    SCENE = "scene"
    BARE = "bare"


@dataclass(frozen=True, slots=True)
class Frame:
    """What one clause says; None: it does not say.

    Attributes:
        name: of a device, folded.
        area: id of the area.
        kind: of devices (``light``); ``everything`` for all of them.
        borrowed: it said nothing but a name, and is told what its neighbour is told.
        lent: the area is that of a clause beside it, which the speaker may not have had in mind.
        every: all that fit are meant; ``loosely``: unless the clause stands beside others, which are all of it.
        here: where it was said is meant.
        it: what was spoken of before is meant: `one` thing, or `many`.
        aspect: the value that it is about (``brightness``).
        number, percent, degrees, level, mode: what the value is to be.
        change: more (``+``) or less (``-``) of it, by the number where there is one.
        closed: the number is how far it is to be closed.
        moved: it is something that can be raised and lowered.
        stopped: it is to stop what it does; that is `OFF` of what can be off, and does not close a blind.
        state: what is asked to be so.
        short: it says no verb: "the lamp off", which after a question is one too.
        asked: it begins a question, which goes on in the next clause.
        scene: id of the scene.
        but: what is left out of all.
        own_kind, own_area: of the device that has the name.
    """

    verb: Verb
    name: str | None = None
    area: str | None = None
    kind: str | None = None
    borrowed: bool = False
    lent: bool = False
    every: bool = False
    loosely: bool = False
    here: bool = False
    it: Literal["one", "many"] | None = None
    aspect: str | None = None
    number: float | None = None
    percent: bool = False
    degrees: bool = False
    level: str | None = None
    mode: str | None = None
    change: str | None = None
    closed: bool = False
    moved: bool = False
    stopped: bool = False
    state: str | None = None
    short: bool = False
    asked: bool = False
    scene: str | None = None
    but: "tuple[Frame, ...]" = ()
    own_kind: str | None = None
    own_area: str | None = None

    @property
    def thing(self) -> bool:
        """It says which device or which kind."""
        return self.name is not None or self.kind is not None

    @property
    def place(self) -> str | None:
        """The area that it speaks of, also by the name of a device."""
        return self.area or self.own_area


_STATES: Final = {Verb.ON: "on", Verb.OFF: "off", Verb.OPEN: "open", Verb.CLOSE: "closed"}
_TELLS_KIND: Final = {Verb.LOCK: "lock", Verb.UNLOCK: "lock", Verb.PLAY: "music", Verb.PAUSE: "music"}
_NOTHING: Final = Frame(Verb.BARE)
_COMMANDED: Final = ("verb", "aspect", "number", "percent", "degrees", "level", "mode", "change", "closed", "state")


def together(frames: list[Frame]) -> list[Frame] | None:
    """The clauses of one utterance, each with what it borrows of its neighbours; None: one has nobody to borrow from.

    A bare name is told what the clause before it tells, or the one after it: "turn off the hall light and the lamp",
    "kitchen and hall lights off". A clause without a device is about the one before it: "… and set it to 24".
    """
    if len(frames) > 1:
        frames = [replace(frame, every=frame.every and not frame.loosely) for frame in frames]
    if frames and (frames[0].asked or frames[0].state is not None):
        frames = [as_question(frame) if frame.short or frames[0].asked else frame for frame in frames]
    frames = _with_verbs(frames)
    if any(frame.verb == Verb.BARE for frame in frames):
        return None
    return _with_things(frames)


def go_together(frames: Iterable[Frame]) -> bool:
    """What nothing stands between: each says something, or all together name several: "the kitchen, the hall …".

    All ask or all command: what goes on without a pause after a question is of the question.
    """
    frames = list(frames)
    if not (all(map(_goes_alone, frames)) or all(frame.verb == Verb.BARE for frame in frames)):
        return False
    return len({frame.verb == Verb.LOOK for frame in frames if frame.verb != Verb.BARE}) <= 1


def _goes_alone(frame: Frame) -> bool:
    """It says what is wanted, or nothing but a room: "in the kitchen …"."""
    return frame.verb != Verb.BARE or (not frame.thing and frame.area is not None)


def as_question(frame: Frame) -> Frame:
    """What a few words ask that would be a command alone: of "are the hall and kitchen lights on" the end."""
    if frame.verb in (Verb.BARE, Verb.LOOK):
        return frame
    if not frame.short:
        return _NOTHING
    return replace(frame, verb=Verb.LOOK, state=_STATES[frame.verb])


def _with_verbs(frames: list[Frame]) -> list[Frame]:
    given = list[Frame]()
    for n, frame in enumerate(frames):
        before = given[-1] if given else None
        if frame.verb == Verb.BARE and before is not None and before.verb not in (Verb.BARE, Verb.SCENE):
            if not frame.thing and before.thing and before.area is None and not before.every:
                for at in range(len(given)):  # "close the blinds, in the kitchen"; at the end it is said of all
                    if at == len(given) - 1 or (n == len(frames) - 1 and _nowhere(given[at])):
                        given[at] = replace(given[at], area=frame.area, here=frame.here)
                continue
            if not before.thing and before.area is None and (before.aspect or before.degrees or before.here):
                given[-1] = _of(before, frame)  # "brightness to 80, the study light"
                continue
            frame = replace(frame, **{part: getattr(before, part) for part in _COMMANDED}, borrowed=True)  # noqa: PLW2901  what follows is about it as completed
        given.append(frame)
    for n in range(len(given) - 2, -1, -1):
        if given[n].verb == Verb.BARE and given[n + 1].verb not in (Verb.BARE, Verb.SCENE):
            told = {part: getattr(given[n + 1], part) for part in _COMMANDED}
            given[n] = replace(given[n], **told, borrowed=True)
    return given


def _of(frame: Frame, who: Frame) -> Frame:
    """The same of somebody."""
    return replace(
        frame, name=who.name, kind=who.kind, area=who.area, here=who.here, every=who.every,
        own_kind=who.own_kind, own_area=who.own_area,
    )  # fmt: skip


def _with_things(frames: list[Frame]) -> list[Frame]:
    return _of_before(_of_after(frames))


def _of_after(frames: list[Frame]) -> list[Frame]:
    """From behind: "the kitchen and bedroom lights", "the light and AC in the hall"."""
    given = list(frames)
    for n in range(len(given) - 2, -1, -1):
        one, after = given[n], given[n + 1]
        if (
            not one.thing
            and one.area is not None
            and after.thing
            and one.verb == after.verb
            and (one.borrowed or not one.aspect)
        ):
            given[n] = replace(one, kind=after.kind or after.own_kind)
        elif _nowhere(one) and _may_share(one, after) and (n + 2 == len(given) or after.borrowed):
            given[n] = replace(one, area=after.area, lent=True)
    return given


def _of_before(frames: list[Frame]) -> list[Frame]:
    """What a clause leaves out that the one before it has said: "turn on the light and make it brighter"."""
    given = list(frames)
    for n, one in enumerate(given[1:], 1):
        before = given[n - 1]  # it may have borrowed itself
        if Verb.SCENE in (one.verb, before.verb):
            continue
        if not one.thing and _TELLS_KIND.get(one.verb) not in (None, before.kind, before.own_kind):
            continue  # "turn off the lights and lock up"
        if one.verb == Verb.LOOK and one.aspect is not None and one.area is not None and not one.thing:
            continue  # "unlock the door, and what's the temperature in the kitchen"
        if not one.thing and (one.area is None or before.area is None):
            area = before.area if one.area is None else one.area
            given[n] = replace(
                one, name=before.name, kind=before.kind, area=area, every=before.every, here=before.here,
                own_kind=before.own_kind, own_area=before.own_area,
            )  # fmt: skip
        elif not one.thing and (one.short or one.verb == before.verb) and one.area is not None and not one.aspect:
            given[n] = replace(one, kind=before.kind or before.own_kind)  # "the lights in the kitchen and the hall"
        elif _nowhere(one) and before.place is not None:
            given[n] = replace(one, area=before.place, lent=True)
    return given


def _may_share(one: Frame, after: Frame) -> bool:
    """The room that comes last is said of both: "turn off the light and close the blinds in the bedroom"."""
    both_act = Verb.LOOK not in (one.verb, after.verb) and Verb.SCENE not in (one.verb, after.verb)
    return after.area is not None and (one.verb == after.verb or (both_act and after.kind is not None))


def _nowhere(frame: Frame) -> bool:
    asks = frame.verb == Verb.LOOK and frame.aspect is not None and frame.name is None
    return (frame.kind is not None or asks) and frame.area is None and not frame.every and not frame.here
