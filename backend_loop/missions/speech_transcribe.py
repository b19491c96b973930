"""`speech.transcribe`: what is said in the recording that a command came with.

It is a mission of its own, so that what computes for seconds has its own pool: workers with ``DUALLOOP_POOLS=speech``
take this off all others, and where there are none, so many of them run at once as `concurrency` says. The recording
lies with the command, until that ends: whoever takes over after a kill listens to it again, which harms nobody.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

from backend_loop.dependency import Dependency
from backend_loop.mission import Mission, state
from backend_loop.outcomes import Fail, Go, Outcome
from backend_loop.retry import Retry as Policy
from backend_loop.services import ServiceRefused, ServiceUnavailable
from backend_loop.toolbox import Toolbox
from shared.audio import RATES
from shared.status import Priority

TYPE: Final = "speech.transcribe"
POOL: Final = "speech"
SPEECH: Final = Dependency("speech", retry_ratio=1.0)
AGAIN: Final = Policy(tries=3, base_s=0.2, cap_s=2)
"""Whoever spoke waits: an engine that does not listen soon is told so."""


class SpeechTranscribe(Mission):
    """Turn the recording of a command into text."""

    type = TYPE
    pool = POOL
    priority = Priority.URGENT
    deadline_s = 30.0
    concurrency = 16  # what waits for an engine holds no slot that others need
    retryable = (ServiceUnavailable,)
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {"LISTENING": {"heard": "SUCCEEDED"}}

    class Payload(BaseModel):
        """Which recording, and how it is spoken."""

        model_config = ConfigDict(extra="allow")

        recording: str = Field(min_length=1, max_length=200, description="task_id of the command that it came with")
        rate: int | None = Field(
            None, ge=RATES.start, lt=RATES.stop, description="samples a second of raw PCM; null: it is a file"
        )
        language: str = Field("en", min_length=2, max_length=35, description="of the speaker", examples=["zh-CN"])

    @state("LISTENING", timeout_s=30, retry=AGAIN, uses=(SPEECH,))
    async def listen(self, tools: Toolbox[Payload, BaseModel]) -> Outcome:
        """One try."""
        wanted = tools.payload
        try:
            heard = await tools.listen(wanted.recording, wanted.rate, wanted.language)
        except ServiceRefused as fault:
            return Fail(str(fault), result=_why(fault.code))
        if heard is None:
            return Fail("the recording is not kept any more: say it again", result=_why("no_recording"))
        return Go("heard", result=heard._asdict())


def _why(code: str) -> dict[str, Any]:
    return {"problem": code}
