"""What the assistant makes of what was heard: whether it was understood, and whether that is sure enough. Pure."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from backend_loop.language.meaning import Meaning
from backend_loop.missions.assistant_words import Word
from backend_loop.toolbox import ChildMission
from shared.audio import KINDS, RATES, RAW
from shared.status import ErrorCode

SURE: Final = 0.5
"""Below it something is asked before it is done. What an engine says nothing of is taken at its word, but what is
dangerous is asked in any case."""

_UNHEARD: Final[Mapping[str, Word]] = {"language_not_spoken": "language_not_heard"}
"""Why a recording cannot be listened to, in the words of who listens; all else is the recording's."""


class Recording(BaseModel):
    """What is said of a recording; itself it lies with the command, where `POST /v1/voice` has laid it."""

    model_config = ConfigDict(extra="allow")

    bytes: int = Field(ge=1)
    kind: Annotated[str, Field(pattern=f"^({'|'.join((*KINDS, RAW))})$")]
    rate: int | None = Field(
        None, ge=RATES.start, lt=RATES.stop, description="samples a second of raw PCM; null: it is a file"
    )


class Speech(BaseModel):
    """What was heard; see `backend_loop.speech.ears.Heard`."""

    text: str
    heard: str
    confidence: float | None = None
    repaired: bool = False
    engine: str | None = None
    took_ms: int = 0
    audio_ms: int = 0

    @property
    def unsure(self) -> bool:
        """Whether it may well have been something else."""
        return self.confidence is not None and self.confidence < SURE


def heard_as(speech: Speech | None, meaning: Meaning) -> Meaning:
    """The meaning, no surer than what it was read from."""
    if speech is None:
        return meaning
    sure = 1.0 if speech.confidence is None else speech.confidence
    return meaning.model_copy(
        update={
            "heard": speech.heard,
            "repaired": speech.repaired or meaning.repaired,
            "confidence": round(min(1.0, max(0.0, sure)) * meaning.confidence, 3),
        }
    )


def to_be_asked(speech: Speech | None, meaning: Meaning) -> bool:
    """Whether a command is asked back although it is clear what it means: it is dangerous, or may be another one."""
    acts = any(wish.mission != "device.query" for wish in meaning.wishes)
    return meaning.confirm or (speech is not None and speech.unsure and acts)


def unspoken(speech: Speech) -> Word:
    """What is said where no words came out: nobody spoke, or an engine made nothing of it."""
    return "nothing_heard" if speech.engine is None else "not_understood"


def unheard(end: ChildMission) -> tuple[Word, ErrorCode, dict[str, Any]]:
    """What is said where a recording could not be listened to, with which error it ends, and what the result has."""
    code = (end.error or {}).get("code")
    problem = (end.result or {}).get("problem") if isinstance(end.result, Mapping) else None
    if code == ErrorCode.PERMANENT and isinstance(problem, str):
        return _UNHEARD.get(problem, "recording_not_heard"), ErrorCode.PERMANENT, {"problem": problem}
    return "cannot_hear_now", ErrorCode.CHILD_FAILED, {"problem": "cannot_hear_now"}
