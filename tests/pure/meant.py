"""What was meant, in one line, as the lists of sentences have it."""

from functools import lru_cache
from pathlib import Path

from backend_loop.language.interpreter import Interpreter
from backend_loop.language.meaning import Meaning, Wish
from backend_loop.missions.assistant_talk import is_command
from shared.home import Inventory, read

ROOT = Path(__file__).parents[2]
LISTS = ROOT / "tests" / "language"


@lru_cache(maxsize=1)
def demonstration() -> Inventory:
    return read((ROOT / "dualloop" / "home" / "inventory.json").read_bytes())


@lru_cache(maxsize=1)
def interpreter() -> Interpreter:
    return Interpreter(demonstration())


def meant(text: str, language: str, area: str | None = None) -> str:
    """Of the last of some sentences of one conversation, with ``//`` between them."""
    last: list[Wish] = []
    for said in text.split(" // "):
        meaning = interpreter().interpret(said, language, area=area, last=last)
        if is_command(meaning) and meaning.control is None:
            last = meaning.wishes
    return line(meaning)


def line(meaning: Meaning) -> str:
    """``turn_on light.hall > close cover.bedroom``; a problem after ``!``; without an order, in the alphabet's."""
    if meaning.control:
        return meaning.control
    if meaning.problem:
        return f"!{meaning.problem}"
    told = [_told(wish) for wish in meaning.wishes]
    return " > ".join(told) if meaning.ordered else " + ".join(sorted(told))


def sorted_line(text: str) -> str:
    return text if ">" in text else " + ".join(sorted(text.split(" + ")))


def rows(name: str) -> list[tuple[str | None, str, str]]:
    """Area, sentence and meaning of each line of a list."""
    lines = (LISTS / name).read_text(encoding="utf-8").splitlines()
    return [(None if area == "-" else area, text, want) for area, text, want in (one.split("\t") for one in lines)]


def _told(wish: Wish) -> str:
    if wish.scene:
        return f"scene {wish.scene}"
    if wish.mission == "device.query":
        expected = "" if wish.expects is None else f"={wish.expects}"
        return f"look {wish.entity} {wish.asks}{expected}"
    value = f" {wish.payload['value']}" if "value" in wish.payload else ""
    return f"{wish.payload['action']} {wish.entity}{value}"
