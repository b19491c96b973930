"""`agent.run` at its limits: budgets, long conversations, replays, and a model that is not well."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.processes.commands import Front
from tests.stories.agents import HALL, STUDY, Agents, answers, running_agents
from tests.stories.stack import running
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_agents(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Agents]:
    async with running_agents(module_redis_url, tmp_path_factory.mktemp("agents")) as agents:
        yield agents


@pytest.fixture
def agents(shared_agents: Agents) -> Agents:
    """All well there, and every lamp off."""
    return shared_agents.fresh()


# --- its budgets, and what is kept


async def test_out_of_steps_it_fails_with_what_was_done(agents: Agents) -> None:
    one = await agents.send("loop for ever", max_steps=3)
    document = await agents.front.end(one)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "too_many_transitions")
    assert "no answer in 3 steps, of 3 allowed; it wanted device-query" in document["error"]["message"]
    result = document["result"]
    assert (result["answer"], result["steps"], len(result["tools"])) == (None, 3, 2)
    assert len(await agents.family(one)) == 2, "what nobody would look at is not done"
    assert list(agents.asked(one).values()) == [1, 1, 1]


async def test_it_goes_on_where_it_was_when_it_is_given_more_steps(agents: Agents) -> None:
    one = await agents.send("loop for ever", max_steps=2)
    await agents.front.end(one)
    more = {"payload": {"goal": "loop for ever", "max_steps": 4}, "from": "failed_state"}
    answer = await agents.front.client.post(f"/v1/dead-letters/{one}/replay", json=more)
    assert answer.status_code == 202, answer.text
    document = await agents.front.end(one)
    assert (document["run"], document["result"]["steps"]) == (2, 4)
    assert [deed["step"] for deed in document["result"]["tools"]] == [1, 3], "step 2 was not done, and is thought anew"
    assert len({deed["task_id"] for deed in document["result"]["tools"]}) == 2


async def test_from_the_start_it_meets_what_was_done_only_where_it_wishes_the_same(agents: Agents) -> None:
    letters = [["test-letter", {"text": text}] for text in ("old", "kept", "new")]
    agents.script("start anew", {"calls": letters[:2]}, {"calls": letters[:1]})
    one = await agents.send("start anew", tools=["test.letter"], max_steps=2)
    await agents.front.end(one)
    before = await agents.family(one)
    agents.script("start anew", {"calls": [letters[2], letters[1]]}, {"say": "read"})
    answer = await agents.front.client.post(f"/v1/dead-letters/{one}/replay", json={"from": "start"})
    assert answer.status_code == 202, answer.text
    assert (await agents.front.end(one))["result"]["answer"] == "read"
    assert [told["result"]["text"] for told in answers(await agents.turns(one))] == ["new", "kept"]
    assert len(await agents.family(one)) == len(before) + 1


async def test_a_last_step_that_is_the_answer_is_in_time(agents: Agents) -> None:
    assert (await agents.run("turn on the lamp in the study", max_steps=2))["status"] == "SUCCEEDED"


async def test_out_of_tokens_it_fails_with_what_was_done(agents: Agents) -> None:
    look = ["device-query", {"entity": HALL}]
    agents.script("think hard", {"calls": [look]}, {"calls": [look], "tokens": 50_000})
    document = await agents.run("think hard", max_tokens=50_000)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "too_large")
    assert "of 50000 allowed" in document["error"]["message"]
    assert (document["result"]["steps"], len(document["result"]["tools"])) == (2, 1)


async def test_a_long_conversation_is_kept_within_bounds(agents: Agents) -> None:
    calls = [{"calls": [["test-letter", {"text": f"{n:04}", "times": 950}]]} for n in range(25)]
    agents.script("many letters", *calls, {"say": "read"})
    one = await agents.send("many letters", tools=["test.letter"], max_steps=30, max_tokens=10**6)
    document = await agents.front.end(one)
    assert (document["result"]["answer"], document["result"]["steps"]) == ("read", 26)
    told = answers(await agents.turns(one))
    kept = ["result" in answer for answer in told]
    assert kept == sorted(kept), "the oldest went first"
    assert 10 < sum(kept) < 16
    assert len(told) == 25
    assert told[-1]["result"]["text"].startswith("0024")


# --- a model that misbehaves, a person who does not wait


@pytest.mark.parametrize("fault", ["down", "garbage", "lose_reply"])
async def test_a_model_that_is_not_well_is_asked_again_and_nothing_is_done_twice(agents: Agents, fault: str) -> None:
    agents.outside.faults("model", **{fault: True}, times=2)
    one = await agents.send("turn on the lamp in the study")
    document = await agents.front.end(one)
    assert document["status"] == "SUCCEEDED"
    assert len(await agents.family(one)) == 1
    assert len(await agents.acts(one, STUDY)) == 1
    times = 1 if fault == "down" else 3
    assert agents.asked(one) == {f"{one}:1:THINKING:1": times, f"{one}:1:THINKING:2": 1}
    assert document["result"]["steps"] == 2


async def test_a_model_that_refuses_ends_it_with_what_was_done(agents: Agents) -> None:
    agents.home.hold(STUDY, "act", every=True)
    one = await agents.send("turn on the lamp in the study")
    agents.home.when_held(STUDY)
    agents.outside.faults("model", refuses=True)
    agents.home.release(STUDY)
    document = await agents.front.end(one)
    assert (document["error"]["code"], document["error"]["state"]) == ("permanent", "THINKING")
    assert "model says no" in document["error"]["message"]
    assert [deed["status"] for deed in document["result"]["tools"]] == ["SUCCEEDED"]


async def test_the_deadline_comes_while_the_model_thinks(agents: Agents) -> None:
    agents.outside.faults("model", slow_s=20, times=1)
    one = await agents.send("turn on the lamp in the study")
    await agents.state(one, "THINKING")
    agents.stack.expire(one)
    document = await agents.front.end(one)
    assert document["error"]["code"] == "deadline"
    assert await agents.family(one) == []


async def test_a_cancel_reaches_a_thinking_model_and_a_tool_under_way(agents: Agents) -> None:
    agents.outside.faults("model", slow_s=20, times=1)
    one = await agents.send("turn on the lamp in the study")
    await agents.state(one, "THINKING")
    await agents.front.cancel(one)
    assert (await agents.front.end(one))["reason"] == "requested"
    agents.home.hold(STUDY, "observe", every=True)
    other = await agents.send("turn on the lamp in the study")
    agents.home.when_held(STUDY)
    await agents.state(other, "ACTING", "WAITING")
    await agents.front.cancel(other)
    assert (await agents.front.end(other))["reason"] == "requested"
    (child,) = await agents.family(other)
    assert (await agents.front.end(child["task_id"]))["status"] == "CANCELLED"


async def test_without_a_model_it_says_what_to_do(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as stack:
        front = Front(stack.foregrounds[0])
        one = await front.send("agent.run", payload={"goal": "x"})

        async def told() -> bool:
            return "set DUALLOOP_MODEL_URL" in (await front.client.get(f"/v1/missions/{one}")).text

        await eventually(told)
        stack.expire(one)
        assert (await front.end(one))["status"] == "FAILED"
        assert await told()
        await front.client.aclose()


async def test_a_key_that_is_none_is_said_at_the_start_and_not_shown(redis_url: str, tmp_path: Path) -> None:
    env = {"DUALLOOP_MODEL_URL": "http://127.0.0.1:1/v1", "DUALLOOP_MODEL_KEY": "sk-\u20264711"}
    async with running(redis_url, tmp_path, workers=0) as stack:
        worker = stack.worker(**env)
        worker.spawn()
        await eventually(lambda: worker.running.poll() is not None, within=60, what="it ends")
        assert "DUALLOOP_MODEL_KEY has characters" in worker.tail()
        assert "4711" not in worker.tail()
