"""One more process beside a stack that runs: it finds Redis and the home by the state folder."""

from pathlib import Path

import httpx

from tests.home import running_home
from tests.stories.stack import running

COMMAND = {"type": "device.control", "payload": {"entity": "light.hall", "action": "turn_on"}}


async def test_a_worker_that_joins_reaches_the_home_of_the_folder(redis_url: str, tmp_path: Path) -> None:
    with running_home(tmp_path) as home:
        async with (
            running(redis_url, tmp_path) as stack,
            httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=60) as client,
        ):
            ack = (await client.post("/v1/commands", json=COMMAND)).json()
            result = (await client.get(ack["links"]["result"], params={"wait": 30})).json()
            assert result["result"]["outcome"] == "confirmed", result
            assert (await client.get("/v1/home/devices/light.hall")).json()["changed_by"] == "command"
            assert home.look("light.hall")["value"]["power"] == "on"
