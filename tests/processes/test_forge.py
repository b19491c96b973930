"""What the forge starts is like what `python` starts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forge import forked, piped
from tests.processes.proc import gone
from tests.waiting import until

ENV = {"PATH": os.environ["PATH"], "WORD": "hello"}
WAITS = "import time; print('begun', flush=True); time.sleep(600)"


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        ("pass", 0),
        ("import sys; sys.exit(3)", 3),
        ("raise SystemExit('a sentence')", 1),
        ("1 / 0", 1),
        ("import os; os._exit(9)", 9),
        ("import os; os.kill(os.getpid(), 15)", -15),
    ],
)
def test_it_ends_as_python_ends(tmp_path: Path, code: str, ends: int) -> None:
    said = []
    for name in ("forked", "python"):
        with (tmp_path / name).open("wb") as file:
            if name == "forked":
                code_is = forked(("-c", code), env=ENV, stdout=file, stderr=file).wait(60)
            else:
                code_is = subprocess.call((sys.executable, "-c", code), env=ENV, stdout=file, stderr=file)
        assert code_is == ends
        said.append((tmp_path / name).read_text().splitlines()[-1:])
    assert said[0] == said[1]


async def test_it_has_the_environment_the_folder_and_the_pipes_that_it_was_given(tmp_path: Path) -> None:
    code = "import os, sys; print(dict(os.environ) == eval(sys.argv[1]), os.getcwd(), sys.stdin.read()); 1 / 0"
    process = await piped(("-c", code, repr(ENV)), env=ENV, cwd=tmp_path)
    out, err = await process.communicate(b"what it was told")
    assert out.decode() == f"True {tmp_path} what it was told\n"
    assert err.endswith(b"ZeroDivisionError: division by zero\n")
    assert process.returncode == 1
    process.close()


def test_it_can_lead_a_session_and_be_killed(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        process = forked(("-c", WAITS), env=ENV, stdout=file, session=True)
    until(lambda: (tmp_path / "out").read_text() == "begun\n")
    assert os.getsid(process.pid) == process.pid != os.getsid(0)
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0)
    process.kill()
    assert process.wait(60) == -signal.SIGKILL == process.poll()


def test_it_does_not_outlive_the_tests(tmp_path: Path) -> None:
    tests = (
        "import sys; from tests.forge import forked\n"
        f"out = open({str(tmp_path / 'out')!r}, 'wb'); process = forked(('-c', {WAITS!r}), env={{}}, stdout=out)\n"
        "print(process.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        (sys.executable, "-c", tests), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV | {"PYTHONPATH": "."}
    ) as killed:
        assert killed.stdout is not None
        pid = int(killed.stdout.readline())
        until(lambda: (tmp_path / "out").read_text() == "begun\n")
        killed.kill()
    until(lambda: gone(pid))
