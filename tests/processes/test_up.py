"""``dualloop up`` as a person uses it: real parts, real signals."""

import contextlib
import getpass
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import redis

from dualloop.embedded import running_url
from tests.processes.upping import START_S, STOP_S, Stack, Up
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")

PARTS = ("foreground", "background", "home", "broker", "outside")


def test_ctrl_c_leaves_nothing_running_and_the_next_up_finds_the_data(up: Up) -> None:
    first = up(whole=True).ready()
    assert f"curl {first.url}/v1/commands" in first.said
    done = first.send()
    assert done["status"] == "SUCCEEDED", done
    assert done["freshness"]["source"] == "mqtt", "what everybody tries first goes the way that a real home goes"
    first.ctrl_c()
    assert first.ended() == 0
    assert first.processes() == {}
    assert "Stopped after" in first.said
    assert "killed" not in first.said

    second = up().ready()
    assert second.result(done["correlation_id"]) == done
    second.process.terminate()
    assert second.ended() == 0
    second.nothing_runs()


def test_the_parts_stop_in_order_and_redis_last(up: Up) -> None:
    stack = up().ready()
    left = ["dualloop foreground", "dualloop background", "dualloop home", "dualloop broker", "valkey-server"]
    stack.ctrl_c()
    while left:
        running = " ".join(until(lambda: stack.processes() or {0: ""}).values())
        gone = [part for part in left if part not in running]
        assert gone == left[: len(gone)]
        left = left[len(gone) :]
    assert stack.ended() == 0


def test_a_killed_up_leaves_nothing_running_and_the_next_one_waits_for_that(up: Up) -> None:
    first = up().ready()
    done = first.send()
    first.process.kill()
    second = up()
    first.process.wait()
    second.ready()
    assert len([line for line in second.processes().values() if "dualloop foreground" in line]) == 1
    assert second.result(done["correlation_id"]) == done
    second.process.kill()
    second.process.wait()
    second.nothing_runs()


def test_a_killed_supervisor_takes_its_parts_with_it(up: Up) -> None:
    stack = up().ready()
    children = Path(f"/proc/{stack.process.pid}/task/{stack.process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    assert stack.ended() != 0
    stack.nothing_runs()


def test_a_part_that_dies_is_started_again(up: Up) -> None:
    stack = up(whole=True).ready()
    marks = {part: f"dualloop {part}" for part in PARTS} | {"redis": "valkey-server"}
    for part, mark in marks.items():
        os.kill(stack.pid(mark), signal.SIGKILL)
        until(lambda part=part: f"{part} is ready again" in stack.said, START_S)  # type: ignore[misc]  # bound now
        assert f"{part} was killed (SIGKILL); starting it again" in stack.said
        until(lambda: _sends(stack), START_S)
    stack.ctrl_c()
    assert stack.ended() == 0
    assert stack.processes() == {}


def _sends(stack: Stack) -> bool:
    with contextlib.suppress(AssertionError, httpx.HTTPError):
        return bool(stack.send()["status"] == "SUCCEEDED")
    return False


def test_two_stacks_run_side_by_side(up: Up) -> None:
    one, two = up(folder="one"), up("--workers", "2", folder="two")
    done = one.ready().send()
    two.ready().send()
    assert httpx.get(f"{two.url}/v1/results/{done['correlation_id']}", timeout=30).status_code == 404
    assert len([line for line in two.processes().values() if "dualloop background" in line]) == 2
    one.ctrl_c()
    assert one.ended() == 0
    assert two.send()["status"] == "SUCCEEDED"


def test_without_workers_a_person_starts_one_in_a_terminal_of_its_own(up: Up) -> None:
    stack = up("--workers", "0").ready()
    assert "start one, in this folder, with dualloop background" in stack.said
    mine = subprocess.Popen(
        (sys.executable, "-m", "dualloop", "background"),
        env={**os.environ, "DUALLOOP_STATE_DIR": str(stack.folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: _sends(stack), START_S)
    finally:
        mine.terminate()
        assert mine.wait(STOP_S) == 0
    stack.ctrl_c()
    assert stack.ended() == 0


def test_a_second_up_on_the_same_folder_names_the_first(up: Up) -> None:
    first = up().ready()
    second = up()
    assert second.ended() == 1
    assert re.search(
        rf"already runs on .*: pid {first.process.pid}, of {getpass.getuser()}, since .*, at {first.url}", second.said
    )
    assert second.said.count("\n") == 1
    first.send()


def test_a_taken_port_is_told_before_anything_starts(up: Up) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        stack = up(DUALLOOP_PORT=str(port))
        assert stack.ended() == 1
    assert (
        stack.said == f"Port {port} of 127.0.0.1 is taken. "
        "Choose another one, here and where commands are sent: export DUALLOOP_PORT=8001.\n"
    )
    assert not (stack.folder / "redis").exists()


def test_a_configured_redis_is_used_and_none_started(up: Up, redis_url: str) -> None:
    stack = up(DUALLOOP_REDIS_URL=redis_url).ready()
    stack.send()
    assert not any("valkey-server" in line for line in stack.processes().values())
    assert running_url(stack.folder) is None
    stack.ctrl_c()
    assert stack.ended() == 0
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() > 0


def test_what_cannot_start_is_told_with_its_own_words(up: Up) -> None:
    stack = up(DUALLOOP_MISSIONS="no_such_module")
    assert stack.ended() == 1
    assert "background cannot run like this.\n    DUALLOOP_MISSIONS names 'no_such_module'" in stack.said
    assert "starting it again" not in stack.said, "it would not help"
    assert "Traceback" not in stack.said
    assert stack.processes() == {}


def test_a_second_ctrl_c_stops_at_once(up: Up) -> None:
    stack = up(DUALLOOP_DRAIN_S="600").ready()
    os.kill(stack.pid("dualloop background"), signal.SIGSTOP)
    stack.ctrl_c()
    until(lambda: not any("dualloop foreground" in line for line in stack.processes().values()), STOP_S)
    until(lambda: _sent_again(stack), STOP_S)
    assert stack.ended() == 0, stack.said
    assert stack.processes() == {}
    assert "background had not stopped yet: killed." in stack.said


def _sent_again(stack: Stack) -> bool:
    with contextlib.suppress(ProcessLookupError):
        stack.ctrl_c()
    return stack.process.poll() is not None
