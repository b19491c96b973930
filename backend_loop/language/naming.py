"""Devices, rooms, values and times as words in a sentence. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from backend_loop.language.wording import Wording

MOST_NAMED: Final = 4
"""More devices of one kind are counted, not named."""


def devices(entities: Sequence[str], names: Mapping[str, str], words: Wording, *, many: str = "many") -> str:
    """The devices, each by its name, or their number where they are many: ``5 lights``, of ``all_many`` all 5."""
    if len(entities) > MOST_NAMED:
        kinds = {entity.partition(".")[0] for entity in entities}
        kind = words.kinds.get(kinds.pop() if len(kinds) == 1 else "else", words.kinds["else"])
        return words.phrases[many].format(n=len(entities), kind=kind)
    return listed([device(entity, names, words) for entity in entities], words)


def device(entity: str, names: Mapping[str, str], words: Wording) -> str:
    """One device, by the name that is spoken."""
    return words.article + names.get(entity, entity.partition(".")[2].replace("_", " "))


def listed(texts: Sequence[str], words: Wording, *, either: bool = False) -> str:
    """``a, b and c``, or ``a, b or c``."""
    between, last = words.listed
    if len(texts) < 2:
        return "".join(texts)
    return f"{between.join(texts[:-1])}{words.either if either else last}{texts[-1]}"


def capital(text: str) -> str:
    """As a sentence begins."""
    return text[:1].upper() + text[1:]


def value(of: Any, words: Wording) -> str:
    """A number without needless digits, a word in the language."""
    if isinstance(of, float):
        return f"{of:.1f}".removesuffix(".0")
    return words.modes.get(str(of), str(of))


def ago(seconds: float, words: Wording) -> str:
    """How long something is past, in whole units."""
    unit, each = ("second", 1) if seconds < 60 else ("minute", 60) if seconds < 3600 else ("hour", 3600)
    n = int(seconds // each)
    return words.phrases.get(f"{unit}_one" if n == 1 else unit, words.phrases[unit]).format(n=n)


def shown(asks: str, of: Any, kind: str, words: Wording) -> str:
    """One value of a device: ``on``, ``at 30 percent``."""
    states = words.states
    if asks == "position" and of in (0, 100):
        return states["position=open" if of else "position=closed"]
    if f"{asks}={of}" in states:
        return states[f"{asks}={of}"]
    if asks == "temperature" and kind == "sensor":
        return states["air"].format(v=value(of, words))
    return states.get(asks, states["else"]).format(v=value(of, words))
