"""What is to be done to whom: from a clause and its devices to missions. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from backend_loop.language.frame import VAGUE, Frame, Verb
from backend_loop.language.meaning import Wish
from backend_loop.language.things import Puzzle, Things, domain
from shared.actions import ACTIONS, check
from shared.home import Scene

_POWER: Final = {Verb.ON: "turn_on", Verb.OFF: "turn_off", Verb.OPEN: "turn_on", Verb.CLOSE: "turn_off"}
_COVER: Final = {Verb.ON: "open", Verb.OFF: "close", Verb.OPEN: "open", Verb.CLOSE: "close"}
_LOCK: Final = {Verb.ON: "unlock", Verb.OPEN: "unlock", Verb.UNLOCK: "unlock"} | dict.fromkeys(
    (Verb.OFF, Verb.CLOSE, Verb.LOCK), "lock"
)
_MUSIC: Final = {Verb.ON: "play", Verb.OFF: "pause", Verb.PLAY: "play", Verb.PAUSE: "pause"}
_ACTIONS: Final[Mapping[str, Mapping[Verb, str]]] = {
    "light": _POWER,
    "switch": _POWER,
    "fan": _POWER,
    "climate": {**_POWER, Verb.PLAY: "turn_on", Verb.PAUSE: "turn_off"},
    "cover": _COVER,
    "lock": _LOCK,
    "media_player": {**_POWER, Verb.PLAY: "play", Verb.PAUSE: "pause"},
}
_ASPECTS: Final = {"light": "brightness", "climate": "temperature", "cover": "position", "media_player": "volume"}
_PARTS: Final = {"three_quarters": 75, "two_thirds": 67, "half": 50, "third": 33, "quarter": 25}
_LEVELS: Final[Mapping[str, Mapping[str, int]]] = {
    "brightness": _PARTS | {"max": 100, "min": 1},
    "position": _PARTS | {"max": 100, "min": 0},
    "volume": _PARTS | {"max": 100, "min": 10, "none": 0},
}
_STEPS: Final[Mapping[str, int]] = {"brightness": 20, "temperature": 1, "position": 20, "volume": 10}
"""How much "a bit" is."""

_SAFE: Final = frozenset({"lock", "turn_off", "pause"})
"""What makes a dangerous device safe needs no second word."""

_INTENTS: Final[Mapping[str, str]] = {
    "turn_on": "HassTurnOn",
    "turn_off": "HassTurnOff",
    "set_brightness": "HassLightSet",
    "set_temperature": "HassClimateSetTemperature",
    "set_mode": "HassClimateSetMode",
    "open": "HassOpenCover",
    "close": "HassCloseCover",
    "set_position": "HassSetPosition",
    "lock": "HassLock",
    "unlock": "HassUnlock",
    "set_volume": "HassSetVolume",
    "change_volume": "HassSetVolumeRelative",
    "play": "HassMediaUnpause",
    "pause": "HassMediaPause",
}
_STATES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "light": ("power", {"on": "on", "open": "on", "off": "off", "closed": "off"}),
    "cover": ("position", {"on": 100, "open": 100, "off": 0, "closed": 0}),
    "lock": ("lock", {"locked": "locked", "unlocked": "unlocked", "off": "locked", "closed": "locked"}),
    "sensor": ("contact", {"on": "open", "open": "open", "off": "closed", "closed": "closed"}),
}
_POWERED: Final = frozenset({"light", "switch", "fan", "climate", "media_player"})
_PLAYBACK: Final = {"playing": "playing", "paused": "paused", "on": "playing", "off": "paused"}


def acts(frame: Frame, entities: Iterable[str]) -> list[Wish]:
    """An act for each device.

    Raises:
        Puzzle: devices of this kind cannot be told that.
    """
    if frame.mode is not None and frame.number is not None:  # "heating at 22 degrees"
        parts = [replace(frame, number=None, degrees=False), replace(frame, mode=None, aspect=None)]
    else:
        parts = [frame]
    return [_act(part, entity) for entity in entities for part in parts]


def looks(frame: Frame, entities: Iterable[str], things: Things) -> list[Wish]:
    """A look at each device.

    Raises:
        Puzzle: devices of this kind do not show that.
    """
    found = (_look(frame, entity, things) for entity in entities)
    return [
        wish.model_copy(update={"area": things.entries[str(wish.entity)].area, "of_device": frame.thing})
        for wish in found
    ]


def scene(one: Scene) -> Wish:
    """A scene, as it stands in the inventory."""
    return Wish(mission="scene.run", payload={**one.payload(), "scene": one.id}, scene=one.id)


def intent(wish: Wish) -> str:
    """In the words of Home Assistant where it has one."""
    if wish.mission == "scene.run":
        return "Scene"
    if wish.mission == "device.query":
        return "HassClimateGetTemperature" if wish.asks == "temperature" else "HassGetState"
    return _INTENTS.get(wish.payload["action"], "Change")


def dangerous(wish: Wish, things: Things) -> bool:
    """It acts on a device that is to be confirmed, and does more than to make it safe."""
    made = wish.payload["actions"] if wish.mission == "scene.run" else [wish.payload]
    return wish.mission != "device.query" and any(
        things.entries[act["entity"]].confirm and act["action"] not in _SAFE
        for act in made
        if act["entity"] in things.entries
    )


def _act(frame: Frame, entity: str) -> Wish:
    kind = domain(entity)
    if frame.verb == Verb.SET:
        action, value = _setting(frame, kind)
    elif frame.verb == Verb.CHANGE:
        action, value = _changing(frame, kind)
    else:
        table = _MUSIC if frame.kind == "music" else _ACTIONS.get(kind, {})
        action, value = table.get(frame.verb, ""), None
        if frame.stopped and kind not in _POWERED:
            action = ""  # "stop it", of a blind that opens
    try:
        check(action, value)
    except ValueError:
        raise Puzzle("not_understood", limits=_limits(action, value)) from None
    payload = {"entity": entity, "action": action} | ({} if value is None else {"value": value})
    return Wish(mission="device.control", payload=payload, entity=entity)


def _limits(action: str, value: Any) -> tuple[str, float, float] | None:
    """The action with its smallest and largest value, where the value is beyond them."""
    known = ACTIONS.get(action)
    if known is None or known.between is None or not isinstance(value, int | float):
        return None
    return (action, *known.between)


def _setting(frame: Frame, kind: str) -> tuple[str, Any]:
    """The action and its value; an action that is none where the device has no such value."""
    if frame.mode is not None and frame.aspect in (None, "mode"):
        return ("set_mode" if kind == "climate" else "", frame.mode)
    own = _ASPECTS.get(kind)
    aspect = frame.aspect or ("temperature" if frame.degrees else own)
    if aspect is None or aspect != own or (frame.percent and aspect == "temperature"):
        return "", None
    value = frame.number if frame.level is None else _LEVELS.get(aspect, {}).get(frame.level)
    return f"set_{aspect}", 100 - value if frame.closed and value is not None else value


def _changing(frame: Frame, kind: str) -> tuple[str, Any]:
    """The same of more or less of something; by one step where it does not say by how much.

    Raises:
        Puzzle: "turn the air conditioner up" may mean warmer, or more of what it does.
    """
    own = _ASPECTS.get(kind)
    if own is None or frame.aspect not in (None, own, *VAGUE):
        return "", None
    by = frame.number if frame.level is None else _PARTS.get(frame.level)
    if own == "temperature" and (frame.percent or (by is None and frame.aspect in (None, "size"))):
        raise Puzzle("not_understood", reason="relative")
    amount = _STEPS[own] if by is None else by
    return f"change_{own}", amount if frame.change == "+" else -amount


def _look(frame: Frame, entity: str, things: Things) -> Wish:
    kind = domain(entity)
    if kind == "lock" and frame.state in ("on", "open", "off", "closed"):
        if (contact := things.contact(frame.name, entity)) is not None:
            entity, kind = contact, "sensor"
        elif frame.state in ("on", "open"):
            return _looked(entity, "lock", "unlocked")
    if frame.state is not None:
        if kind == "media_player" and (frame.kind == "music" or frame.state in ("playing", "paused")):
            return _looked(entity, "playback", _PLAYBACK.get(frame.state))
        shows = "light" if kind in _POWERED else "sensor" if kind == "binary_sensor" else kind
        asks, values = _STATES.get(shows, ("", {}))  # a home may have what nobody here has heard of
        if frame.state not in values:
            raise Puzzle("not_understood")
        return _looked(entity, asks, values[frame.state])
    if frame.aspect is not None and frame.aspect in ("temperature", "humidity") and kind not in ("climate", "sensor"):
        raise Puzzle("not_understood")
    return _looked(entity, _ASPECTS.get(kind) if frame.aspect == "setting" else frame.aspect, None)


def _looked(entity: str, asks: str | None, expects: Any) -> Wish:
    return Wish(mission="device.query", payload={"entity": entity}, entity=entity, asks=asks, expects=expects)


def names(said: Iterable[Wish], candidates: Iterable[str], things: Things) -> dict[str, str]:
    """What is spoken for all that is spoken of; a scene is ``scene:<id>``."""
    spoken = {}
    for wish in said:
        for entity in [wish.entity, *(act["entity"] for act in wish.payload.get("actions", ()))]:
            if entity is not None:
                spoken[entity] = things.spoken(entity)
        if wish.area is not None:
            spoken[wish.area] = things.spoken(wish.area)
        if wish.scene is not None:
            spoken[f"scene:{wish.scene}"] = things.spoken(f"scene:{wish.scene}")
    return spoken | {one: things.spoken(one) for one in candidates}
