"""The command line against real processes: what it prints, what it says on failure, and its exit code."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import redis
from pydantic_core import from_json

from dualloop.client import Client
from shared import keys
from tests.stories.stack import Stack, running
from tests.stories.terminal import Terminal
from tests.waiting import eventually


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(redis_url, tmp_path) as stack:
        yield stack


@pytest.fixture
def terminal(stack: Stack, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path, DUALLOOP_URL=stack.url)


async def test_send_says_where_the_result_will_be(terminal: Terminal) -> None:
    said = await terminal.run("send", "--type", "test.noop")
    assert (said.code, said.err) == (0, "")
    correlation_id = said.out.split()[3]
    assert said.out.startswith(f"Accepted test.noop as {correlation_id}\n")
    assert f"dualloop watch {correlation_id}" in said.out
    ack = (await terminal.run("send", "--type", "test.noop", "--json")).json
    assert ack["status"] == "PENDING"
    assert len(ack["correlation_id"]) == 40


async def test_send_waits_for_the_result(terminal: Terminal) -> None:
    said = await terminal.run("send", "--type", "test.noop", "--payload", '{"n": 7}', "--wait")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("SUCCEEDED after ")
    assert '"n": 7' in said.out
    said = await terminal.run(
        "send", "--type", "test.noop", "--payload", "-", "--wait", "--json", stdin='{"n": "客厅"}'
    )
    assert said.code == 0
    assert said.json["result"] == {"n": "客厅"}


async def test_send_passes_its_options_on(terminal: Terminal) -> None:
    options = ("--priority", "bulk", "--deadline", "77", "--target", "room.1")
    ack = (await terminal.run("send", "--type", "test.noop", *options, "--json")).json
    mission = (await terminal.run("missions", "show", ack["task_id"], "--json")).json
    assert (mission["priority"], mission["target"]) == ("bulk", "room.1")
    assert mission["envelope"]["deadline"] != mission["created_at"]


async def test_a_mission_that_fails_is_a_command_that_fails(terminal: Terminal) -> None:
    said = await terminal.run("send", "--type", "test.flaky", "--payload", '{"failures": 9}', "--wait")
    assert said.code == 1
    assert said.out.startswith("FAILED after ")
    assert said.err == "test.flaky FAILED with retries_exhausted in TRYING: as told (try 4 of 4).\n"


async def test_what_is_wrong_is_one_sentence(terminal: Terminal) -> None:
    for args, sentence in (
        ("send --type no.such", "No worker knows the type 'no.such'"),
        ('send --type test.slow --payload {"seconds":-1}', "/payload/seconds"),
        ("send --type test.noop --payload {", "The payload is not JSON"),
        ("send --type test.noop --payload [1]", "The payload must be a JSON object"),
        ('send --type test.noop --payload {"n":NaN}', "The payload is not JSON"),
        ("why x", "This is no correlation_id of this system"),
        ("watch x", "This is no correlation_id of this system"),
        ("missions show " + "0" * 40, "This is no correlation_id of this system"),
        ("types show no.such", "No live worker knows no.such; known: "),
        ("types show test.noop --version 7", "No live worker knows test.noop in version 7; known: 1."),
    ):
        said = await terminal.run(*args.split())
        assert (said.code, said.out) == (1, ""), args
        assert said.err.startswith(sentence), args
        assert said.err.count("\n") == 1, args


async def test_each_fault_of_a_payload_has_its_line(terminal: Terminal) -> None:
    said = await terminal.run("send", "--type", "test.slow", "--payload", '{"seconds": -1, "entity": 3}')
    assert (said.code, said.out) == (1, "")
    assert sorted(line.partition(":")[0] for line in said.err.splitlines()) == ["/payload/entity", "/payload/seconds"]


async def test_missions_are_listed_shown_cancelled_and_explained(stack: Stack, terminal: Terminal) -> None:
    async with Client(stack.url) as client:
        slow = (await client.submit("test.slow", {"seconds": 600, "entity": "light.kitchen"})).task_id
        waiter = (await client.submit("test.slow", {"seconds": 600, "entity": "light.kitchen"})).task_id
        await client.wait((await client.submit("test.noop")).task_id)

        listed = await terminal.run("missions", "ls")
        assert listed.out.splitlines()[0].split() == ["MISSION", "STATUS", "STATE", "TYPE", "TARGET", "AGE"]
        assert len(listed.out.splitlines()) == 4
        assert f"{waiter}  PENDING (target)  ACTING  test.slow  light.kitchen" in listed.out
        running = await terminal.run(
            "missions", "ls", "--status", "RUNNING", "--status", "SUCCEEDED", "-q", "slow", "--json"
        )
        assert [row["task_id"] for row in running.json["missions"]] == [slow]
        assert (await terminal.run("missions", "ls", "--type", "no.such")).out == "No mission fits.\n"
        youngest = (await terminal.run("missions", "ls", "--limit", "1")).out.splitlines()
        assert youngest[1].split()[2] == "test.noop"
        assert youngest[2] == "The youngest 1 of 3: see more with --limit."

        shown = (await terminal.run("missions", "show", slow)).out
        assert shown.startswith("RUNNING in ACTING on worker ")
        for told in (slow, "light.kitchen, held by this mission, 1 waiting", '"seconds": 600', "SEQ", "Lease"):
            assert told in shown
        worker = shown.removeprefix("RUNNING in ACTING on worker ").split()[0]
        log = stack.workers[0].tail(10**6).splitlines()
        (held,) = (from_json(line) for line in log if f'"owner":"{worker}' in line.replace(" ", ""))
        assert (held["event"], held["pid"]) == ("lease held", stack.workers[0].running.pid)
        why = await terminal.run("why", waiter[:38])
        assert why.out.startswith(f"PENDING: waits for the target light.kitchen, held by {slow}; next in line; ")
        assert (await terminal.run("why", waiter, "--json")).json["task_id"] == waiter

        await client.pause(waiter)  # else it begins if the one before it happens to be cancelled first
        cancelled = await terminal.run("missions", "cancel", waiter, slow)
        assert cancelled.code == 0
        assert f"{waiter}  cancelled\n" in cancelled.out
        assert (await client.wait(slow, timeout=60))["status"] == "CANCELLED"


async def test_types_are_listed_and_shown(terminal: Terminal) -> None:
    listed = await terminal.run("types", "ls")
    assert "test.slow" in listed.out
    assert "Five committed states." in listed.out
    assert "test.five" in [row["type"] for row in (await terminal.run("types", "ls", "--json")).json]
    shown = (await terminal.run("types", "show", "test.patient")).out
    assert shown.startswith("test.patient@1\nSleeps, then waits for an outside event.\n")
    assert "├─ timed_out (time is up) ──" in shown
    assert re.search(r"^wait_s +number$", shown, re.MULTILINE)
    assert '"wait_s"' in (await terminal.run("types", "show", "test.patient", "--schema")).out


async def test_ctrl_c_ends_the_waiting_only(stack: Stack, terminal: Terminal) -> None:
    waiting = await terminal.start("send", "--type", "test.slow", "--payload", '{"seconds": 600}', "--wait")
    async with Client(stack.url) as client:

        async def watched() -> bool:
            rows = (await client.missions(type="test.slow"))["missions"]
            with redis.Redis.from_url(stack.redis_url) as db:
                return bool(rows and db.hget(keys.mission(0, rows[0]["task_id"]), "watchers"))

        await eventually(watched, within=30, what="it waits for its mission")
        waiting.send_signal(2)
        out, err = await waiting.communicate()
        assert (waiting.returncode, out) == (130, b"")
        waiting.close()
        assert err.decode() == "\nIt goes on: only the waiting has ended.\n"
        [row] = (await client.missions(type="test.slow"))["missions"]
        assert row["status"] == "RUNNING"


async def test_watch_shows_what_happens_up_to_the_result(stack: Stack, terminal: Terminal) -> None:
    async with Client(stack.url) as client:
        five = (await client.submit("test.five")).correlation_id
        flaky = (await client.submit("test.flaky", {"failures": 9})).correlation_id
    said = await terminal.run("watch", five)
    assert (said.code, said.err) == (0, "")
    assert [line.split()[1:] for line in said.out.splitlines()[:3]] == [
        ["RUNNING", "ONE"],
        ["RUNNING", "TWO"],
        ["RUNNING", "THREE"],
    ]
    assert "SUCCEEDED after " in said.out
    lines = (await terminal.run("watch", five, "--after", "4", "--json")).out.splitlines()
    assert [from_json(line)["seq"] for line in lines] == [5, 6, 6]
    failed = await terminal.run("watch", flaky)
    assert failed.code == 1
    assert '"error":"as told"' in failed.out
    assert failed.err.startswith("test.flaky FAILED with retries_exhausted")


async def test_ctrl_c_ends_the_watching_only(stack: Stack, terminal: Terminal) -> None:
    async with Client(stack.url) as client:
        slow = (await client.submit("test.slow", {"seconds": 600})).correlation_id
        said = await terminal.run("watch", slow, "--json", interrupt_at=b'"seq":1')
        assert said.code == 130
        assert said.err == f"\nIt goes on. See the rest: dualloop watch {slow}\n"
        assert (await client.result(slow))["status"] == "RUNNING"


async def test_without_a_foreground_it_says_what_to_do(tmp_path: Path) -> None:
    said = await Terminal(tmp_path, DUALLOOP_PORT="9").run("send", "--type", "test.noop")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("No foreground answers at http://127.0.0.1:9 (")
    assert said.err.endswith("Start one with dualloop up, or name another in DUALLOOP_URL.\n")
    wrong = await Terminal(tmp_path, DUALLOOP_PORT="many").run("missions", "ls")
    assert (wrong.code, wrong.err[:15]) == (1, "DUALLOOP_PORT: ")
