"""What most tests need: done at once, five committed states, slow, failing, waiting, acting."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, field_validator

from backend_loop.mission import Mission, state, steps
from backend_loop.outcomes import Fail, Go, Outcome, Retry, Sleep, WaitFor
from backend_loop.retry import Retry as RetryPolicy
from backend_loop.toolbox import Toolbox
from shared.status import ErrorCode, Priority
from tests.missions.gate import opened
from tests.missions.tally import tally

Tools = Toolbox[Any, Any]


class Noop(Mission):
    """Done at once."""

    type = "test.noop"
    table = steps("WORKING")

    @state("WORKING")
    async def work(self, tools: Tools) -> Outcome:
        tally(tools)
        return Go("done", result={"n": getattr(tools.payload, "n", None)})


class Bulk(Mission):
    """20 ms of waiting, in the bulk lane."""

    type = "test.bulk"
    priority = Priority.BULK
    table = steps("WORKING")

    @state("WORKING")
    async def work(self, tools: Tools) -> Outcome:
        await asyncio.sleep(0.02)
        tally(tools)
        return Go("done")


class _Count(BaseModel):
    steps: int = 0


def _handler(name: str) -> Callable[[Any, Any], Awaitable[Outcome]]:
    async def step(_self: Mission, tools: Toolbox[Any, _Count]) -> Outcome:
        tally(tools)
        tools.context.steps += 1
        return Go("done", result={"steps": tools.context.steps})

    return state(name)(step)


class Five(Mission):
    """Five committed states."""

    type = "test.five"
    Context = _Count
    table = steps("ONE", "TWO", "THREE", "FOUR", "FIVE")
    one, two, three, four, five = (_handler(name) for name in ("ONE", "TWO", "THREE", "FOUR", "FIVE"))


class Slow(Mission):
    """Waits as long as the payload says, or until its gate is open, in a state that acts; then is done."""

    type = "test.slow"
    table = {"ACTING": {"acted": "CHECKING"}, "CHECKING": {"done": "SUCCEEDED"}}

    class Payload(BaseModel):
        """How long."""

        seconds: float = Field(1.0, ge=0, le=600)
        entity: str | None = None
        gate: Path | None = None

    target = "entity"

    @state("ACTING", acting=True, timeout_s=600)
    async def act(self, tools: Toolbox["Slow.Payload", Any]) -> Outcome:
        tally(tools, "begin")
        tools.check()
        await (opened(tools.payload.gate) if tools.payload.gate else asyncio.sleep(tools.payload.seconds))
        tally(tools, "end")
        return Go("acted")

    @state("CHECKING")
    async def check(self, tools: Toolbox["Slow.Payload", Any]) -> Outcome:
        tally(tools)
        return Go("done", result={"fence": tools.fence})


class Flaky(Mission):
    """Fails as often as the payload says, then is done."""

    type = "test.flaky"
    table = steps("TRYING")

    class Payload(BaseModel):
        """How it fails."""

        failures: int = 2
        how: str = Field("retry", pattern="^(retry|raise|permanent|timeout|garbage)$")

    @state("TRYING", timeout_s=0.2, retry=RetryPolicy(tries=4, base_s=0.02, cap_s=0.1))
    async def attempt(self, tools: Toolbox["Flaky.Payload", Any]) -> Outcome:
        tally(tools)
        if tools.attempt <= tools.payload.failures:
            match tools.payload.how:
                case "raise":
                    raise RuntimeError("as told")
                case "permanent":
                    return Fail("as told", ErrorCode.PERMANENT)
                case "timeout":
                    await asyncio.Event().wait()
                case "garbage":
                    return "no outcome"  # type: ignore[return-value]  # what an author may get wrong
                case _:
                    return Retry("as told")
        return Go("done", result={"attempt": tools.attempt})


class Patient(Mission):
    """Sleeps, then waits for an outside event."""

    type = "test.patient"
    table = {
        "SLEEPING": {"slept": "LISTENING"},
        "LISTENING": {"KNOCK": "ANSWERING", "timed_out": "FAILED"},
        "ANSWERING": {"done": "SUCCEEDED"},
    }

    class Payload(BaseModel):
        """How long."""

        sleep_s: float = 0.05
        wait_s: float = 30.0

    class Context(BaseModel):
        """What was done."""

        slept: bool = False

    @state("SLEEPING")
    async def sleep(self, tools: Toolbox["Patient.Payload", "Patient.Context"]) -> Outcome:
        tally(tools)
        if tools.context.slept:
            return Go("slept")
        tools.context.slept = True
        return Sleep(tools.payload.sleep_s)

    @state("LISTENING")
    async def listen(self, tools: Toolbox["Patient.Payload", "Patient.Context"]) -> Outcome:
        return WaitFor("KNOCK", tools.payload.wait_s)

    @state("ANSWERING")
    async def answer(self, tools: Toolbox["Patient.Payload", "Patient.Context"]) -> Outcome:
        return Go("done", result={"received": tools.received})


class Block(Mission):
    """Blocks the event loop, as no handler should."""

    type = "test.block"
    table = steps("BLOCKING")

    class Payload(BaseModel):
        """How long."""

        seconds: float

    @state("BLOCKING", timeout_s=600)
    async def block(self, tools: Toolbox["Block.Payload", Any]) -> Outcome:
        tally(tools, "begin")
        time.sleep(tools.payload.seconds)  # noqa: ASYNC251  this is the fault that is shown
        tally(tools, "end")
        return Go("done")


class Echo(Mission):
    """Gives its payload back."""

    type = "test.echo"
    table = steps("ECHOING")

    @state("ECHOING")
    async def echo(self, tools: Tools) -> Outcome:
        return Go("done", result=tools.payload.model_dump())


class Careless(Mission):
    """Leaves what cannot be written."""

    type = "test.careless"
    table = {"LEAVING": {"done": "ENDING"}, "ENDING": {"done": "SUCCEEDED"}}

    class Payload(BaseModel):
        """What."""

        where: str = Field("context", pattern="^(context|result|nan)$")

    class Context(BaseModel):
        """Anything."""

        left: Any = None

    @state("LEAVING")
    async def leave(self, tools: Toolbox["Careless.Payload", "Careless.Context"]) -> Outcome:
        if tools.payload.where == "context":
            tools.context.left = object()
        return Go("done")

    @state("ENDING")
    async def end(self, tools: Toolbox["Careless.Payload", "Careless.Context"]) -> Outcome:
        return Go("done", result={"left": float("nan") if tools.payload.where == "nan" else object()})


class Picky(Mission):
    """Refuses what its schema lets pass."""

    type = "test.picky"
    table = steps("EATING")

    class Payload(BaseModel):
        """An even number."""

        n: int

        @field_validator("n")
        @classmethod
        def _even(cls, n: int) -> int:
            if n % 2:
                raise ValueError("odd numbers are not eaten here")
            return n

    @state("EATING")
    async def eat(self, tools: Toolbox["Picky.Payload", Any]) -> Outcome:
        return Go("done", result={"n": tools.payload.n})


class Grouped(Mission):
    """Its handler's own task group fails, and is caught; then it waits for ever."""

    type = "test.grouped"
    table = steps("GROUPING")

    @state("GROUPING", timeout_s=0.3, retry=RetryPolicy(tries=2, base_s=0.01))
    async def group(self, tools: Tools) -> Outcome:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_fail())
        except* RuntimeError:
            tally(tools)
        await asyncio.Event().wait()
        return Go("done")


async def _fail() -> None:
    raise RuntimeError("as told")
