"""kill -9 while an agent perceives, thinks and acts: it ends, no tool is run twice, and its conversation is whole."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from tests.home import running_home
from tests.processes import fatal
from tests.processes.commands import Front, events
from tests.processes.test_commit_boundaries import client_of, commits, mortal, revived
from tests.services import OutsideServices
from tests.stories.stack import running
from tests.waiting import eventually

STUDY = "light.study"
LEASE_S = "1.2"


async def tools_of(front: Front, task_id: str) -> list[dict[str, Any]]:
    """The missions that an agent's tools were."""
    answer = await front.client.get("/v1/missions", params={"correlation_id": task_id})
    return [one for one in answer.json()["missions"] if one["task_id"] != task_id]


def asked(outside: OutsideServices, task_id: str) -> dict[str, int]:
    """How often the model was asked, by the visit of THINKING."""
    counted = outside.http.get("/asked", params={"mission": task_id}).json()
    return {key.rpartition(":")[2]: times for key, times in counted.items()}


def runs(tally: Path) -> list[str]:
    """Whose handlers have run, in order."""
    return [line.split()[1] for line in tally.read_text().splitlines()]


def held(outside: OutsideServices, left: int | None) -> bool:
    """Whether so many requests are still to be slow; None: none."""
    return bool(outside.http.get("/faults").json()["model"]["times"] == left)


async def test_b02_a_kill_at_every_commit_boundary_of_an_agent_repeats_no_tool(redis_url: str, tmp_path: Path) -> None:
    deaths, tally = tmp_path / "deaths", tmp_path / "tally"
    deaths.mkdir()
    env = {"DUALLOOP_MISSIONS": "tests.missions.advisers", "DUALLOOP_TEST_TALLY": str(tally)}
    async with running(redis_url, tmp_path, workers=0) as stack, client_of(stack) as front:
        stack.env |= env
        with OutsideServices(tmp_path, stack.url) as outside:

            async def submit(point: str) -> str:
                goal = f"call test.letter with {json.dumps({'text': point})}"
                return await front.send("agent.run", payload={"goal": goal, "tools": ["test.letter"]})

            workers = await mortal(stack, outside, deaths, lease_s=2.5)  # a lapse is a thought more, which is counted
            whole = await submit("undisturbed")
            assert (await front.end(whole))["status"] == "SUCCEEDED"
            boundaries = [f"{when} {n + 1}" for n in range(commits(stack, whole)) for when in ("before", "after")]
            for worker in workers:
                worker.kill()  # so that nobody begins before its death is planned
            agents = {point: await submit(point) for point in boundaries}
            for point, one in agents.items():
                fatal.plan(deaths, one, point)
            for worker in workers:
                worker.spawn()
            async with revived(workers):
                repeated = list[str]()
                for point, one in agents.items():
                    document = await front.end(one)
                    assert (document["status"], document["result"]["steps"]) == ("SUCCEEDED", 2), (point, document)
                    assert fatal.died(deaths, one) or int(point.split()[1]) > commits(stack, one), point
                    (tool,) = await tools_of(front, one)
                    assert [deed["task_id"] for deed in document["result"]["tools"]] == [tool["task_id"]], point
                    assert runs(tally).count(tool["task_id"]) == 1, f"{point}: its worker was not killed"
                    times = asked(outside, one)
                    assert set(times) == {"1", "2"}, (point, times)
                    assert sorted(times.values()) in ([1, 1], [1, 2]), (point, times)
                    repeated += [point] if max(times.values()) > 1 else []
                assert len(repeated) == 2, "a thought that was not written is thought again, and no other"
                assert all(point.startswith("before") for point in repeated)


async def test_b01_b49_workers_that_die_with_a_thinking_model_lose_nothing(redis_url: str, tmp_path: Path) -> None:
    """Two die with it, so that the third thinks with it alone, in a process of its own."""
    with running_home(tmp_path) as home:
        async with (
            running(redis_url, tmp_path, workers=0, DUALLOOP_LEASE_S=LEASE_S) as stack,
            client_of(stack) as front,
        ):
            with OutsideServices(tmp_path, stack.url) as outside:
                urls = {"DUALLOOP_OUTSIDE_URL": outside.url, "DUALLOOP_HOME_URL": home.url}
                worker = stack.worker(**urls)
                await stack.start([worker])
                home.hold(STUDY, "act")
                one = await front.send("agent.run", payload={"goal": "turn on the lamp in the study"})
                home.when_held(STUDY)
                outside.faults("model", slow_s=60, times=2)  # its second thought takes for ever, twice
                home.release(STUDY)
                for left in (1, None):
                    await eventually(partial(held, outside, left), what="the model was asked, and thinks")
                    worker.kill()
                    await worker.start()
                document = await front.end(one)
                assert document["result"]["answer"] == "The lamp in the study is on."
                assert document["result"]["steps"] == 2
                assert '"event":"suspect"' in worker.tail(10**6)
                log = b"\n".join(events(stack, one))
                assert b'"event":"reclaimed","deaths":2' in log
                assert b'"event":"retry"' not in log, "alone it has the model too"
                assert len(await tools_of(front, one)) == 1
                assert len(home.acts(STUDY)) == 1


async def test_b01_workers_that_die_while_a_tool_acts_do_it_once(redis_url: str, tmp_path: Path) -> None:
    with running_home(tmp_path) as home:
        async with (
            running(redis_url, tmp_path, workers=0, DUALLOOP_LEASE_S=LEASE_S) as stack,
            client_of(stack) as front,
        ):
            with OutsideServices(tmp_path, stack.url) as outside:
                urls = {"DUALLOOP_OUTSIDE_URL": outside.url, "DUALLOOP_HOME_URL": home.url}
                workers = [stack.worker(**urls) for _ in range(2)]
                await stack.start(workers)
                home.hold(STUDY, "acted")  # the lamp is on, and its answer is not out yet
                one = await front.send("agent.run", payload={"goal": "turn on the lamp in the study"})
                assert home.when_held(STUDY) == ["acted"]
                for worker in workers:
                    worker.kill()
                home.release(STUDY)
                await stack.start(workers)
                document = await front.end(one)
                assert (document["status"], document["result"]["steps"]) == ("SUCCEEDED", 2)
                assert [deed["status"] for deed in document["result"]["tools"]] == ["SUCCEEDED"]
                assert len(await tools_of(front, one)) == 1
                assert len(home.acts(STUDY)) == 1
                assert asked(outside, one) == {"1": 1, "2": 1}
