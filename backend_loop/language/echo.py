"""What "the bedroom too" wants: what the command before told somebody else. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from backend_loop.language.frame import Frame, Verb
from backend_loop.language.meaning import Wish
from backend_loop.language.reference import Around, entities
from backend_loop.language.things import Things, domain

_VERBS: Final[Mapping[str, Verb]] = {
    "turn_on": Verb.ON,
    "turn_off": Verb.OFF,
    "open": Verb.OPEN,
    "close": Verb.CLOSE,
    "lock": Verb.LOCK,
    "unlock": Verb.UNLOCK,
    "play": Verb.PLAY,
    "pause": Verb.PAUSE,
}
_SWITCHED: Final = frozenset({Verb.ON, Verb.OFF, Verb.OPEN, Verb.CLOSE})
_SENSED: Final = frozenset({"sensor", "contact"})
_PERCENT: Final = frozenset({"brightness", "position", "volume"})
_POWERED: Final = frozenset({"light", "climate", "speaker", "switch", "fan"})
"""Of what may be told the same although it is of another kind: on and off."""

_KINDS: Final[Mapping[str, str]] = {"media_player": "speaker", "binary_sensor": "contact"}


def echoed(frames: Sequence[Frame], around: Around, things: Things, *, strongly: bool) -> list[Frame]:
    """What somebody is told who is named after a command for others: "the bedroom too"; none: that says nothing.

    Args:
        frames: who, as they are named; or a clause for what is in a room: "the bedroom off, too".
        around: what is known beside the words.
        things: of the home.
        strongly: it says "too", and not only "and".
    """
    told, room = _told(around.last), _room(around, things)
    kinds = {_KINDS.get(kind, kind) for kind in map(domain, entities(around.last, things))}
    if len(kinds) != 1:
        return []
    kind = kinds.pop()
    each = [_also(frame, told, kind, room, strongly=strongly) for frame in frames]
    return [one for told in each for one in told] if all(each) else []


def _also(frame: Frame, told: Sequence[Frame], kind: str, room: str | None, *, strongly: bool) -> list[Frame]:
    if frame.verb == Verb.BARE:
        return _like(frame, told, kind, room)
    if not strongly or frame.verb not in _SWITCHED or frame.it is not None or frame.every:
        return []
    if frame.thing:  # 空调也打开, of the room that was spoken of
        return [replace(frame, area=room)] if room is not None and frame.place is None and not frame.here else []
    return [replace(frame, kind=kind)] if frame.area is not None else []


def _like(who: Frame, told: Sequence[Frame], kind: str, room: str | None) -> list[Frame]:
    """The same for somebody; what is of another kind is told no more than on and off."""
    if who.every or not (who.thing or who.area is not None):
        return []
    if not who.thing:
        return [_of(one, who, None if kind in _SENSED else kind) for one in told]
    kinds = {kind, who.own_kind or who.kind}
    if len(kinds) > 1 and not (kinds <= _POWERED and all(one.verb in (Verb.ON, Verb.OFF) for one in told)):
        return []
    if who.place is None and not who.here:
        who = replace(who, area=room)
    return [_of(one, who, who.kind) for one in told]


def _of(told: Frame, who: Frame, kind: str | None) -> Frame:
    return replace(
        told, name=who.name, area=who.area, here=who.here, own_kind=who.own_kind, own_area=who.own_area, kind=kind
    )


def _room(around: Around, things: Things) -> str | None:
    """The one room that the command before was about, unless it is said in another one."""
    rooms = {things.entries[one].area for one in entities(around.last, things)}
    room = rooms.pop() if len(rooms) == 1 else None
    return room if around.area in (None, room) else None


def _told(last: Sequence[Wish]) -> list[Frame]:
    """What all of them were told alike, as clauses without anybody."""
    each = dict[str, list[Frame]]()
    for wish in last:
        frame = _frame(wish)
        if frame is None or wish.entity is None:
            return []
        each.setdefault(wish.entity, []).append(frame)
    ways = list(each.values())
    return ways[0] if ways and all(way == ways[0] for way in ways) else []


def _frame(wish: Wish) -> Frame | None:
    if wish.mission == "device.query":
        return _look(wish) if wish.expects is not None or wish.asks is not None else None
    action, value = str(wish.payload.get("action", "")), wish.payload.get("value")
    if action in _VERBS:
        return Frame(_VERBS[action])
    verb, _, aspect = action.partition("_")
    if aspect == "mode":
        return Frame(Verb.SET, mode=str(value))
    if verb not in ("set", "change") or not isinstance(value, int | float):
        return None
    told = Frame(
        Verb(verb), aspect=aspect, number=abs(value) if verb == "change" else value, percent=aspect in _PERCENT
    )
    return replace(told, change="-" if value < 0 else "+") if verb == "change" else told


def _look(wish: Wish) -> Frame:
    if wish.expects is None:
        own = wish.of_device and domain(str(wish.entity)) != "sensor"
        return Frame(Verb.LOOK, aspect="setting" if own else wish.asks)
    expects: Any = {100: "open", 0: "closed"}.get(wish.expects, wish.expects)
    return Frame(Verb.LOOK, state=str(expects))
