"""The grammar of one language: own sentences first, then those that Home Assistant's community keeps.

hassil matches templates; what makes it fast in a large home is that it is given only the names and numbers that the
sentence holds.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from io import StringIO
from itertools import islice
from typing import Any, Final

from hassil import Intents
from hassil.expression import TextChunk
from hassil.intents import SlotList, TextSlotList, TextSlotValue, WildcardSlotList
from hassil.sample import sample_expression
from home_assistant_intents import get_intents, get_languages

from backend_loop.language.frame import VAGUE, Frame, Verb, as_question
from backend_loop.language.loose import Words, words_of
from backend_loop.language.matching import Reading, prepare, readings
from backend_loop.language.names import NameBook
from backend_loop.language.numbers import number
from backend_loop.language.text import chinese

MOST_READINGS: Final = 64
"""Of one clause; sentences that people say have a handful."""

_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?%?|(?<=[^\W\d])\d+(?:\.\d+)?%?|\d+(?:\.\d+)?%?")
_QUOTED, _NO_WORD, _WORD = re.compile(r'"([^"]*)"'), re.compile(r"[{<][^}>]*[}>]"), re.compile(r"[a-z']+")
_VERBS: Final[Mapping[str, Verb]] = {
    "HassTurnOn": Verb.ON,
    "HassTurnOff": Verb.OFF,
    "Open": Verb.OPEN,
    "Close": Verb.CLOSE,
    "Lock": Verb.LOCK,
    "Unlock": Verb.UNLOCK,
    "Set": Verb.SET,
    "Change": Verb.CHANGE,
    "HassLightSet": Verb.SET,
    "HassClimateSetTemperature": Verb.SET,
    "HassSetPosition": Verb.SET,
    "HassSetVolume": Verb.SET,
    "HassMediaPlayerMute": Verb.SET,
    "HassGetState": Verb.LOOK,
    "HassClimateGetTemperature": Verb.LOOK,
    "Play": Verb.PLAY,
    "HassMediaUnpause": Verb.PLAY,
    "Pause": Verb.PAUSE,
    "HassMediaPause": Verb.PAUSE,
    "Scene": Verb.SCENE,
    "Bare": Verb.BARE,
}
_STOCK: Final = frozenset(name for name in _VERBS if name.startswith("Hass"))
_ASPECTS: Final[Mapping[str, str]] = {
    "HassClimateSetTemperature": "temperature",
    "HassClimateGetTemperature": "temperature",
    "HassSetPosition": "position",
    "HassSetVolume": "volume",
    "HassLightSet": "brightness",
    "HassMediaPlayerMute": "volume",
}
_KINDS: Final[Mapping[str, str]] = {"media_player": "speaker", "binary_sensor": "contact"}
_AMOUNTS: Final = ("temperature", "brightness", "position", "volume_level")
_UNDERSTOOD: Final = frozenset({"name", "area", "domain", "device_class", "state", "preferred_area_id", *_AMOUNTS})

_GRADUAL: Final[Mapping[str, str]] = {
    "light": "brightness",
    "climate": "temperature",
    "cover": "position",
    "speaker": "volume",
    "media_player": "volume",
    "music": "volume",
    "everything": "brightness",
}
"""What there can be more or less of."""

_HOURS: Final = 12
_COVERINGS: Final = frozenset({"blind", "curtain", "shade", "shutter", "awning"})
"""Of the classes of device that the community knows those that are nothing else here: a gate is no blind."""


@dataclass(frozen=True)
class Grammar:
    """What can be said in one language, whatever the home."""

    own: Intents | None
    stock: Intents | None
    kinds: frozenset[str]
    """Words for a kind of device."""
    loose: Words
    """What single words of it mean."""
    words: frozenset[str] = frozenset()
    """All words of its own sentences, in a language that has spaces between them."""

    def read(self, text: str, book: NameBook, *, stock: bool = True) -> Frame | None:
        """What a clause says; None: it is no sentence of this language.

        Args:
            text: folded, numbers as digits.
            book: the home's names.
            stock: also by the sentences of the community.
        """
        lists = lists_of(text, book)
        if self.own is not None:
            own = [_own(reading, book) for reading in islice(readings(text, self.own, lists), MOST_READINGS)]
            own = [frame for frame in own if _sensible(frame)]
            if own:
                return min(own, key=_rank)
        if stock and self.stock is not None:
            for reading in islice(readings(text, self.stock, lists), MOST_READINGS):
                if (frame := _stock(reading, book)) is not None:
                    return frame
        return None

    def kinds_at(self, text: str) -> list[int]:
        """Where words for a kind of device begin, in a language that has spaces between its words."""
        return [word.start() for word in _WORD.finditer(text) if word.start() > 0 and word[0] in self.kinds]

    def names_kind(self, text: str) -> bool:
        """A kind of device is spoken of."""
        words = set(text.split())
        return any(kind in (text if chinese(kind[0]) else words) for kind in self.kinds)


@lru_cache(maxsize=16)
def grammar(language: str) -> Grammar:
    """The grammar of a language by its tag; takes up to a second the first time.

    A language without sentences of its own here has those of Home Assistant; one unknown to both understands nothing.
    """
    own, words = None, frozenset[str]()
    folder = files("backend_loop.language") / "sentences" / f"{language.split('-', maxsplit=1)[0]}.yaml"
    if folder.is_file():
        document = folder.read_text(encoding="utf-8")
        own = Intents.from_yaml(StringIO(document))
        words = frozenset(_WORD.findall(_NO_WORD.sub(" ", " ".join(_QUOTED.findall(document)))))
    stock = _community(language)
    for intents in (own, stock):
        if intents is not None:
            prepare(intents)
    return Grammar(own, stock, _kind_words(own), Words({}, 0) if own is None else words_of(own), words)


def _community(language: str) -> Intents | None:
    known = get_languages()
    family = language.split("-", maxsplit=1)[0]
    wanted = (
        ("zh-CN",) if family == "zh" else (language, family)
    )  # what is said in traditional characters is simplified
    tag = next((tag for tag in wanted if tag in known), None)
    document = get_intents(tag) if tag else None
    if document is None:
        return None
    document["intents"] = {name: intent for name, intent in document["intents"].items() if name in _STOCK}
    intents = Intents.from_dict(document)
    for intent in intents.intents.values():
        intent.data = [data for data in intent.data if not _open(data.sentence_texts, intents)]
    return intents


def _open(sentences: list[str], intents: Intents) -> bool:
    """It takes any word for a name, or needs a list of ours that no home has."""
    lists = {name for name, entries in intents.slot_lists.items() if isinstance(entries, WildcardSlotList)}
    return any(f"{{{name}" in sentence for name in lists | {"floor"} for sentence in sentences)


def _kind_words(own: Intents | None) -> frozenset[str]:
    if own is None or not isinstance(kinds := own.slot_lists.get("kind"), TextSlotList):
        return frozenset()
    return frozenset(text.strip() for value in kinds.values for text in sample_expression(value.text_in))


def lists_of(text: str, book: NameBook) -> dict[str, SlotList]:
    """What of a home is in a text: the names and numbers that templates may take."""
    spans = {span.text for span in book.spans(text)}
    numbers = {found[0] for found in _NUMBER.finditer(text)}
    return {
        "name": _list("name", {name: name for name in spans & book.devices.keys()}, book.kinds),
        "area": _list("area", {name: book.areas[name] for name in spans & book.areas.keys()}),
        "floor": _list("floor", {}),
        "scene": _list("scene", {name: book.scenes[name] for name in spans & book.scenes.keys()}),
        "number": _list("number", {amount: amount for amount in numbers}),
        "percent": _list("percent", {amount: amount for amount in numbers if amount.endswith("%")}),
    }


def _list(name: str, values: Mapping[str, str], domains: Mapping[str, str] | None = None) -> TextSlotList:
    return TextSlotList(
        name=name,
        values=[
            TextSlotValue(
                text_in=TextChunk(said),
                value_out=value,
                context={"domain": domains[said]} if domains and said in domains else None,
            )
            for said, value in sorted(values.items())
        ],
    )


def _own(reading: Reading, book: NameBook) -> Frame:
    slots = reading.slots
    amount, verb, name = slots.get("number"), _VERBS[reading.intent], slots.get("name")
    degrees, kind, mode = "unit" in slots, slots.get("kind"), slots.get("mode")
    about, change = _change(slots.get("change"))
    asks = kind == "anything" and "short" in slots  # "anything on" turns nothing on
    if kind == "anything":
        kind = "everything"
    if kind == "heating":  # with heating on, what heats and cools is to heat
        kind = "climate"
        verb, mode = (Verb.SET, "heat") if verb == Verb.ON else (verb, mode)
    frame = Frame(
        verb=verb,
        name=name,
        area=slots.get("area"),
        kind=kind,
        every="quantity" in slots or "everywhere" in slots or kind == "everything",
        loosely=slots.get("quantity") == "both",
        here="here" in slots,
        it=slots.get("it"),
        aspect=slots.get("aspect") or about or ("temperature" if degrees and verb == Verb.LOOK else None),
        number=number(amount.rstrip("%")) if amount is not None else None,
        percent=amount is not None and amount.endswith("%"),
        degrees=degrees,
        level=slots.get("level"),
        mode=mode,
        change=change,
        closed="closed" in slots,
        moved="moved" in slots,
        stopped="stop" in slots,
        state=slots.get("state"),
        short="short" in slots,
        asked="asked" in slots,
        scene=slots.get("scene"),
        own_kind=book.kinds.get(name) if name else None,
        own_area=book.places.get(name) if name else None,
    )
    return as_question(frame) if asks else frame


def _sensible(frame: Frame) -> bool:
    """Only blinds are raised and lowered by that alone, and only what has a value is told more or less of it."""
    kinds = {kind for kind in (frame.kind, frame.own_kind) if kind is not None}
    if frame.area is not None and frame.own_area not in (None, frame.area):
        return False  # "the kitchen, the bedroom light", said without a pause
    if frame.verb == Verb.BARE and frame.it is not None:
        return False  # nobody is called so
    if frame.mode is not None and frame.number is not None and not frame.degrees and frame.number <= _HOURS:
        return False  # "to heat at seven"
    return (not frame.moved or "cover" in kinds or not kinds) and (
        frame.verb != Verb.CHANGE
        or all(kind in _GRADUAL and frame.aspect in (None, _GRADUAL[kind], *VAGUE) for kind in kinds)
    )


def _change(said: str | None) -> tuple[str | None, str | None]:
    """What ``brightness+`` is about, if it tells, and the sign."""
    return (said[:-1] or None, said[-1]) if said else (None, None)


def _stock(reading: Reading, book: NameBook) -> Frame | None:
    """The same of a sentence of the community; None: it asks for what no device here can do, a colour or a floor."""
    slots, intent = reading.slots, reading.intent
    if not slots.keys() <= _UNDERSTOOD or slots.get("device_class", "blind") not in _COVERINGS:
        return None
    amount = next((slots[name] for name in _AMOUNTS if name in slots), None)
    if _VERBS[intent] == Verb.SET and not isinstance(amount, int | float) and intent != "HassMediaPlayerMute":
        return None
    kind = slots.get("domain")
    if isinstance(kind, list):
        kind = kind[0]
    verb = _VERBS[intent]
    if reading.context.get("domain") == "lock" and verb in (Verb.ON, Verb.OFF):
        verb = Verb.LOCK if verb == Verb.ON else Verb.UNLOCK
    return Frame(
        verb=verb,
        name=slots.get("name"),
        area=slots.get("area"),
        kind=_KINDS.get(kind, kind) if kind is not None and "name" not in slots else None,
        every=reading.response in ("lights_all", "all", "which", "any", "how_many"),
        aspect=_ASPECTS.get(intent),
        number=number(str(amount)) if amount is not None else None,
        percent=intent in ("HassLightSet", "HassSetPosition", "HassSetVolume"),
        level="none" if intent == "HassMediaPlayerMute" else None,
        state=slots.get("state"),
        own_kind=book.kinds.get(slots.get("name", "")),
        own_area=book.places.get(slots.get("name", "")),
    )


def _rank(frame: Frame) -> tuple[Any, ...]:
    """The best reading is the least: one that says who, by the longest name, or by kind where all are meant."""
    named = len(frame.name or "")
    return (
        frame.verb == Verb.BARE,
        not frame.thing and frame.scene is None,
        frame.here,
        frame.it is None,
        named if frame.every else -named,
        frame.area is None,
        frame.aspect is None,
        list(Verb).index(frame.verb),
    )
