"""What may go wrong with a call to the outside, as values of a script."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from backend_loop.testing.trial import Trial

NOTHING: Final[Mapping[str, Any]] = {}

WAY_S: Final = 0.001
"""How long a call takes to where it is answered, and a hint to where it is heard."""

Kind = Literal["down", "slow", "garbage", "lost", "refused", "ignored", "meanwhile"]


@dataclass(slots=True)
class Call:
    """One call that a mission made: to a service, a device or a model.

    Attributes:
        number: from 1, of all calls in this run.
        method: GET or POST. path: such as ``stock/items/lamp``, or ``devices/light.kitchen``, unquoted.
        body: of a POST.
        key, fence: of an effect; of what only asks they are empty.
        state: in whose handler it was made, ``UNDO_STATE`` of an undo.
        at_s: seconds after the run began.
        answer: what was answered, or the fault that it met; None: not yet.
        effect: whether something was done, by this call and not by an earlier one with its key.
    """

    number: int
    method: str
    path: str
    body: Mapping[str, Any]
    key: str
    fence: int
    state: str
    at_s: float
    answer: Any = None
    effect: bool = False

    def __str__(self) -> str:
        """For a sentence."""
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Fault:
    """Made by the functions of this module."""

    kind: Kind
    answer: "Scripted" = field(default_factory=dict)
    seconds: float = 0.0
    code: str = ""
    detail: str = ""
    status: int = 0
    do: "Callable[[Trial], object] | None" = None

    def __str__(self) -> str:
        """For a sentence."""
        return f"{self.kind} {self.code or self.detail}".strip()


Answer = Mapping[str, Any] | Fault
Scripted = Answer | Callable[[Call], Answer]
Answers = Scripted | Sequence[Scripted]
"""One answer to all calls, or one for each of them, in order; a function is given the call and answers then."""


def down(detail: str = "", *, after_s: int = 1) -> Fault:
    """It says 503, has done nothing, and wants to be asked again in so many seconds."""
    return Fault("down", seconds=after_s, detail=detail)


def slow(seconds: float, answer: Scripted = NOTHING) -> Fault:
    """It takes so long; who does not wait for that finds it done all the same, later."""
    return Fault("slow", answer, seconds)


def garbage(answer: Scripted = NOTHING) -> Fault:
    """It does what it is asked and answers what nobody can read; `answer` is what a second try with the key gets."""
    return Fault("garbage", answer)


def lost(answer: Scripted = NOTHING) -> Fault:
    """It does what it is asked, and the reply is lost; `answer` is what a second try with the key gets."""
    return Fault("lost", answer)


def refused(code: str = "refused", detail: str = "", *, status: int = 409) -> Fault:
    """It says no, has done nothing, and will say so again."""
    return Fault("refused", code=code, detail=detail, status=status)


def ignored() -> Fault:
    """Of a device: it says that it obeys, and does nothing."""
    return Fault("ignored")


def meanwhile(do: "Callable[[Trial], object]", answer: Scripted = NOTHING) -> Fault:
    """While it is at work something else happens, such as ``lambda mission: mission.cancel()``; then it answers."""
    return Fault("meanwhile", answer, do=do)


class Settled(NamedTuple):
    """What a script says to a call, with all waiting done; `gone`: who asked did not wait for it."""

    answer: Answer
    gone: asyncio.CancelledError | None


async def settled(scripted: Scripted, call: Call, meet: "Callable[[Callable[[Trial], object]], None]") -> Settled:
    """Let pass what comes before the answer.

    Args:
        scripted: what the script says.
        call: to which call.
        meet: lets something happen meanwhile.
    """
    gone: asyncio.CancelledError | None = None
    while True:
        if isinstance(scripted, Fault) and scripted.kind in {"slow", "meanwhile"}:
            try:
                if scripted.do is not None:
                    meet(scripted.do)
                # what happens meanwhile is heard of before the answer is
                await asyncio.sleep(scripted.seconds or WAY_S)
            except asyncio.CancelledError as cut:
                gone = cut
            scripted = scripted.answer
        elif isinstance(scripted, Fault | Mapping):
            return Settled(scripted, gone)
        else:
            scripted = scripted(call)
