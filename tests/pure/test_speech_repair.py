"""What was heard is put right by how this home's names sound; what is right already is left alone."""

from pathlib import Path

import pytest

from backend_loop.speech.repair import Repaired, repair
from shared.home import Area, Entry, Inventory, read

ROOT = Path(__file__).parent.parent.parent
HOME = read((ROOT / "dualloop" / "home" / "inventory.json").read_bytes())

MISHEARD = [
    # what whisper made of ../audio, and of others
    ("zh-CN", "我是现在多少度?", "卧室现在多少度?"),
    ("zh", "把握室灯亮度掉到50%", "把卧室灯亮度调到50%"),
    ("zh", "打開客廳燈", "打开客厅灯"),
    ("zh", "大开客厅空调,调到26度。", "打开客厅空调,调到26度。"),
    ("zh", "打开出房的窗帘", "打开厨房的窗帘"),
    ("zh", "我回家拉", "我回家了"),
    ("zh", "暂停因乐", "暂停音乐"),
    ("zh", "打开树房灯", "打开书房灯"),
    ("en-GB", "turn on the living room lamb", "turn on the living room lamp"),
    ("en", "Turn on the bed room light", "turn on the bedroom light"),
    ("en", "turn on the livingroom light", "turn on the living room light"),
    ("en", "paws the music", "pause the music"),
    ("en", "open the kitchen blines", "open the kitchen blinds"),
    ("en", "look the front door", "lock the front door"),
    ("en", "turn on the haul light, please", "turn on the hall light, please"),
    ("en", "set the bread room AC to 20 degrees", "set the bedroom AC to 20 degrees"),
]


@pytest.mark.parametrize(("language", "heard", "meant"), MISHEARD)
def test_what_sounds_like_a_name_here_is_that_name(language: str, heard: str, meant: str) -> None:
    repaired = repair(heard, language, HOME)
    assert repaired.text == meant
    assert 0.5 < repaired.confidence < 1
    for change in repaired.changes:
        assert change.meant in meant
        assert 0 < change.sure < 1
    assert repair(meant, language, HOME) == Repaired(meant), "and once is enough"


def test_it_says_what_it_changed() -> None:
    changes = repair("把握室灯亮度掉到50%", "zh", HOME).changes
    assert [(change.heard, change.meant) for change in changes] == [("握室灯", "卧室灯"), ("掉到", "调到")]


@pytest.mark.parametrize("name", ["commands.tsv", "held_out.en.tsv", "held_out.zh.tsv"])
def test_what_families_really_say_is_left_alone(name: str) -> None:
    changed = []
    for line in (ROOT / "tests" / "language" / name).read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        row = line.split("\t")
        language, text = (row[1], row[2]) if name == "commands.tsv" else (name.split(".")[1], row[1])
        if (repaired := repair(text, language, HOME)).changes:
            changed.append((text, repaired.text))
    assert changed == []


@pytest.mark.parametrize(
    ("language", "heard"),
    [
        ("en", "what a lovely day"),
        ("en", "tell me a joke"),
        ("zh", "今天天气怎么样"),
        ("zh", "讲个笑话"),
        ("fr", "allume la lumière"),
        ("en", ""),
        ("zh", "  。"),
        ("en", "look the front door " * 100),
        ("en", "\x00 \N{GRINNING FACE} ¿"),
        ("zh", "a1\u3400𠀀"),
    ],
)
def test_what_sounds_like_nothing_here_is_left_as_it_was_heard(language: str, heard: str) -> None:
    assert repair(heard, language, HOME) == Repaired(heard)


def test_two_that_sound_alike_make_it_unsure() -> None:
    def lamps(*names: str) -> Inventory:
        return Inventory(devices=[Entry(entity=f"light.{n}", names={"zh": [name]}) for n, name in enumerate(names)])

    assert repair("打开小明灯", "zh", lamps("晓明灯")).confidence > 0.9
    assert repair("打开小明灯", "zh", lamps("晓明灯", "晓铭灯")).confidence <= 0.5


def test_another_revision_of_the_home_has_its_own_names() -> None:
    def home(name: str) -> Inventory:
        return Inventory(areas=[Area(id="a", names={"zh": [name]})])

    assert repair("打开卧是的灯", "zh", home("卧室")).text == "打开卧室的灯"
    assert repair("打开卧是的灯", "zh", home("花园")).text == "打开卧是的灯"
