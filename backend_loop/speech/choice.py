"""Which engine listens, by the settings; and what it is told that people are likely to say."""

from collections.abc import Callable
from typing import Final

import httpx

from backend_loop.speech.engine import Engine, spoken
from backend_loop.speech.processes import SpeechProcesses
from shared.home import Area, Entry, Inventory, Scene
from shared.settings import Settings

_NEEDS: Final = {"wyoming": "wyoming_url", "openai": "speech_url", "whisper": "whisper_dir"}
_HINTS: Final = 100
"""Names: more than a model's prompt has room for."""


def engine_of(
    settings: Settings, client: httpx.AsyncClient, processes: SpeechProcesses, home: Callable[[], Inventory]
) -> Engine:
    """The engine that is configured; nothing is connected to, started or loaded yet.

    Args:
        settings: `speech_engine`, and what belongs to it.
        client: of who asks servers; closing it is its owner's business.
        processes: where engines listen that compute here.
        home: the inventory as it is now.

    Raises:
        ValueError: an engine is named whose own setting is missing, or that setting is none; the sentence says which.
    """
    chosen: str = settings.speech_engine
    if chosen == "auto":
        chosen = next((name for name, field in _NEEDS.items() if getattr(settings, field)), "sphinx")
    elif chosen in _NEEDS and not getattr(settings, _NEEDS[chosen]):
        raise ValueError(f"DUALLOOP_SPEECH_ENGINE is {chosen}, and DUALLOOP_{_NEEDS[chosen].upper()} is not set")
    if chosen == "wyoming" and settings.wyoming_url:
        from backend_loop.speech.wyoming import Wyoming  # noqa: PLC0415  one of them is needed, the others never

        return Wyoming(settings.wyoming_url, within_s=settings.speech_s)
    if chosen == "openai" and settings.speech_url:
        from backend_loop.speech.openai import OpenAI  # noqa: PLC0415  the engine that is chosen, and no other

        key = settings.speech_key.get_secret_value() if settings.speech_key is not None else ""
        return OpenAI(settings.speech_url, client, model=settings.speech_model, key=key, within_s=settings.speech_s)
    if chosen == "whisper" and settings.whisper_dir:
        from backend_loop.speech.whisper import Whisper  # noqa: PLC0415  the engine that is chosen, and no other

        return Whisper(processes, settings.whisper_dir)
    from backend_loop.speech.sphinx import Sphinx  # noqa: PLC0415  the engine that is chosen, and no other

    return Sphinx(processes, home)


def hints_of(home: Inventory, language: str) -> list[str]:
    """What is called by a name there, the spoken ones first."""
    said = spoken(language)
    parts: list[Area | Entry | Scene] = [*home.areas, *home.devices, *home.scenes]
    named = [part.names.get(said, []) for part in parts]
    first = [names[0] for names in named if names]
    others = [name for names in named for name in names[1:]]
    return list(dict.fromkeys([*first, *others]))[:_HINTS]
