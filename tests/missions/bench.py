"""Small missions that ask the outside, for the test kit alone."""

import asyncio
import socket
from typing import Any

from pydantic import BaseModel

from backend_loop.mission import Mission, state, undo
from backend_loop.outcomes import Fail, Go, Outcome, Sleep
from backend_loop.retry import Retry
from backend_loop.services import ServiceRefused
from backend_loop.toolbox import Toolbox


class Asker(Mission):
    """Asks one thing, orders another, and says what it was told."""

    type = "test.asker"
    permanent = (ServiceRefused,)
    table = {"ASKING": {"asked": "ORDERING"}, "ORDERING": {"ordered": "SUCCEEDED"}}

    class Payload(BaseModel):
        """What is ordered, and how long it waits."""

        thing: str = "lamp"
        within_s: float = 5.0

    class Context(BaseModel):
        """What it was told."""

        price: int = 0

    @state("ASKING", retry=Retry(tries=3, base_s=1))
    async def ask(self, tools: Toolbox[Payload, Context]) -> Outcome:
        item = await tools.ask(f"stock/items/{tools.payload.thing}", within_s=tools.payload.within_s)
        tools.context.price = item["price"]
        return Go("asked")

    @state("ORDERING", acting=True, retry=Retry(tries=3, base_s=1))
    async def order(self, tools: Toolbox[Payload, Context]) -> Outcome:
        body = {"thing": tools.payload.thing, "cents": tools.context.price}
        made = await tools.order("shop/orders", body, within_s=tools.payload.within_s)
        return Go("ordered", result=made)


class Wired(Mission):
    """Waits for a word over a socket of its own, leaves it open, and sleeps."""

    type = "test.wired"
    table = {"LISTENING": {"heard": "SLEEPING"}, "SLEEPING": {"woken": "SUCCEEDED"}}
    deadline_s = 86_400
    near: socket.socket
    kept: list[asyncio.StreamWriter] = []

    class Context(BaseModel):
        """What it heard."""

        word: str = ""

    @state("LISTENING", timeout_s=5)
    async def listen(self, tools: Toolbox[Any, Context]) -> Outcome:
        reader, writer = await asyncio.open_connection(sock=self.near)
        self.kept.append(writer)
        tools.context.word = (await reader.readline()).decode().strip()
        return Go("heard")

    @state("SLEEPING")
    async def sleep(self, tools: Toolbox[Any, Context]) -> Outcome:
        if tools.context.word == "":
            self.kept.pop().close()
            return Go("woken")
        tools.context.word = ""
        return Sleep(3_600)


class Witness(Mission):
    """Notes what of it ran."""

    type = "test.witness"
    table = {"WORKING": {"worked": "FAILING"}, "FAILING": {"never": "SUCCEEDED"}}
    seen: list[str] = []

    @state("WORKING", acting=True)
    async def work(self, tools: Toolbox[Any, Any]) -> Outcome:
        self.seen.append(f"begins {tools.fence} {tools.taken_over}")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(tools.order("a/b", {}))
                group.create_task(self._side())
        except BaseException:
            self.seen.append("heard of it")
            raise
        finally:
            self.seen.append("finally")
        return Go("worked")

    async def _side(self) -> None:
        await asyncio.sleep(10)
        self.seen.append("side")

    @undo("WORKING")
    async def unwork(self, tools: Toolbox[Any, Any]) -> None:
        self.seen.append(f"undoes {tools.may_have_happened}")

    @state("FAILING")
    async def fail(self, _tools: Toolbox[Any, Any]) -> Outcome:
        return Fail("it always does")
