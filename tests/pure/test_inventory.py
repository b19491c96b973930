"""A home's inventory: taken whole or not at all, and what is wrong with it is said where it is, in a sentence."""

import json
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
from pydantic_core import to_json

from dualloop.home.demonstration import WIRES, demonstration
from dualloop.home.inventory import demonstration_inventory
from shared.home import EMPTY, MAX_BYTES, Area, Entry, Inventory, InventoryError, Scene, SceneAct, check, read, schema

Document = dict[str, Any]


def document() -> Document:
    return {
        "areas": [{"id": "hall", "names": {"en": ["hall"]}}, {"id": "den", "names": {"en": ["den"], "zh": ["书房"]}}],
        "devices": [
            {"entity": "light.hall", "area": "hall", "names": {"en": ["lamp"]}, "wire": "zigbee2mqtt/hall/lamp"},
            {"entity": "light.den", "area": "den", "names": {"en": ["lamp"]}, "wire": "tasmota/den"},
            {"entity": "lock.door", "names": {"en": ["front door"]}},
        ],
        "scenes": [
            {
                "id": "night",
                "phrases": {"en": ["good night"]},
                "actions": [{"entity": "light.hall", "action": "turn_off"}],
            }
        ],
    }


def faults(document: Any) -> list[tuple[str, str]]:
    with pytest.raises(InventoryError) as caught:
        check(document)
    return [(fault["pointer"], fault["detail"]) for fault in caught.value.faults]


def test_a_home_is_read_and_says_the_same_when_written() -> None:
    home = check(document())
    assert [entry.entity for entry in home.devices] == ["light.hall", "light.den", "lock.door"]
    assert read(EMPTY.text()) == EMPTY
    for raw in (home.text(), home.packed(), b"\xef\xbb\xbf" + home.text()):
        assert (read(raw), read(raw).revision) == (home, home.revision)


def test_the_revision_is_that_of_what_is_said_and_not_of_how() -> None:
    spelt_out, brief = document(), document()
    spelt_out |= {"v": 1, "languages": ["en", "zh"]}
    spelt_out["scenes"][0] |= {"order": "parallel", "on_failure": "continue", "names": {}}
    assert check(spelt_out).revision == check(brief).revision
    brief["devices"][0]["names"]["en"].append("light")
    assert check(spelt_out).revision != check(brief).revision
    assert check({}).revision == EMPTY.revision


def test_wire_names_lead_to_entities() -> None:
    assert check(document()).bindings() == {"zigbee2mqtt/hall/lamp": "light.hall", "tasmota/den": "light.den"}


def test_locks_are_confirmed_unless_it_is_said_otherwise() -> None:
    confirmed = {entry.entity: entry.confirm for entry in check(document()).devices}
    assert confirmed == {"light.hall": False, "light.den": False, "lock.door": True}
    assert not Entry(entity="lock.shed", confirm=False).confirm
    assert Entry(entity="switch.oven", confirm=True).confirm


def test_the_text_has_a_line_for_each_part_that_people_edit() -> None:
    lines = check(document()).text().decode().splitlines()
    for word in ('"id": "den"', '"entity": "light.den"', '"entity": "lock.door"', '"action": "turn_off"'):
        assert sum(word in line for line in lines) == 1
    assert any("书房" in line for line in lines), "people read it"


def test_a_scene_is_the_payload_of_its_mission() -> None:
    scene = check(document()).scenes[0]
    act = {"entity": "light.hall", "action": "turn_off", "value": None, "on_failure": None}
    assert scene.payload() == {"actions": [act], "order": "parallel", "on_failure": "continue"}


Spoil = Callable[[Document], object]

SPOILT: list[tuple[str, Spoil, str, str]] = [
    ("an area twice", lambda d: d["areas"].append({"id": "hall"}), "/areas/2/id", "'hall' is that of /areas/0 already"),
    ("a device twice", lambda d: d["devices"].append({"entity": "lock.door"}), "/devices/3/entity", "/devices/2"),
    ("a wire twice", lambda d: d["devices"][2].update(wire="tasmota/den"), "/devices/2/wire", "/devices/1"),
    (
        "a scene twice",
        lambda d: d["scenes"].append({"id": "night", "actions": d["scenes"][0]["actions"]}),
        "/scenes/1/id",
        "/scenes/0",
    ),
    (
        "an unknown area",
        lambda d: d["devices"][0].update(area="attic"),
        "/devices/0/area",
        "there is no area 'attic'; there are den, hall",
    ),
    (
        "a name twice in a room",
        lambda d: d["devices"][1].update(area="hall"),
        "/devices/1/names/en/0",
        "'lamp' is what light.hall is called in hall",
    ),
    (
        "two rooms of one name",
        lambda d: d["areas"][1]["names"].update(en=[" HALL "]),
        "/areas/1/names/en/0",
        "'HALL' is what hall is called already",
    ),
    (
        "two scenes at one word",
        lambda d: d["scenes"].append(
            {"id": "dark", "phrases": {"en": ["Good  night"]}, "actions": d["scenes"][0]["actions"]}
        ),
        "/scenes/1/phrases/en/0",
        "is what night is called up by",
    ),
    ("a language that is not spoken", lambda d: d.update(languages=["en"]), "/areas/1/names/zh", "not among"),
    (
        "an act on nothing",
        lambda d: d["scenes"][0]["actions"][0].update(entity="light.attic"),
        "/scenes/0/actions/0/entity",
        "there is no device 'light.attic'",
    ),
    (
        "an unknown action",
        lambda d: d["scenes"][0]["actions"][0].update(action="fly"),
        "/scenes/0/actions/0/action",
        "'fly' is no action",
    ),
    (
        "a value too many",
        lambda d: d["scenes"][0]["actions"][0].update(value=3),
        "/scenes/0/actions/0/action",
        "turn_off takes no value",
    ),
    (
        "a list for a value",
        lambda d: d["scenes"][0]["actions"][0].update(value=[3]),
        "/scenes/0/actions/0/value",
        "a value is a number, a word, true or false",
    ),
    ("a misspelt field", lambda d: d["scenes"][0].update(actons=[]), "/scenes/0/actons", "there is no such field"),
    ("nothing to do", lambda d: d["scenes"][0].update(actions=[]), "/scenes/0/actions", "at least 1 item"),
    ("no entity", lambda d: d["devices"][2].pop("entity"), "/devices/2/entity", "is missing"),
    ("a spoilt entity", lambda d: d["devices"][2].update(entity="The lamp"), "/devices/2/entity", "light.hall"),
    ("a wild wire", lambda d: d["devices"][2].update(wire="zigbee2mqtt/#"), "/devices/2/wire", "without # and +"),
    ("a bell in a name", lambda d: d["areas"][0]["names"].update(en=["a\x07"]), "/areas/0/names/en/0", "control"),
    (
        "a language in words",
        lambda d: d["areas"][0].update(names={"English": []}),
        "/areas/0/names/English",
        "en or zh",
    ),
    ("one name and no list", lambda d: d["areas"][0].update(names={"en": "hall"}), "/areas/0/names/en", "valid list"),
    ("a word for yes", lambda d: d["devices"][0].update(confirm="yes"), "/devices/0/confirm", "boolean"),
    ("a format of tomorrow", lambda d: d.update(v=2), "/v", "should be 1"),
]


@pytest.mark.parametrize(("spoil", "pointer", "sentence"), [one[1:] for one in SPOILT], ids=[one[0] for one in SPOILT])
def test_a_fault_is_said_where_it_is(spoil: Spoil, pointer: str, sentence: str) -> None:
    spoilt = document()
    spoil(spoilt)
    assert [at for at, _ in faults(spoilt)] == [pointer]
    assert sentence in faults(spoilt)[0][1]


def test_every_fault_is_said_and_the_first_one_makes_the_sentence() -> None:
    spoilt = document()
    spoilt["devices"][0]["area"] = "attic"
    spoilt["scenes"][0]["actions"][0]["action"] = "fly"
    assert [at for at, _ in faults(spoilt)] == ["/devices/0/area", "/scenes/0/actions/0/action"]
    with pytest.raises(InventoryError, match=r"^/devices/0/area: there is no area 'attic'.* \(and 1 more\)$"):
        check(spoilt)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"", "this is no JSON"),
        (b'{"areas": [', "this is no JSON: EOF while parsing"),
        (b'{"areas": NaN}', "this is no JSON"),
        (b'{"x": "\xff"}', "this is no JSON"),
        (b'{"areas":[' * 5_000, "this is no JSON"),
        (b"[]", "an inventory is a JSON object"),
        (b"{" + b" " * MAX_BYTES + b"}", f"longer than {MAX_BYTES} bytes"),
    ],
    ids=["nothing", "half", "NaN", "no UTF-8", "deep", "a list", "long"],
)
def test_what_is_no_inventory_at_all_says_so(raw: bytes, sentence: str) -> None:
    with pytest.raises(InventoryError) as caught:
        read(raw)
    assert sentence in str(caught.value)


def test_the_schema_takes_what_is_taken_and_refuses_misspelt_fields() -> None:
    rules = jsonschema_rs.Draft202012Validator(schema())
    assert rules.is_valid({"$schema": "home.schema.json", **document()})
    assert rules.is_valid(json.loads(demonstration_inventory()))
    assert not rules.is_valid({"rooms": []})
    assert not rules.is_valid({"devices": [{"entity": "The lamp"}]})


def test_the_demonstration_home_has_a_name_for_each_of_its_devices_in_both_languages() -> None:
    home = read(demonstration_inventory().encode())
    assert {entry.entity for entry in home.devices} == demonstration().keys()
    assert {entry.entity: entry.wire for entry in home.devices} == WIRES
    assert all(entry.area for entry in home.devices)
    parts: list[Area | Entry | Scene] = [*home.areas, *home.devices, *home.scenes]
    assert [part for part in parts if not (part.names.get("en") and part.names.get("zh"))] == []
    assert {scene.id for scene in home.scenes} == {"home", "night", "away", "movie"}
    assert demonstration_inventory().encode() == home.text(), "as it would be exported"


def test_a_scene_of_the_demonstration_asks_of_each_device_only_what_it_can_do() -> None:
    devices = demonstration()
    for scene in read(demonstration_inventory().encode()).scenes:
        for act in scene.actions:
            assert act.action in devices[act.entity].actions, (scene.id, act)


def test_a_large_home_is_small_enough() -> None:
    devices = [
        Entry(entity=f"light.lamp_{n}", names={"zh": [f"客厅的第{n}盏灯"], "en": [f"lamp {n}"]}) for n in range(5_000)
    ]
    home = Inventory(devices=devices)
    assert len(home.packed()) < MAX_BYTES
    assert read(home.packed()) == home


def test_a_value_is_kept_as_it_is() -> None:
    values: list[Any] = ["cool", True, 26, 26.5]
    kept = [
        SceneAct.model_validate_json(to_json({"entity": "a.b", "action": "x", "value": one})).value for one in values
    ]
    assert [(type(one), one) for one in kept] == [(type(one), one) for one in values]
