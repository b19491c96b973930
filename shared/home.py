"""A home's inventory: areas, devices, what people call them, and scenes. A file with a schema that people edit.

What is said here binds both loops: the background understands names and binds devices by it, the foreground takes
changes of it in. It is checked whole, and a document with a fault is never taken half: `read` says each fault, where
it is and in a sentence.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import from_json, to_json

from shared.actions import wanted

MAX_BYTES: Final = 1024 * 1024
"""Of the document: a large home has some hundred devices of 300 bytes each."""

MOST_FAULTS: Final = 20

Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$", examples=["en", "zh"])]
Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")
]
Names = dict[Language, Annotated[list[Name], Field(max_length=50)]]
"""What something is called, by language; the first name is the one that is spoken."""

AreaId = Annotated[str, Field(pattern=r"^[^\s\x00-\x1f\x7f]+$", max_length=100, examples=["living_room"])]
Entity = Annotated[
    str, Field(pattern=r"^[a-z][a-z0-9_]*\.[^\s\x00-\x1f\x7f]+$", max_length=200, examples=["light.hall"])
]
Wire = Annotated[
    str,
    Field(
        pattern=r"^[^/\s\x00-\x1f\x7f#+]+/[^/\x00-\x1f\x7f#+][^\x00-\x1f\x7f#+]*$",
        max_length=300,
        examples=["zigbee2mqtt/hall/lamp"],
    ),
]
OnFailure = Literal["continue", "stop"]
Place = list[str | int]
"""Of a part within the document."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", populate_by_name=True)


class Area(_Part):
    """A room, or whatever people say that a device is in."""

    id: AreaId
    names: Names = Field(default_factory=dict, description="by language; the first one is spoken")


class Entry(_Part):
    """A device: where it is, what it is called, and which one on the wire it is."""

    entity: Entity = Field(description="what missions call it: its kind, a dot, and a name")
    area: AreaId | None = Field(None, description="id of the area that it is in")
    names: Names = Field(default_factory=dict, description="by language; the first one is spoken")
    wire: Wire | None = Field(
        None,
        description="zigbee2mqtt/<friendly name>, tasmota/<topic> or homeassistant/<unique_id>; "
        "unset: the one whose own name makes this entity",
    )
    confirm: bool = Field(
        default_factory=lambda known: str(known.get("entity", "")).startswith("lock."),
        description="dangerous: what was heard is confirmed before it is done; unset: for locks",
    )


class SceneAct(_Part):
    """What to do to which device, and what its failure means."""

    entity: Entity
    action: str = Field(max_length=100, examples=["turn_on"])
    value: str | bool | int | float | None = Field(None, description="for actions that take one")
    on_failure: OnFailure | None = Field(None, description="unset: the scene's own")


class Scene(_Part):
    """Many devices at one word."""

    id: AreaId
    names: Names = Field(default_factory=dict, description="by language; the first one is spoken")
    phrases: Names = Field(default_factory=dict, description="sentences, by language, that run it")
    actions: list[SceneAct] = Field(min_length=1, max_length=100)
    order: Literal["parallel", "sequence"] = Field(
        "parallel", description="sequence: each begins when the one before has ended"
    )
    on_failure: OnFailure = Field("continue", description="stop: nothing further begins, and the scene fails")

    def payload(self) -> dict[str, Any]:
        """As `scene.run` takes it."""
        return self.model_dump(include={"actions", "order", "on_failure"})


class Inventory(_Part):
    """All that is known of a home that its devices do not say themselves."""

    schema_: str | None = Field(None, alias="$schema", max_length=1_000, description="where an editor finds the schema")
    v: Literal[1] = Field(1, description="version of this format")
    languages: list[Language] = Field(
        default_factory=lambda: ["en", "zh"], min_length=1, max_length=20, description="that are understood and spoken"
    )
    areas: list[Area] = Field(default_factory=list, max_length=500)
    devices: list[Entry] = Field(default_factory=list, max_length=5_000)
    scenes: list[Scene] = Field(default_factory=list, max_length=500)

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if faults := list(_contradictions(self)):
            raise _Contradicted(faults)
        return self

    @cached_property
    def revision(self) -> str:
        """The same for two documents that say the same."""
        return hashlib.sha256(self.packed()).hexdigest()[:16]

    @cached_property
    def _bound(self) -> dict[str, str]:
        return {entry.wire: entry.entity for entry in self.devices if entry.wire is not None}

    def bindings(self) -> Mapping[str, str]:
        """Entity by wire name."""
        return self._bound

    @cached_property
    def _packed(self) -> bytes:
        return to_json(self.model_dump(by_alias=True, exclude_none=True))

    def packed(self) -> bytes:
        """The document as JSON, defaults written out; the same bytes for the same content."""
        return self._packed

    def text(self) -> bytes:
        """The document for people: each area, device and action on a line of its own."""
        return "".join(_lines(self.model_dump(by_alias=True, exclude_none=True))).encode()


class InventoryError(ValueError):
    """This is no inventory.

    Args:
        faults: ``{"pointer": RFC 6901, "detail": sentence}`` for each, none left out but beyond `MOST_FAULTS`.
    """

    def __init__(self, faults: list[dict[str, str]]) -> None:
        """The first fault makes the sentence."""
        first, more = faults[0], len(faults) - 1
        at = f"{first['pointer']}: " if first["pointer"] else ""
        super().__init__(f"{at}{first['detail']}{f' (and {more} more)' if more else ''}")
        self.faults = faults


def read(raw: bytes) -> Inventory:
    """The inventory that a file holds. One of thousands of devices takes a fifth of a second: not on an event loop.

    Raises:
        InventoryError: it holds none.
    """
    if len(raw) > MAX_BYTES:
        raise InventoryError([_fault([], f"longer than {MAX_BYTES} bytes")])
    try:
        document = from_json(raw.removeprefix(b"\xef\xbb\xbf"), allow_inf_nan=False)  # some editors begin with a mark
    except ValueError as error:
        raise InventoryError([_fault([], f"this is no JSON: {error}")]) from None
    return check(document)


def check(document: Any) -> Inventory:
    """The inventory that parsed JSON is, with its revision, likewise.

    Raises:
        InventoryError: it is none.
    """
    if not isinstance(document, dict):
        raise InventoryError([_fault([], 'an inventory is a JSON object: {"areas": […], "devices": […]}')])
    try:
        inventory = Inventory.model_validate(document)
    except ValidationError as error:
        raise InventoryError(list(_faults(error))[:MOST_FAULTS]) from None
    _ = inventory.revision  # worked out here, where there is time
    return inventory


def schema() -> dict[str, Any]:
    """The JSON Schema of the file."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Inventory.model_json_schema()}


class _Contradicted(ValueError):  # noqa: N818  never leaves this file
    def __init__(self, faults: list[dict[str, str]]) -> None:
        super().__init__("; ".join(f"{fault['pointer']}: {fault['detail']}" for fault in faults[:MOST_FAULTS]))
        self.faults = faults


_SHAPES: Final = {
    "entity": "an entity is its kind, a dot and a name without spaces: light.hall",
    "wire": "a wire name is a dialect, a slash and the device's name there, without # and +: zigbee2mqtt/hall/lamp",
    "id": "an id has no spaces: living_room",
    "area": "an id has no spaces: living_room",
    "languages": "a language is named as en, zh or zh-TW are",
    "names": "a language is named as en or zh are, and a name has no control characters",
    "phrases": "a language is named as en or zh are, and a phrase has no control characters",
}


def _faults(error: ValidationError) -> Iterator[dict[str, str]]:
    said = list[Place]()
    for fault in error.errors(include_url=False, include_input=False):
        inner = fault.get("ctx", {}).get("error")
        if isinstance(inner, _Contradicted):
            yield from inner.faults
            continue
        if fault["type"] == "default_factory_not_called":
            continue  # the fault that it follows from is told
        place = [part for part in fault["loc"] if part != "[key]"]
        if place[-2:-1] == ["value"]:  # of several types, each of which says what it is not
            place, fault["msg"] = place[:-1], "a value is a number, a word, true or false"
            if place in said:
                continue
            said.append(place)
        yield _fault(place, _sentence(fault["type"], place, fault["msg"]))


def _sentence(kind: str, place: Place, message: str) -> str:
    if kind == "extra_forbidden":
        return "there is no such field"
    if kind == "missing":
        return "is missing"
    if kind == "string_pattern_mismatch":
        return next((_SHAPES[part] for part in reversed(place) if isinstance(part, str) and part in _SHAPES), message)
    return message


def _fault(place: Place, detail: str) -> dict[str, str]:
    pointer = "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in place)
    return {"pointer": pointer, "detail": detail}


def _contradictions(home: Inventory) -> Iterator[dict[str, str]]:
    yield from _doubles("areas", {n: area.id for n, area in enumerate(home.areas)}, "id")
    yield from _doubles("devices", {n: entry.entity for n, entry in enumerate(home.devices)}, "entity")
    yield from _doubles("devices", {n: entry.wire for n, entry in enumerate(home.devices) if entry.wire}, "wire")
    yield from _doubles("scenes", {n: scene.id for n, scene in enumerate(home.scenes)}, "id")
    areas = {area.id for area in home.areas}
    for n, entry in enumerate(home.devices):
        if entry.area is not None and entry.area not in areas:
            yield _fault(["devices", n, "area"], f"there is no area {entry.area!r}; there are {_listed(areas)}")
    yield from _names(home)
    entities = {entry.entity for entry in home.devices}
    for n, scene in enumerate(home.scenes):
        for m, act in enumerate(scene.actions):
            yield from _act(["scenes", n, "actions", m], act, entities)


def _doubles(where: str, given: Mapping[int, str], field: str) -> Iterator[dict[str, str]]:
    seen = dict[str, int]()
    for n, value in given.items():
        if (first := seen.setdefault(value, n)) != n:
            yield _fault([where, n, field], f"{value!r} is that of /{where}/{first} already")


def _names(home: Inventory) -> Iterator[dict[str, str]]:
    """Each name in a language that is spoken, and nothing by the name of something else in the same place."""
    taken = dict[tuple[str, ...], str]()
    for place, whose, names, among in _named(home):
        for language, texts in names.items():
            if language not in home.languages:
                yield _fault([*place, language], f"{language!r} is not among the languages of this home")
            for n, text in enumerate(texts):
                first = taken.setdefault((*among, language, " ".join(text.split()).casefold()), whose)
                if first != whose:
                    yield _fault([*place, language, n], f"{text!r} is what {first} is called {_there(among)}")


def _named(home: Inventory) -> Iterator[tuple[Place, str, Names, tuple[str, ...]]]:
    """All that has names: where, what, which ones, and among what these must be told apart."""
    for n, area in enumerate(home.areas):
        yield ["areas", n, "names"], area.id, area.names, ("area",)
    for n, entry in enumerate(home.devices):
        yield ["devices", n, "names"], entry.entity, entry.names, ("device", entry.area or "")
    for n, scene in enumerate(home.scenes):
        yield ["scenes", n, "names"], scene.id, scene.names, ("scene",)
        yield ["scenes", n, "phrases"], scene.id, scene.phrases, ("phrase",)


def _there(among: tuple[str, ...]) -> str:
    if among[0] == "phrase":
        return "up by"
    return f"in {among[1]}" if among[1:] and among[1] else "already"


def _act(place: Place, act: SceneAct, entities: set[str]) -> Iterator[dict[str, str]]:
    if act.entity not in entities:
        yield _fault([*place, "entity"], f"there is no device {act.entity!r} in this home")
    try:
        wanted(act.action, act.value)
    except ValueError as error:
        yield _fault([*place, "action"], str(error))


def _listed(ids: set[str]) -> str:
    return ", ".join(sorted(ids)) or "none"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    """JSON with one line for each part of a list of objects, and of the list of a scene's actions."""
    yield "{\n"
    last = list(document)[-1]
    for key, value in document.items():
        end = "" if key == last else ","
        if not value or not isinstance(value, list) or not isinstance(value[0], dict):
            yield f"  {_json(key)}: {_json(value)}{end}\n"
            continue
        yield f"  {_json(key)}: [\n"
        for n, part in enumerate(value, 1):
            yield f"    {_part(part)}{',' if n < len(value) else ''}\n"
        yield f"  ]{end}\n"
    yield "}\n"


def _part(part: Mapping[str, Any]) -> str:
    if "actions" not in part:
        return _json(part)
    acts = ",\n".join(f"      {_json(act)}" for act in part["actions"])
    head = ", ".join(f"{_json(key)}: {_json(value)}" for key, value in part.items() if key != "actions")
    return f'{{{head}, "actions": [\n{acts}\n    ]}}'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


EMPTY: Final = Inventory()
"""A home of which nothing is known."""
