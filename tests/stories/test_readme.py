"""The README, typed in as it stands: every block that a reader would run, in order, against a real stack.

Only the port is replaced. A python block is saved under the name in its first line. Of a `make` line, `up` (re)starts
the stack in the reader's folder; other targets only have to exist. A json or text block right after a bash block is
what that one prints, with ``…`` for anything.

``dualloop`` is a process from the forge, as in all of these tests: there are so many of them here that importing the
product took most of the time. That the command is installed, and does the same, `.ci/try-wheel` shows.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from shared.settings import Settings
from tests import ears, readme_tables
from tests.forge import Forked, forked
from tests.forge.shell import dualloop_in_shells
from tests.ports import unused_port
from tests.waiting import until

ROOT: Final = readme_tables.README.parent
TEXT: Final = readme_tables.README.read_text()
NOT_RUN: Final = {"docker compose up --build --wait\n": "no Docker engine here; see test_deploy.py and test_compose.py"}
"""Blocks for a reader that no test runs, and why."""


@dataclass(frozen=True)
class Block:
    """A fenced block and where it stands."""

    language: str
    body: str
    begin: int
    end: int

    @property
    def line(self) -> int:
        return TEXT[: self.begin].count("\n") + 1


BLOCKS: Final = [
    Block(found[1], found[2], found.start(), found.end())
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
]
PRINTED: Final = {
    block: after
    for block, after in pairwise(BLOCKS)
    if block.language == "bash" and after.language in {"json", "text"} and not TEXT[block.end : after.begin].strip()
}
"""What a bash block prints, where the README shows it."""


class Reader:
    """Somebody with the README in one terminal and `make up` in another."""

    def __init__(self, folder: Path, dualloop: str) -> None:
        self.folder, self.port = folder, unused_port()
        self.output = folder / "up.out"
        self.up: Forked | None = None
        (folder / ".venv").symlink_to(sys.prefix)
        (folder / "tests").mkdir()
        (folder / "tests" / "audio").symlink_to(ROOT / "tests" / "audio")
        self.dualloop = dualloop
        # CI: where it is set pytest cuts no line short, and a reader has none
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DUALLOOP_") and name != "CI"}
        path = f"{Path(sys.executable).parent}:{kept['PATH']}"
        self.env = kept | {"PATH": path, "PYTHONPATH": str(ROOT), "DUALLOOP_PORT": str(self.port)}

    def makes(self, line: str) -> None:
        """A line `make TARGET`, with variables before it."""
        *given, make, target = shlex.split(line, comments=True)
        assert make == "make"
        subprocess.run(("make", "--dry-run", target), cwd=ROOT, check=True, capture_output=True)
        if target == "up":
            self.stops()
            self._starts(dict(variable.split("=", 1) for variable in given))

    def _starts(self, given: dict[str, str]) -> None:
        with self.output.open("wb") as output:
            self.up = forked(
                ("-m", "dualloop", "up"),
                cwd=self.folder,
                env=self.env | given,
                stdout=output,
                stderr=output,
                session=True,  # a terminal of its own
            )
        until(lambda: "Ready" in self.said or self.ended, 180, "the stack is ready")
        assert not self.ended, self.said
        own = self._installed(given)
        until(lambda: own <= self._known(), 180, "the foreground has heard of the types, as it will while one types")

    def _installed(self, given: dict[str, str]) -> set[str]:
        """Types of the mission modules that the stack was started with."""
        export = ("-m", "dualloop", "types", "export", "--installed", "installed.json")
        with (self.folder / "export.out").open("wb") as output:
            assert forked(export, cwd=self.folder, env=self.env | given, stdout=output, stderr=output).wait(180) == 0
        rows = json.loads((self.folder / "installed.json").read_text())["rows"]
        return {row["type"] for row in rows}

    def _known(self) -> set[str]:
        with httpx.Client(base_url=f"http://127.0.0.1:{self.port}", trust_env=False, timeout=60) as client:
            return {row["type"] for row in client.get("/v1/mission-types").json()["mission_types"]}

    @property
    def said(self) -> str:
        return self.output.read_text()

    @property
    def ended(self) -> bool:
        return self.up is None or self.up.poll() is not None

    def stops(self) -> None:
        """Ctrl-C."""
        if self.up is not None and not self.ended:
            os.killpg(self.up.pid, signal.SIGINT)
            assert self.up.wait(180) == 0, self.said

    def saves(self, body: str) -> None:
        """A file, named in its first line."""
        name = re.match(r"# (\w+\.py)\n", body)
        assert name, f"a python block begins with the name of its file:\n{body}"
        (self.folder / name[1]).write_text(self._here(body))

    def types(self, body: str) -> str:
        """Commands; what is printed. Their variables live on until the next ones."""
        script = f"{self.dualloop}\nset -ea; ! test -e .kept || . ./.kept\n{self._here(body)}\nexport -p > .kept\n"
        done = subprocess.run(
            ("bash", "-c", script),
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, f"exit code {done.returncode} of\n{body}\n{done.stdout}\n{self.said}"
        return done.stdout

    def _here(self, body: str) -> str:
        return body.replace("localhost:8000", f"localhost:{self.port}")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    if lacking := [tool for tool in ("bash", "curl", "make") if shutil.which(tool) is None]:
        pytest.skip(f"a reader needs {', '.join(lacking)}")
    with dualloop_in_shells() as dualloop:
        reader = Reader(tmp_path, dualloop)
        try:
            yield reader
        finally:
            reader.stops()


@ears.wanted
@pytest.mark.timeout(900)
def test_a_reader_who_types_it_all_in_sees_what_is_shown(reader: Reader) -> None:
    for block in BLOCKS:
        if block.language == "python":
            reader.saves(block.body)
        elif block.language == "bash" and block.body not in NOT_RUN:
            if re.search(r"^(\w+=\S+ )*make \w", block.body, re.MULTILINE):
                for line in block.body.splitlines():
                    reader.makes(line)
                continue
            printed = reader.types(block.body)
            if (shown := PRINTED.get(block)) is not None:
                assert same(shown, printed), f"README, line {shown.line}: this is printed\n{printed}"


def same(shown: Block, printed: str) -> bool:
    """Whether this was printed; ``…`` stands for any value in JSON, and for any text elsewhere."""
    if shown.language == "json":
        return _like(json.loads(shown.body), json.loads(printed))
    return _fits(" ".join(shown.body.split()), " ".join(printed.split()))


def _like(shown: Any, real: Any) -> bool:
    if isinstance(shown, dict) and isinstance(real, dict):
        return shown.keys() == real.keys() and all(_like(value, real[name]) for name, value in shown.items())
    if isinstance(shown, list) and isinstance(real, list):
        return len(shown) == len(real) and all(map(_like, shown, real))
    if isinstance(shown, str) and isinstance(real, str):
        return _fits(shown, real)
    return bool(shown in (real, "…"))


def _fits(shown: str, real: str) -> bool:
    return re.fullmatch(".*?".join(map(re.escape, shown.split("…"))), real, re.DOTALL) is not None


def test_the_two_commands_come_first() -> None:
    assert [(block.language, block.body) for block in BLOCKS[:2]] == [("bash", "make up\n"), ("bash", "make test\n")]


def test_every_block_says_what_it_is() -> None:
    assert {block.language for block in BLOCKS} <= {"bash", "python", "json", "text", "yaml"}
    assert {block.body for block in BLOCKS} >= NOT_RUN.keys()


def test_its_tables_are_those_of_the_code() -> None:
    assert readme_tables.renewed(TEXT) == TEXT, "run: python -m tests.readme_tables"


def test_it_names_no_setting_that_does_not_exist() -> None:
    known = {f"DUALLOOP_{name.upper()}" for name in Settings.model_fields}
    assert set(re.findall(r"DUALLOOP_[A-Z0-9_]+", TEXT)) <= known


def test_its_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    assert [target for target in targets if not (ROOT / target).exists()] == []
