"""How far a mission is, as the command line shows it, from a handler that says so to the end of its mission."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio
import redis
from pydantic_core import from_json

from backend_loop.reporting import EVERY_S
from dualloop.client import Client
from shared import keys
from shared.clock import parse_rfc3339
from tests.stories.pseudoterminal import shown
from tests.stories.stack import MISSIONS, Stack, running
from tests.stories.talk import talking
from tests.stories.terminal import Terminal
from tests.waiting import eventually

ROWS = ("--type", "test.rows", "--payload")
SLOW = '{"total": 40, "pause_s": 0.1}'
SPINNER = re.compile("^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] ")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    folder, missions = tmp_path_factory.mktemp("rows"), f"{MISSIONS},tests.missions.rows"
    async with running(module_redis_url, folder, DUALLOOP_MISSIONS=missions) as stack:
        yield stack


@pytest.fixture
def terminal(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    return Terminal(tmp_path_factory.mktemp("terminal"), DUALLOOP_URL=stack.url)


@contextlib.asynccontextmanager
async def gated(stack: Stack, terminal: Terminal) -> AsyncIterator[str]:
    """Rows that are cleaned once somebody watches; their correlation_id."""
    gate = terminal.folder / "gate"
    async with Client(stack.url) as client:
        rows = {"total": 30, "pause_s": 0.1, "gate": str(gate)}
        id_ = (await client.submit("test.rows", rows)).correlation_id
    with redis.Redis.from_url(stack.redis_url) as db:

        async def opens() -> None:
            await eventually(lambda: db.hget(keys.mission(0, id_), "watchers"), within=60, what="somebody watches")
            gate.touch()

        async with asyncio.TaskGroup() as group:
            group.create_task(opens())
            yield id_


async def test_a_handler_says_how_far_it_is_and_a_socket_tells_it(stack: Stack) -> None:
    async with talking(stack.ws) as talk:
        id_ = await talk.submit("test.rows", {"total": 30, "pause_s": 0.05})
        result = await talk.result(id_)
        talk.check(id_)
        told = [frame for frame in talk.frames if frame["op"] == "progress"]
        cleaning = [frame["progress"]["done"] for frame in told if frame["state"] == "CLEANING"]
        assert cleaning == sorted(set(cleaning))
        spent_s = (parse_rfc3339(result["finished_at"]) - parse_rfc3339(result["started_at"])) / 1000
        assert 2 <= len(cleaning) <= 2 + spent_s / EVERY_S, "a few times a second, not at each row"
        assert {frame["progress"]["total"] for frame in told if frame["state"] == "CLEANING"} == {30}
        assert talk.frames[-1]["op"] == "result"
        assert result["progress"] == {"done": 2, "total": None, "message": None}
        states = [frame["state"] for frame in talk.frames if frame["op"] in {"event", "progress"}]
        assert [state for state, after in pairwise([*states, ""]) if state != after] == [
            "CLEANING",
            "EXPORTING",
            "SUCCEEDED",
        ]


async def test_the_python_client_gets_it_too(stack: Stack) -> None:
    async with Client(stack.url) as client:
        ack = await client.submit("test.rows", {"total": 20, "pause_s": 0.05})
        frames = [frame async for frame in client.watch(ack.correlation_id)]
        assert any(frame["op"] == "progress" and frame["progress"]["total"] == 20 for frame in frames)
        assert [frame["seq"] for frame in frames if frame["op"] == "event"] == [1, 2, 3]
        assert frames[-1]["op"] == "result"


async def test_a_terminal_has_one_line_that_is_rewritten_and_gone_at_the_end(terminal: Terminal) -> None:
    screen = await shown(terminal, 100, "send", *ROWS, SLOW, "--wait")
    assert screen.code == 0
    assert screen.left[0].startswith("SUCCEEDED after ")
    assert screen.left[2] == "2"
    assert not any(map(SPINNER.match, screen.left))
    rewritten = [SPINNER.sub("", line) for line in screen.ever if SPINNER.match(line)]
    bars = [line for line in rewritten if "━" in line]
    assert all(len(line) <= 98 for line in bars)
    done = [int(found[1]) for line in bars if (found := re.match(r"CLEANING  ━+[╸╺]?━* +(\d+) of 40 \(", line))]
    assert done == sorted(done)
    assert len(set(done)) >= 4
    assert any(re.search(r"\d/s, \d+ s left  row \d+$", line) for line in bars)


async def test_a_terminal_keeps_the_events_of_a_watch_above_the_line(stack: Stack, terminal: Terminal) -> None:
    async with gated(stack, terminal) as id_:
        screen = await shown(terminal, 80, "watch", id_)
    assert [line.split()[1:] for line in screen.left[:3]] == [
        ["RUNNING", "CLEANING"],
        ["RUNNING", "EXPORTING"],
        ["SUCCEEDED"],
    ]
    assert any("of 30 (" in line for line in screen.ever if SPINNER.match(line))
    assert not any(map(SPINNER.match, screen.left))


async def test_a_pipe_gets_plain_lines_and_not_many(stack: Stack, terminal: Terminal) -> None:
    async with gated(stack, terminal) as id_:
        said = await terminal.run("watch", id_)
    lines = [line.split(None, 3) for line in said.err.splitlines()]
    told = [line for line in lines if len(line) == 4 and line[1:3] == ["RUNNING", "CLEANING"]]
    assert 1 <= len(told) <= 15
    assert re.fullmatch(r"\d+ of 30 \(\d+ %\)(, [\d.]+/s, \d+ s left)?: row \d+", told[-1][3])
    assert not any(map(SPINNER.match, (said.out + said.err).splitlines()))
    sent = await terminal.run("send", *ROWS, SLOW, "--wait")
    told_too = [line for line in sent.err.splitlines() if line.startswith("CLEANING  ")]
    assert 1 <= len(told_too) <= 20


async def test_machines_get_documents_only(terminal: Terminal) -> None:
    sent = await terminal.run("send", *ROWS, '{"pause_s": 0.05}', "--wait", "--json")
    assert sent.json["progress"] == {"done": 2, "total": None, "message": None}
    said = await terminal.run("watch", sent.json["task_id"], "--json")
    assert [from_json(line)["status"] for line in said.out.splitlines()] == ["RUNNING"] * 2 + ["SUCCEEDED"] * 2


async def test_progress_is_listed_and_shown_and_explained(stack: Stack, terminal: Terminal) -> None:
    async with Client(stack.url) as client, talking(stack.ws) as talk:
        id_ = await talk.submit("test.rows", {"total": 3, "pause_s": 600})
        await talk.until(lambda frame: frame["op"] == "progress")
        for columns, has_it in ((120, True), (80, True), (45, False)):
            screen = await shown(terminal, columns, "missions", "ls", "--type", "test.rows", "--status", "RUNNING")
            assert ("DONE" in screen.left[0].split()) is has_it
            assert (" 0 %" in screen.left[1]) is has_it
        assert "DONE" not in (await terminal.run("missions", "ls", "--type", "test.noop")).out
        out = (await terminal.run("missions", "show", id_)).out
        assert re.search(r"^  Progress +0 of 3 \(0 %\): row 0, told [\d.]+ m?s ago$", out, re.MULTILINE)
        why: dict[str, Any] = (await terminal.run("why", id_, "--json")).json
        assert "; 0 of 3 (0 %) done, row 0, as it said " in why["why"]
        await client.cancel(id_, wait=30)
        assert (await terminal.run("why", id_)).out.endswith("; it had come to 0 of 3 (0 %), row 0.\n")


async def test_what_failed_says_how_far_it_had_come(terminal: Terminal) -> None:
    said = await terminal.run("send", *ROWS, '{"total": 8, "fails_at": 5}', "--wait")
    assert said.code == 1
    assert "\n5 of 8 (62 %): row 5\n" in said.out
