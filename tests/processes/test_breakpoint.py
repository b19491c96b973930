"""A person at a breakpoint: the worker keeps its lease, nobody takes over, and the state's time-out does not run."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import redis

from backend_loop import debugger
from dualloop.lifeline import ends_with_parent
from shared import keys
from tests.processes.commands import Front, events
from tests.stories.stack import Part, Stack, running
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
LEASE_S = 2.0
LEASES = 3
"""How long the person looks, in leases: a loop that is dead ends its process after two."""


class Terminal:
    """A worker in a terminal of its own."""

    def __init__(self, part: Part) -> None:
        self.part, self._said = part, b""
        self._ours, theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DUALLOOP_")}
        part.process = subprocess.Popen(
            (sys.executable, "-m", "dualloop", "background"),
            env=inherited | part.env | {"DUALLOOP_HEALTH_PORT": str(part.port)},
            preexec_fn=ends_with_parent(signal.SIGKILL),  # noqa: PLW1509  tests run in the main thread
            start_new_session=True,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)

    def shows(self, text: str) -> Callable[[], bool]:
        def seen() -> bool:
            with contextlib.suppress(BlockingIOError, OSError):
                self._said += os.read(self._ours, 65536)
            return text.encode() in self._said

        return seen

    def types(self, line: str) -> None:
        os.write(self._ours, line.encode() + b"\n")

    def close(self) -> None:
        os.close(self._ours)


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url,
        tmp_path,
        workers=0,
        DUALLOOP_MISSIONS="tests.missions.plain,tests.missions.stops",
        DUALLOOP_LEASE_S=str(LEASE_S),
        DUALLOOP_STUCK_S=str(2 * LEASE_S),
    ) as stack:
        yield stack


@pytest.fixture
def terminal(stack: Stack) -> Iterator[Terminal]:
    terminal = Terminal(stack.worker())
    yield terminal
    terminal.close()


async def renewals(stack: Stack, many: int) -> None:
    """Wait until the one lease there is has been renewed so often."""
    with redis.Redis.from_url(stack.redis_url) as client:
        ends: list[float] = []

        def renewed() -> bool:
            for _, end in client.zrange(keys.prefix(0) + "owners", 0, -1, withscores=True):
                if not ends or end > ends[-1]:
                    ends.append(end)
            return len(ends) > many

        await eventually(renewed, 60, f"{many} renewals")


async def test_a_breakpoint_costs_neither_lease_nor_try(stack: Stack, terminal: Terminal, front: Front) -> None:
    await terminal.part.ready()
    one = await front.send("test.stops")
    await eventually(terminal.shows("(Pdb)"))
    other = stack.worker()
    await renewals(stack, 3 * LEASES)  # three a lease
    await stack.start([other])
    assert terminal.shows("at a breakpoint")()
    assert (await front.state(one))[0] == "RUNNING"
    terminal.types("c")
    document = await front.result(one)
    assert document["status"] == "SUCCEEDED"
    assert document["result"]["attempt"] == 1
    assert b"reclaimed" not in b"".join(events(stack, one))
    assert not terminal.shows("blocks the event loop")()
    assert not terminal.shows("event loop dead")()
    again = await front.send("test.noop")
    assert (await front.result(again))["status"] == "SUCCEEDED"
    os.killpg(terminal.part.running.pid, signal.SIGINT)  # Ctrl-C is the worker's still, and no debugger's
    await eventually(lambda: terminal.part.running.poll() is not None, 30)
    assert terminal.part.running.returncode == 0


async def test_a_breakpoint_that_nobody_can_type_at_is_passed_by(stack: Stack, front: Front) -> None:
    worker = stack.worker()
    await stack.start([worker])
    one = await front.send("test.stops")
    assert (await front.result(one))["result"]["attempt"] == 1
    assert "breakpoint passed by" in worker.tail()
    assert "stops.py:" in worker.tail()


def test_who_only_works_is_not_held() -> None:
    assert not debugger.held(0)


@pytest.mark.parametrize("name", ["cmd", "code"])
def test_a_worker_runs_no_module_of_an_author_that_is_named_as_one_of_the_debugger_s(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("raise SystemExit(9)")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import backend_loop.main"
    assert subprocess.run((sys.executable, "-c", program), cwd=ROOT, check=False).returncode == 0
