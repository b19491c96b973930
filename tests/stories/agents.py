"""Agents on a real stack, with a real home and the scripted model, for tests that say what becomes of them."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.home import Home, running_home
from tests.processes.commands import Front
from tests.services import OutsideServices
from tests.stories.stack import Stack, running
from tests.waiting import eventually

STUDY, HALL, LOCK = "light.study", "light.hall", "lock.front_door"


class Agents:
    """A stack with a home and a model."""

    def __init__(self, stack: Stack, home: Home, outside: OutsideServices) -> None:
        self.stack, self.home, self.outside = stack, home, outside
        self.front = Front(stack.foregrounds[0])

    async def send(self, goal: str, *, command: dict[str, Any] | None = None, **payload: Any) -> str:
        return await self.front.send("agent.run", payload={"goal": goal, **payload}, **command or {})

    async def run(self, goal: str, **payload: Any) -> dict[str, Any]:
        """Its end."""
        return await self.front.end(await self.send(goal, **payload))

    def script(self, goal: str, *replies: dict[str, Any]) -> None:
        self.outside.http.put("/scripts", json={"goal": goal, "replies": replies}).raise_for_status()

    def asked(self, mission: str) -> dict[str, int]:
        """How often the model was asked, by key."""
        counted: dict[str, int] = self.outside.http.get("/asked", params={"mission": mission}).json()
        return counted

    async def mission(self, task_id: str) -> dict[str, Any]:
        """All about it."""
        return dict((await self.front.client.get(f"/v1/missions/{task_id}")).json())

    async def turns(self, task_id: str) -> list[dict[str, Any]]:
        """Its conversation, as it is kept."""
        turns: list[dict[str, Any]] = (await self.mission(task_id))["context"]["turns"]
        return turns

    async def family(self, task_id: str) -> list[dict[str, Any]]:
        """Missions of its correlation id, without itself."""
        answer = await self.front.client.get("/v1/missions", params={"correlation_id": task_id})
        return [one for one in answer.json()["missions"] if one["task_id"] != task_id]

    async def acts(self, task_id: str, entity: str) -> list[dict[str, Any]]:
        """What its tools have done to a device."""
        ids = {child["task_id"] for child in await self.family(task_id)}
        return [act for act in self.home.acts(entity) if act["key"].partition(":")[0] in ids]

    async def state(self, task_id: str, state: str, status: str = "RUNNING") -> None:
        """Wait until it is there."""

        async def there() -> bool:
            return await self.front.state(task_id) == (status, state)

        await eventually(there, what=f"{task_id} is {status} in {state}")

    def fresh(self) -> "Agents":
        """With a model that is well, and every lamp off."""
        self.outside.faults("model")
        self.home.fresh()
        return self


@contextlib.asynccontextmanager
async def running_agents(redis_url: str, folder: Path) -> AsyncIterator[Agents]:
    """Until the end of the block; with `tests.missions.advisers` besides what comes with the product."""
    with running_home(folder) as home:
        async with running(redis_url, folder, workers=0, DUALLOOP_MISSIONS="tests.missions.advisers") as stack:
            with OutsideServices(folder, stack.url) as outside:
                urls = {"DUALLOOP_OUTSIDE_URL": outside.url, "DUALLOOP_HOME_URL": home.url}
                await stack.start([stack.worker(**urls)])
                agents = Agents(stack, home, outside)
                yield agents
                await agents.front.client.aclose()


def answers(turns: list[dict[str, Any]]) -> list[Any]:
    """What the model was told, call by call."""
    return [json.loads(call["answer"]) for turn in turns for call in turn["calls"]]
