"""The house rules that a machine can check. What does not keep one stands in a list here, with its reason."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("shared", "frontend_loop", "backend_loop", "dualloop")
LONGEST_FILE, LONGEST_FUNCTION = 400, 50  # lines

LONG_FILES = {
    "tests/pure/test_loop.py": "each promise of the one class that runs every loop",
}
"""Debts: path and reason."""

LONG_FUNCTIONS = {
    "frontend_loop/door.py::take": "the path of one command, in the order in which it is walked",
    "frontend_loop/standing.py::standing": "a line a fact of the one sentence",
}
"""Debts: path::name and reason."""

SLEEPERS = {
    "tests/waiting.py": "the one helper that asks again until a deadline",
    "tests/missions/": "work that takes time is what these missions play",
    "tests/processes/hung_foreground.py": "a loop that hangs is what this process plays",
    "tests/redis/stage_base.py": "the next millisecond of Redis' clock, thousands of times",
    "tests/benchmarks/": "a measurement looks at the clock",
}
"""Where time may pass by itself, and why."""


def sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Name and length of each function of a file, methods and inner ones included."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def sleeps(path: Path) -> Iterator[int]:
    """Lines on which a file calls a sleep of more than no time."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "sleep":
            if node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0:
                continue
            yield node.lineno


def test_nobody_imports_what_is_not_theirs() -> None:
    linter = Path(sys.executable).with_name("lint-imports")  # a process of its own: it turns loggers off
    said = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr


def test_files_are_short() -> None:
    scripts = sorted((ROOT / "shared" / "lua").glob("*.lua"))
    long = {named(path) for path in (*sources(*PACKAGES, "tests"), *scripts) if _lines(path) > LONGEST_FILE}
    assert long == set(LONG_FILES), "split it, or list it with its reason; a debt that is paid leaves the list"


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def test_functions_fit_a_screen() -> None:
    long = {
        f"{named(path)}::{name}"
        for path in sources(*PACKAGES, "tests")
        for name, lines in functions(path)
        if lines > LONGEST_FUNCTION
    }
    assert long == set(LONG_FUNCTIONS), "split it, or list it with its reason; a debt that is paid leaves the list"


def test_tests_wait_for_something_and_never_just_sleep() -> None:
    found = [f"{named(path)}:{line}" for path in sources("tests") for line in sleeps(path)]
    assert [place for place in found if not place.startswith(tuple(SLEEPERS))] == []


def test_no_test_folder_shadows_a_package() -> None:
    folders = {path.name for path in (ROOT / "tests").rglob("*") if path.is_dir()}
    assert folders.isdisjoint(PACKAGES)


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    drawers = {"utils", "util", "common", "helpers", "misc"}
    assert [
        named(path) for path in sources(*PACKAGES, "tests") if path.stem in drawers or path.parent.name in drawers
    ] == []


@pytest.mark.parametrize("script", sorted((ROOT / "shared" / "lua").glob("*.lua")), ids=lambda path: path.stem)
def test_a_script_says_what_it_takes_answers_and_keeps(script: Path) -> None:
    header = re.match(r"(--.*\n)*", script.read_text())
    assert header is not None
    assert [word for word in ("KEYS", "ARGV", "Answers", "Invariant") if word not in header[0]] == []
