"""The supervisor with small stand-ins for its parts: what it keeps alive, and how it ends them."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from dualloop import supervisor as supervisor_module
from dualloop.errors import Refusal
from dualloop.supervisor import Part, Supervisor
from tests.waiting import eventually

# Writes its pid, and on SIGTERM its name: the order in which parts stop. A "deaf" one does not listen.
STAND_IN = """
import os, signal, sys
folder, name = sys.argv[1:3]
def end(*_):
    if name.startswith("deaf"): return
    with open(folder + "/order", "a") as order: order.write(name + " ")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
with open(folder + "/pids." + name, "a") as pids: pids.write(str(os.getpid()) + " ")
while True: signal.pause()
"""


class Stage:
    """Stand-ins under a supervisor, and the traces they leave."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.harsh = asyncio.Event()
        self.ready = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None
        self._supervisor: Supervisor | None = None

    def part(self, name: str, *, grace_s: float = 10, base: bool = False) -> Part:
        argv = (sys.executable, "-ISc", STAND_IN, str(self.folder), name)
        return Part(name, argv, log=self.folder / f"{name}.log", grace_s=grace_s, base=base)

    def start(self, *stages: list[Part]) -> asyncio.Task[None]:
        self._supervisor = Supervisor(stages, self.said.append)
        self._keeping = asyncio.create_task(self._supervisor.run(self.ready.set))
        return self._keeping

    async def up(self, *stages: list[Part]) -> None:
        self.start(*stages)
        for part in (part for stage in stages for part in stage):
            await self.pid(part.name)
        await self.ready.wait()

    async def stop(self) -> None:
        assert self._keeping is not None
        assert self._supervisor is not None
        self._keeping.cancel()
        await asyncio.wait([self._keeping])
        await self._supervisor.stop(self.harsh)

    async def restart(self) -> None:
        assert self._supervisor is not None
        await self._supervisor.restart(lambda part: part.missions)

    async def pid(self, name: str, run: int = 1) -> int:
        """Of the part's first, second ... process, once it has its signal handler."""
        await eventually(lambda: len(self.words(f"pids.{name}")) >= run, what=f"run {run} of {name}")
        return int(self.words(f"pids.{name}")[run - 1])

    def words(self, file: str) -> list[str]:
        path = self.folder / file
        return path.read_text().split() if path.exists() else []


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.harsh.set()
    await made.stop()


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


async def test_what_cannot_be_written_down_ends_it_with_that_sentence(stage: Stage) -> None:
    def record() -> None:
        raise Refusal("no room")

    started = stage.start([replace(stage.part("redis", base=True), on_ready=record)])
    with pytest.raises(Refusal, match="no room"):
        await started
    await stage.stop()


async def test_the_stages_stop_in_order_and_those_of_one_stage_together(stage: Stage) -> None:
    await stage.up([stage.part("front")], [stage.part("back-1"), stage.part("back-2")], [stage.part("redis")])
    await stage.stop()
    order = stage.words("order")
    assert order[0] == "front"
    assert set(order[1:3]) == {"back-1", "back-2"}
    assert order[3:] == ["redis"]


async def test_a_base_part_is_ready_before_the_others_start(stage: Stage, redis_url: str) -> None:
    unready = replace(stage.part("redis", base=True), ready=f"{redis_url}-not-yet")
    stage.start([stage.part("front")], [unready])
    await stage.pid("redis")
    assert stage.words("pids.front") == []
    assert not stage.ready.is_set()


async def test_a_part_that_dies_is_started_again_and_its_last_words_are_told(stage: Stage) -> None:
    await stage.up([stage.part("back")], [stage.part("redis")])
    (stage.folder / "back.log").write_text("the lamp is on fire\n")
    os.kill(await stage.pid("back"), signal.SIGKILL)
    assert not gone(await stage.pid("back", run=2))
    assert any("back was killed (SIGKILL); starting it again" in line for line in stage.said)
    assert any("the lamp is on fire" in line for line in stage.said)
    assert len(stage.words("pids.redis")) == 1


async def test_each_death_in_a_row_is_followed_by_a_longer_pause(stage: Stage) -> None:
    await stage.up([stage.part("back")])
    for run in (1, 2, 3):
        os.kill(await stage.pid("back", run), signal.SIGKILL)
    await stage.pid("back", run=4)
    assert [line.partition(" in ")[2].partition(" s.")[0] for line in stage.said if "again in" in line] == [
        "0.1", "0.2", "0.4",
    ]  # fmt: skip


async def test_a_part_that_never_gets_ready_is_given_up_with_its_last_words(stage: Stage) -> None:
    broken = Part(
        "back",
        ("/bin/sh", "-c", "echo no module named fairy; exit 3"),
        ready="http://127.0.0.1:9/",
        log=stage.folder / "back.log",
    )
    with pytest.raises(
        Refusal, match=r"(?s)back does not start: it ended with exit code 3, 3 times.*no module named fairy"
    ):
        await stage.start([broken])


async def test_a_deaf_part_is_killed_when_its_grace_is_over(stage: Stage) -> None:
    await stage.up([stage.part("deaf", grace_s=0.1)], [stage.part("redis")])
    pid = await stage.pid("deaf")
    await stage.stop()
    assert gone(pid)
    assert stage.words("order") == ["redis"]
    assert "deaf had not stopped in time: killed." in stage.said


async def test_in_haste_nothing_is_waited_for_but_the_data(stage: Stage) -> None:
    await stage.up([stage.part("deaf")], [stage.part("redis", base=True)])
    stage.harsh.set()
    await stage.stop()
    assert stage.words("order") == ["redis"]


async def test_what_a_part_leaves_behind_goes_with_it(stage: Stage) -> None:
    leaving = Part("leaving", ("/bin/sh", "-c", f"sleep 1000 & echo $! > {stage.folder}/pids.child; wait"))
    stage.start([leaving])
    child = await stage.pid("child")
    await stage.stop()
    await eventually(lambda: gone(child))


async def test_parts_are_in_sessions_of_their_own(stage: Stage) -> None:
    await stage.up([stage.part("front")])
    pid = await stage.pid("front")
    assert os.getsid(pid) == pid != os.getsid(0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child's life to its parent's")
async def test_parts_do_not_outlive_a_killed_supervisor(stage: Stage) -> None:
    script = f"""
import asyncio
from dualloop.supervisor import Part, Supervisor
asyncio.run(Supervisor([[Part("front", {stage.part("front").argv!r})]], print).run(lambda: None))
"""
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
    pid = await stage.pid("front")
    parent.kill()
    await parent.wait()
    await eventually(lambda: gone(pid))
    assert stage.words("order") == ["front"]
    stage.start()


async def test_a_long_log_is_cut_and_its_past_kept_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "LOG_BYTES", 10)
    (stage.folder / "front.log").write_text("a very long story")
    await stage.up([stage.part("front")])
    await eventually(lambda: (stage.folder / "front.log").stat().st_size == 0)
    assert (stage.folder / "front.log.1").read_text() == "a very long story"


async def test_a_part_that_says_it_can_never_run_is_not_tried_again(stage: Stage) -> None:
    script = f"echo x >> {stage.folder}/pids.back; echo no mission of this name; exit {os.EX_CONFIG}"
    broken = Part("back", ("/bin/sh", "-c", script), ready="http://127.0.0.1:9/", log=stage.folder / "back.log")
    with pytest.raises(Refusal, match=r"(?s)back cannot run like this\.\n    no mission of this name"):
        await stage.start([broken])
    assert len(stage.words("pids.back")) == 1


async def test_some_parts_are_restarted_at_once_and_without_a_fuss(stage: Stage) -> None:
    back = replace(stage.part("back"), missions=True)
    await stage.up([stage.part("front")], [back, replace(stage.part("deaf", grace_s=0.1), missions=True)])
    first, deaf = await stage.pid("back"), await stage.pid("deaf")
    await stage.restart()
    assert gone(first)
    assert gone(deaf)
    second = await stage.pid("back", run=2)
    await stage.pid("deaf", run=2)
    assert stage.words("order") == ["back"]
    assert len(stage.words("pids.front")) == 1
    assert not any("again in" in line for line in stage.said)
    os.kill(second, signal.SIGKILL)
    await stage.pid("back", run=3)
    assert any("back was killed (SIGKILL); starting it again in 0.1 s" in line for line in stage.said)


async def test_a_restart_does_not_wait_for_a_pause_to_end(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "BACKOFF_S", (600.0, 600.0))
    await stage.up([replace(stage.part("back"), missions=True)])
    os.kill(await stage.pid("back"), signal.SIGKILL)
    await eventually(lambda: any("again in 600 s" in line for line in stage.said))
    await stage.restart()
    await stage.pid("back", run=2)
