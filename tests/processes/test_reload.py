"""``dualloop up --reload`` as an author uses it: edit, save, go on; missions under way go on in the new code."""

import os
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.processes.upping import START_S, Stack, Up
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")

MODULE = '''"""An author's missions."""

import asyncio

from pydantic import BaseModel

from backend_loop.mission import Mission, state, steps
from backend_loop.outcomes import Go, WaitFor

LEAF = "green"
ENOUGH = 10**9


class Tea(Mission):
    """Waits for water."""

    type = "my.tea"
    table = {"WAITING_FOR_WATER": {"WATER": "BREWING"}, "BREWING": {"brewed": "SUCCEEDED"}}

    @state("WAITING_FOR_WATER")
    async def wait(self, tools):
        return WaitFor("WATER", 600)

    @state("BREWING")
    async def brew(self, tools):
        return Go("brewed", result={"leaf": LEAF})


class Count(Mission):
    """Counts leaves, from checkpoint to checkpoint."""

    type = "my.count"
    table = steps("COUNTING")

    class Context(BaseModel):
        leaves: int = 0

    @state("COUNTING", timeout_s=600)
    async def count(self, tools):
        before = tools.context.leaves
        while tools.context.leaves < ENOUGH:
            tools.context.leaves += 1
            tools.progress(tools.context.leaves)
            await tools.checkpoint()
            await asyncio.sleep(0.02)
        return Go("done", result={"leaf": LEAF, "before": before})
'''
NEW = MODULE.replace('"green"', '"black"').replace("10**9", "3") + MODULE[MODULE.index("class Tea") :].partition(
    "class Count"
)[0].replace("Tea", "Cocoa").replace("my.tea", "my.cocoa")
EDIT = "Edited author/teas.py: "


class Desk:
    """An author's folder, and the stack that runs its missions."""

    def __init__(self, folder: Path, up: Up, *options: str, **env: str) -> None:
        self.folder = folder
        here = {"PYTHONPATH": os.pathsep.join((str(folder), str(Path.cwd())))}
        self.stack: Stack = up("--reload", *options, cwd=folder, DUALLOOP_MISSIONS="author.teas", **here, **env)

    def write(self, text: str) -> None:
        (self.folder / "author" / "teas.py").write_text(text)

    def says(self, words: str, times: int = 1) -> None:
        until(lambda: self.stack.said.count(words) >= times, START_S, what=f"{words!r} in:\n{self.stack.said}")

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = httpx.post(self.stack.url + path, json=body, timeout=30)
        assert answer.status_code == 202, answer.text
        return dict(answer.json())

    def send(self, type_: str) -> str:
        return str(self.post("/v1/commands", {"type": type_})["correlation_id"])

    def far(self, id_: str) -> dict[str, Any]:
        return dict(httpx.get(f"{self.stack.url}/v1/results/{id_}", timeout=30).json())

    def workers(self) -> set[int]:
        return {pid for pid, line in self.stack.processes().items() if "dualloop background" in line}

    def known(self, type_: str) -> bool:
        return httpx.get(f"{self.stack.url}/v1/mission-types/{type_}", timeout=30).status_code == 200


@pytest.fixture
def author(tmp_path: Path) -> Path:
    folder = tmp_path / "desk"
    (folder / "author").mkdir(parents=True)
    (folder / "author" / "__init__.py").write_text("")
    (folder / "author" / "teas.py").write_text(MODULE)
    return folder


def test_an_edit_is_taken_over_and_what_is_under_way_goes_on_in_the_new_code(author: Path, up: Up) -> None:
    desk = Desk(author, up, "--workers", "2")
    desk.stack.ready()
    assert "when edited: author/__init__.py, author/teas.py" in desk.stack.said
    tea, count = desk.send("my.tea"), desk.send("my.count")
    until(lambda: desk.far(tea)["status"] == "WAITING", START_S)
    until(lambda: (desk.far(count)["progress"] or {"done": 0})["done"] > 3, START_S)
    workers = desk.workers()
    assert len(workers) == 2

    desk.write(NEW.replace('LEAF = "black"', 'LEAF = "black'))
    desk.says(f"{EDIT}of no use like this, the background goes on as it was.\n    author/teas.py, line 10: SyntaxError")
    assert desk.workers() == workers, "what runs goes on"
    assert desk.far(desk.send("my.tea"))["status"] in {"PENDING", "RUNNING", "WAITING"}

    desk.write(NEW)
    desk.says("Mended author/teas.py: restarting the background.")
    for name in ("background-1", "background-2"):
        desk.says(f"{name} is ready again.")
    assert not desk.workers() & workers
    counted = desk.stack.result(count)
    assert counted["result"]["leaf"] == "black"
    assert counted["result"]["before"] > 3, "it goes on behind its last checkpoint"
    desk.post(f"/v1/commands/{tea}/events", {"event": "WATER"})
    assert desk.stack.result(tea)["result"] == {"leaf": "black"}
    until(lambda: desk.known("my.cocoa"), START_S, what="the foreground follows the catalogue by itself")
    desk.send("my.cocoa")

    assert not list(author.glob("**/*.pyc")), "bytecode of an edit would pass for that of the next one"
    assert "killed" not in desk.stack.said
    assert "starting it again" not in desk.stack.said
    desk.stack.ctrl_c()
    assert desk.stack.ended() == 0
    assert desk.stack.processes() == {}


def test_it_does_not_start_with_what_cannot_be_used(author: Path, up: Up) -> None:
    (author / "author" / "teas.py").write_text(MODULE.replace('@state("BREWING")', "@state()"))
    desk = Desk(author, up)
    assert desk.stack.ended() == 1
    assert desk.stack.said.startswith("author/teas.py, line 24: TypeError: ")
    assert "Traceback" not in desk.stack.said
    assert not (desk.stack.folder / "logs" / "redis.log").exists()
    desk.stack.nothing_runs()


def test_without_reload_what_cannot_be_used_is_said_at_once_with_its_line(author: Path, up: Up) -> None:
    (author / "author" / "teas.py").write_text(MODULE.replace('LEAF = "green"', "LEAF = green"))
    here = {"PYTHONPATH": os.pathsep.join((str(author), str(Path.cwd())))}
    stack = up(cwd=author, DUALLOOP_MISSIONS="author.teas", **here)
    assert stack.ended() == 1
    assert "background cannot run like this.\n" in stack.said
    assert "    author/teas.py, line 10: NameError: name 'green' is not defined\n        LEAF = green\n" in stack.said
    assert "starting it again" not in stack.said
    assert stack.processes() == {}


def test_there_must_be_something_to_reload(up: Up) -> None:
    stack = up("--reload", DUALLOOP_MISSIONS="")
    assert stack.ended() == 1
    assert stack.said == "There is nothing to reload: name your mission modules in DUALLOOP_MISSIONS.\n"
