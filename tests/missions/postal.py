"""A parcel that is paid, waited for, sent and thanked for, by services outside: what the test kit is tried with."""

import asyncio
import time
from typing import Any

from pydantic import BaseModel, Field

from backend_loop.mission import Example, Latest, Mission, Upcast, state, undo
from backend_loop.outcomes import Fail, Go, Outcome, Retry, Sleep, WaitFor
from backend_loop.retry import Retry as Policy
from backend_loop.services import ServiceRefused, ServiceUnavailable
from backend_loop.step_tools import StepTools
from backend_loop.toolbox import Toolbox


class NoSuchAddressError(Exception):
    """It will not be there at the next try either."""


class Postal(Mission):
    """Pay for a parcel and send it."""

    type = "test.postal"
    version = 2
    upcasters = {
        1: Upcast(
            payload=lambda old: {"address": old["to"]},
            context=lambda old: {**old, "tried": 0},
            states={"AWAITING": "CONFIRMING"},
            examples=[Example({"to": "Long Street 1"}, {"payment": "p"}, "AWAITING")],
        )
    }
    permanent = (NoSuchAddressError, ServiceRefused)
    retryable = (ServiceUnavailable,)
    deadline_s = 172_800
    table = {
        "PAYING": {"ordered": "CONFIRMING"},
        "CONFIRMING": {"PAID": "SENDING", "timed_out": "FAILED"},
        "SENDING": {"sent": "THANKING"},
        "THANKING": {"thanked": "SUCCEEDED"},
    }

    class Payload(BaseModel):
        """Where to."""

        address: str = Field(min_length=1)

    class Context(BaseModel):
        """What the bank called it, and how often it was sent."""

        payment: str = ""
        tried: int = 0

    @state("PAYING", acting=True, retry=Policy(tries=4, base_s=10, cap_s=60))
    async def pay(self, tools: Toolbox[Payload, Context]) -> Outcome:
        tools.progress(1, 4, "paying")
        tools.context.payment = (await tools.order("payment/orders", {"for": tools.payload.address}))["id"]
        return Go("ordered")

    @undo("PAYING")
    async def refund(self, tools: Toolbox[Payload, Context]) -> None:
        await tools.order("payment/refunds", {"of": tools.undoes})

    @state("CONFIRMING")
    async def confirm(self, _tools: Toolbox[Payload, Context]) -> Outcome:
        return WaitFor("PAID", 86_400)

    @state("SENDING", acting=True)
    async def send(self, tools: Toolbox[Payload, Context]) -> Outcome:
        tools.context.tried += 1
        if tools.payload.address == "nowhere":
            raise NoSuchAddressError(tools.payload.address)
        await tools.order("shipping/parcels", {"to": tools.payload.address, "paid": tools.received})
        return Go("sent")

    @state("THANKING", on_failure="skip", runs="thread")
    def thank(self, tools: StepTools[Payload, Context]) -> Outcome:
        return Go("thanked", result={"payment": tools.context.payment, "to": tools.payload.address})


class Careless(Mission):
    """Orders the same in two states, so under two keys, where it was cut before it noted the first."""

    type = "test.careless"
    table = {"FIRST": {"done": "SECOND"}, "SECOND": {"done": "SUCCEEDED", "again": "FIRST"}}

    class Payload(BaseModel):
        """Whether it begins anew when it was taken over."""

        anew: bool = True

    @state("FIRST", acting=True)
    async def first(self, tools: Toolbox[Payload, BaseModel]) -> Outcome:
        await tools.order("bank/transfers", {"cents": 100})
        return Go("done")

    @state("SECOND")
    async def second(self, tools: Toolbox[Payload, BaseModel]) -> Outcome:
        return Go("again") if tools.taken_over and tools.payload.anew else Go("done")


class Patient(Mission):
    """Sleeps, and sleeps again."""

    type = "test.patient"
    table = {"SLEEPING": {"woken": "SUCCEEDED", "again": "SLEEPING"}}
    deadline_s = 30 * 86_400

    class Payload(BaseModel):
        """How long, how often; how it spends its time."""

        seconds: float = 3_600
        times: int = 3
        how: str = "sleeps"

    class Context(BaseModel):
        """How often it has."""

        slept: int = 0

    @state("SLEEPING", timeout_s=30, retry=Policy(tries=3, base_s=0))
    async def sleep(self, tools: Toolbox[Payload, Context]) -> Outcome:
        payload = tools.payload
        match payload.how:
            case "hangs":
                await asyncio.Event().wait()  # nobody sets it
            case "spins":
                while True:  # noqa: ASYNC110
                    await asyncio.sleep(0)  # that is what it plays
            case "cycles":
                return Go("again")
        if tools.context.slept < payload.times:
            tools.context.slept += 1
            return Sleep(payload.seconds)
        return Go("woken", result={"slept": tools.context.slept})


class Counting(Mission):
    """Counts in a thread or a process, and keeps what it has at each ten."""

    type = "test.counting"
    table = {"COUNTING": {"counted": "CLOSING"}, "CLOSING": {"closed": "SUCCEEDED"}}

    class Payload(BaseModel):
        """How far, and whether it takes its time."""

        to: int = 30
        slow_s: float = 0.0

    class Context(BaseModel):
        """Where it is."""

        at: int = 0
        began: int = 0

    @state("COUNTING", runs="thread", timeout_s=5)
    def count(self, tools: StepTools[Payload, Context]) -> Outcome:
        tools.context.began += 1
        while tools.context.at < tools.payload.to:
            tools.context.at += 1
            tools.progress(tools.context.at, tools.payload.to)
            if tools.context.at % 10 == 0:
                tools.checkpoint()
        time.sleep(tools.payload.slow_s)
        return Go("counted")

    @state("CLOSING", runs="process")
    def close(self, tools: StepTools[Payload, Context]) -> Outcome:
        return Go("closed", result=tools.context.model_dump())


class Newest(Mission):
    """A newer one replaces it before it acts."""

    type = "test.newest"
    target = "lamp"
    latest = Latest(aspect="power")
    table = {"LOOKING": {"seen": "ACTING"}, "ACTING": {"done": "SUCCEEDED"}}

    class Payload(BaseModel):
        """On what."""

        lamp: str = "lamp"

    @state("LOOKING")
    async def look(self, tools: Toolbox[Payload, Any]) -> Outcome:
        known = await tools.ask("lamps/1")
        return Go("seen") if known else Fail("no lamp")

    @state("ACTING", acting=True)
    async def act(self, tools: Toolbox[Payload, Any]) -> Outcome:
        answer = await tools.order("lamps/1/on", {})
        return Go("done") if answer.get("on") else Retry("still dark")
