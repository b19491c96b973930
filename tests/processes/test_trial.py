"""Mission modules on trial, in a process of their own: what is wrong with them is said with file and line."""

import os
from pathlib import Path

import pytest

from dualloop import reload
from dualloop.reload import Verdict, trial

GOOD = '''"""Tea."""
from backend_loop.mission import Mission, steps, state
from backend_loop.outcomes import Go
import kettle
print("tea is served")

class Tea(Mission):
    """Tea."""
    type = "my.tea"
    table = steps("BREWING")

    @state("BREWING")
    async def brew(self, tools):
        return Go("done")
'''
BUILT_IN = "backend_loop.missions.device_control"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), str(Path.cwd()))))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kettle.py").write_text("WATER = 1\n")


def put(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


async def tried(text: str, *modules: str) -> Verdict:
    put("tea.py", text)
    return await trial(modules or ("tea",))


async def test_what_is_in_order_says_what_it_consists_of() -> None:
    put("shop/__init__.py", GOOD.replace("my.tea", "my.shop"))
    found = await tried(GOOD, "tea", "shop", BUILT_IN)
    assert found.fault is None
    ours = Path(reload.__file__).parents[1] / "backend_loop" / "missions" / "device_control.py"
    here = Path.cwd()
    assert found.files == {here / "tea.py", here / "kettle.py", here / "shop" / "__init__.py", ours}
    assert found.folders == {here / "shop"}
    assert not list(here.glob("**/*.pyc")), "bytecode of an edit would pass for that of the next one"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (GOOD.replace('steps("BREWING")', 'steps("BREWING"'), "tea.py, line 10: SyntaxError: '(' was never closed"),
        (
            GOOD.replace("import kettle", "import kettel"),
            "tea.py, line 4: ModuleNotFoundError: No module named 'kettel'",
        ),
        (GOOD.replace("@state(", "@stat("), "tea.py, line 12: NameError: name 'stat' is not defined"),
        (GOOD.replace('@state("B', '@state("C'), "tea.py, line 7: tea.Tea: state BREWING has no handler"),
        (GOOD.replace('"my.tea"', '"device.control"'), "device.control@1 is defined twice"),
        ("import kettle", "tea defines no mission type"),
        ("import sys\nsys.exit(3)", "tea.py, line 2: SystemExit: 3\n    sys.exit(3)"),
        ("import os\nos._exit(3)", "They end the process that imports them, with exit code 3."),
        ("raise ValueError('one\\ntwo')", "tea.py, line 1: ValueError: one\ntwo\n    raise ValueError("),
    ],
)
async def test_what_is_wrong_is_told_with_file_and_line(text: str, fault: str) -> None:
    found = await tried(text)
    assert (found.fault or "").startswith(fault), found.fault


async def test_a_fault_lies_where_it_was_made_and_that_file_is_followed() -> None:
    put("kettle.py", "WATER = {}['x']\n")
    found = await tried(GOOD)
    assert found.fault == "kettle.py, line 1: KeyError: 'x'\n    WATER = {}['x']"
    assert found.files == {Path.cwd() / "tea.py", Path.cwd() / "kettle.py"}


async def test_a_module_that_never_comes_to_an_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "TRIAL_S", 0.5)
    found = await tried("import threading\nthreading.Event().wait()")
    assert found.fault == "They take longer than 0.5 s to be imported."
