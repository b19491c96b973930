"""What is said of looks: a value with its age if it is old, a yes or no, or that nobody could be asked. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from backend_loop.child_missions import ChildMission
from backend_loop.language import naming
from backend_loop.language.meaning import Meaning, Wish
from backend_loop.language.wording import Wording

OLD_S: Final = 10.0
"""From this age on a reading is told with it."""

_MAIN: Final[Mapping[str, tuple[str, ...]]] = {
    "light": ("power", "brightness"),
    "climate": ("power", "temperature", "mode"),
    "cover": ("position",),
    "lock": ("lock",),
    "media_player": ("playback", "volume"),
    "sensor": ("temperature", "humidity", "contact"),
}
_SENSOR: Final = re.compile(r"(?<=.)(?: contact| sensor|传感器)$", re.IGNORECASE)
Pair = tuple[Wish, ChildMission | None]


def looked(pairs: Sequence[Pair], meaning: Meaning, words: Wording) -> list[str]:
    """A sentence for each look; of many that asked one thing, one for all."""
    seen = [pair for pair in pairs if _value(pair[1]) is not None and _fine(pair[1])]
    unseen = [pair for pair in pairs if pair not in seen]
    if len(seen) > 1 and len({_asked(wish, words) for wish, _ in seen}) == 1 and seen[0][0].expects is not None:
        told = [_all(seen, meaning, words)]
    else:
        told = [_one(pair, meaning, words) for pair in seen]
    if refused := [wish for wish, end in unseen if _code(end) == "device_refused"]:
        told.append(_put("refused", _entities(refused), meaning, words))
    told += [_not_reached(pair, meaning, words) for pair in unseen if _code(pair[1]) != "device_refused"]
    return told


def _asked(wish: Wish, words: Wording) -> str:
    """What a look asked, in words: blinds and doors are open alike, however each of them shows it."""
    if wish.expects is None:
        return str(wish.asks)
    return _so(str(wish.asks), wish.expects, _kind(wish), words)


def _one(pair: Pair, meaning: Meaning, words: Wording) -> str:
    wish, end = pair
    return _of_value(wish, _value(end) or {}, meaning, words) + _age(end, words)


def _of_value(wish: Wish, value: Mapping[str, Any], meaning: Meaning, words: Wording) -> str:
    entity, kind = str(wish.entity), str(wish.entity).partition(".")[0]
    if wish.expects is not None and wish.asks is not None and wish.asks in value:
        so = _so(wish.asks, _simple(wish, value[wish.asks]), kind, words)
        about = _door(entity, meaning) if wish.asks == "contact" else meaning
        return _put("yes" if _matches(wish, value) else "no", [entity], about, words, so=so)
    if wish.asks == "temperature" and kind in ("sensor", "climate"):
        return _temperature(wish, value, meaning, words)
    if wish.asks == "humidity" and "humidity" in value:
        return words.looks["humidity"].format(
            place=_place(wish, meaning, words), v=naming.value(value["humidity"], words)
        )
    asks = (wish.asks,) if wish.asks else _main(kind, value)
    parts = [_so(one, value[one], kind, words) for one in asks if one in value]
    return _put("value" if parts else "unknown", [entity], meaning, words, so=naming.listed(parts, words))


def _door(entity: str, meaning: Meaning) -> Meaning:
    """It is the door that is open, not what tells so."""
    name = _SENSOR.sub("", meaning.names.get(entity, ""))
    return meaning.model_copy(update={"names": meaning.names | {entity: name}}) if name else meaning


def _temperature(wish: Wish, value: Mapping[str, Any], meaning: Meaning, words: Wording) -> str:
    """Of the air where a device tells that, else what it is set to."""
    entity = str(wish.entity)
    air = value.get("current_temperature", value.get("temperature") if entity.startswith("sensor.") else None)
    if air is not None and not wish.of_device:
        return words.looks["temperature"].format(place=_place(wish, meaning, words), v=naming.value(air, words))
    if "temperature" not in value:
        return _put("unknown", [entity], meaning, words)
    return _put("set_temperature", [entity], meaning, words, v=naming.value(value["temperature"], words))


def _main(kind: str, value: Mapping[str, Any]) -> tuple[str, ...]:
    names = _MAIN.get(kind, tuple(value))
    return names[:1] if value.get(names[0] if names else "") == "off" else names


def _all(pairs: Sequence[Pair], meaning: Meaning, words: Wording) -> str:
    """Of several devices: which of them are as was asked."""
    for one, _ in pairs:
        meaning = _door(str(one.entity), meaning) if one.asks == "contact" else meaning
    yes = [one for one, end in pairs if _matches(one, _value(end) or {})]
    so = _asked(pairs[0][0], words)
    oldest = max(pairs, key=lambda pair: _age_s(pair[1]))[1]
    them = naming.devices(_entities([one for one, _ in pairs]), meaning.names, words, many="all_many")
    if len(yes) == len(pairs):
        told = words.looks["all"].format(them=them, so=so)
    elif not yes and (instead := _same(pairs, words)) is not None:
        told = words.looks["none"].format(them=them, so=instead)
    elif not yes:
        told = words.looks["none_is"].format(n=len(pairs), so=so)
    elif len(yes) > naming.MOST_NAMED:
        first = [naming.device(str(one.entity), meaning.names, words) for one in yes[: naming.MOST_NAMED - 1]]
        more = {"first": words.listed[0].join(first), "rest": str(len(yes) - len(first)), "of": str(len(pairs))}
        told = _put("several", _entities(yes), meaning, words, so=so, **more)
    else:
        told = _put("some", _entities(yes), meaning, words, so=so)
    return told + _age(oldest, words)


def _same(pairs: Sequence[Pair], words: Wording) -> str | None:
    """What all of them show, where it is one thing: none is on, so all are off."""
    told = set[str]()
    for wish, end in pairs:
        seen = _simple(wish, (_value(end) or {}).get(str(wish.asks)))
        if seen is None:
            return None
        told.add(_so(str(wish.asks), seen, _kind(wish), words))
    return told.pop() if len(told) == 1 else None


def _kind(wish: Wish) -> str:
    return str(wish.entity).partition(".")[0]


def _not_reached(pair: Pair, meaning: Meaning, words: Wording) -> str:
    """Nobody could be asked; what is remembered is told with its age."""
    wish, end = pair
    told = _put("unreachable", [str(wish.entity)], meaning, words)
    value, kind = _value(end), str(wish.entity).partition(".")[0]
    asks = wish.asks or next(iter(_MAIN.get(kind, ())), None)
    if value is None or asks is None or asks not in value:
        return told
    before = words.looks["last"].format(ago=naming.ago(_age_s(end), words), so=_so(asks, value[asks], kind, words))
    return f"{told}{words.gap}{naming.capital(before)}"


def _matches(wish: Wish, value: Mapping[str, Any]) -> bool:
    seen = value.get(str(wish.asks))
    return bool(_simple(wish, seen) == wish.expects)


def _simple(wish: Wish, seen: Any) -> Any:
    """A blind that is open a little is open, to who asks whether it is."""
    if wish.asks == "position" and isinstance(seen, int | float) and wish.expects in (0, 100):
        return 100 if seen > 0 else 0
    return seen


def _so(asks: str, value: Any, kind: str, words: Wording) -> str:
    return naming.shown(asks, value, kind, words)


def _put(key: str, entities: Sequence[str], meaning: Meaning, words: Wording, **more: str) -> str:
    them = naming.devices(entities, meaning.names, words)
    many = len(entities) > 1 or meaning.names.get(entities[0], "").endswith("s")
    verbs = {"is": "are" if many else "is", "does": "do" if many else "does"}
    return words.looks[key].format(x=naming.capital(them), them=them, **verbs, **more)


def _place(wish: Wish, meaning: Meaning, words: Wording) -> str:
    name = meaning.names.get(wish.area or "")
    if name is None:
        return naming.device(str(wish.entity), meaning.names, words)
    return words.phrases["place"].format(name=name)


def _entities(wishes: Sequence[Wish]) -> list[str]:
    return [str(wish.entity) for wish in wishes]


def _value(end: ChildMission | None) -> Mapping[str, Any] | None:
    value = ((end.result or {}) if end is not None else {}).get("value")
    return value if isinstance(value, Mapping) else None


def _fine(end: ChildMission | None) -> bool:
    return end is not None and end.succeeded


def _code(end: ChildMission | None) -> str | None:
    return None if end is None or end.error is None else str(end.error.get("code"))


def _age_s(end: ChildMission | None) -> float:
    freshness = end.freshness if end is not None else None
    return float(freshness["age_ms"]) / 1000 if freshness and "age_ms" in freshness else 0.0


def _age(end: ChildMission | None, words: Wording) -> str:
    seconds = _age_s(end)
    return words.phrases["age"].format(ago=naming.ago(seconds, words)) if seconds > OLD_S else ""
