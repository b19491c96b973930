"""``dualloop new mission``: what it writes is a start that passes, runs, and is as strict as the house."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dualloop.cli.new import TAKEN
from tests.forge.shell import dualloop_in_shells
from tests.processes.commands import Front
from tests.services import OutsideServices
from tests.stories.stack import running

ROOT = Path(__file__).parent.parent.parent
TOOLS = Path(sys.executable).parent


class Author:
    """Somebody with a folder of their own."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DUALLOOP_")}
        self.env = kept | {"PYTHONPATH": str(ROOT), "COLUMNS": "400", **env}

    def runs(self, *command: str, code: int = 0, cwd: Path | None = None) -> str:
        """What it prints, errors included."""
        done = subprocess.run(
            command,
            cwd=cwd or self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == code, f"{command} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def types(self, line: str, code: int = 0) -> str:
        """A line in a shell, where ``dualloop`` is a command."""
        with dualloop_in_shells() as dualloop:
            return self.runs("bash", "-c", f"{dualloop}\n{line}", code=code)

    def makes(self, name: str, code: int = 0) -> str:
        return self.types(f"dualloop new mission {shlex.quote(name)}", code)

    def tests(self, *files: str) -> str:
        """As plain as it is printed, whatever plugins are here."""
        return self.runs(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)


@pytest.fixture
def author(tmp_path: Path) -> Author:
    return Author(tmp_path)


def shown(printed: str, word: str) -> str:
    """The printed line that begins so."""
    lines = [line.strip() for line in printed.splitlines() if line.strip().startswith(word)]
    assert len(lines) == 1, printed
    return lines[0]


async def test_it_passes_at_once_and_runs_on_the_real_stack(redis_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    async with running(redis_url, tmp_path, workers=0) as stack:
        front = stack.foregrounds[0]
        author = Author(folder, DUALLOOP_PORT=str(front.port), DUALLOOP_MISSIONS="tests.missions.plain")
        printed = author.makes("shop.hold")
        assert "5 passed" in author.tests("test_hold.py")
        missions = re.match(r"DUALLOOP_MISSIONS=(\S+) dualloop up --reload", shown(printed, "DUALLOOP_MISSIONS="))
        assert missions is not None
        assert missions[1] == "tests.missions.plain,hold", "those that there are stay"
        with OutsideServices(tmp_path, stack.url) as outside:
            own = {"DUALLOOP_MISSIONS": missions[1], "PYTHONPATH": f"{folder}:{ROOT}"}
            await stack.start([stack.worker(DUALLOOP_OUTSIDE_URL=outside.url, **own)])
            sent = author.types(shown(printed, "curl"))
            client = Front(front)
            document = await client.end(sent.partition('"correlation_id":"')[2].partition('"')[0])
            await client.client.aclose()
            assert document["status"] == "SUCCEEDED", document
            assert document["result"]["price_cents"] == 4_990
            assert author.types(shown(printed, "dualloop send")).startswith("SUCCEEDED after")
            docstring = (folder / "hold.py").read_text().partition('"""')[2].partition('"""')[0]
            curl = docstring[docstring.index("curl") : docstring.index("    dualloop send")]
            assert '"correlation_id"' in author.types(curl), "the docstring says it too"


@pytest.mark.timeout(300)
def test_it_is_as_strict_as_the_house(author: Author) -> None:
    author.makes("shop.two_words")
    house = f'extend = "{ROOT}/pyproject.toml"\nsrc = ["."]\n[lint]\nextend-ignore = ["RUF012", "S101", "INP001"]\n'
    (author.folder / "ruff.toml").write_text(house)  # what the house leaves to missions and tests
    author.runs(str(TOOLS / "ruff"), "check", "--no-cache", "two_words.py", "test_two_words.py")
    author.runs(str(TOOLS / "ruff"), "format", "--no-cache", "--check", "two_words.py", "test_two_words.py")
    author.env["MYPYPATH"] = str(author.folder)
    written = [str(author.folder / name) for name in ("two_words.py", "test_two_words.py")]
    author.runs(str(TOOLS / "mypy"), *written, cwd=ROOT)  # there it knows the types of all that is imported already
    assert "class TwoWords(Mission)" in (author.folder / "two_words.py").read_text()


def test_a_name_that_the_template_uses_is_another_class(author: Author) -> None:
    author.makes("shop.retry")
    assert "class RetryMission(Mission)" in (author.folder / "retry.py").read_text()
    assert "5 passed" in author.tests()
    template = (ROOT / "dualloop" / "templates" / "mission.txt").read_text()
    imported = re.findall(r"^from \S+ import (.*)$", template, re.MULTILINE)
    names = {name for line in imported for name in line.split(", ") if name[0].isupper()}
    assert names <= TAKEN


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Shop Parcel", "'Shop Parcel' cannot be a mission type: write small letters"),
        ("shop.class", "The mission would be in class.py, and Python has a class of its own"),
        ("shop.json", "The mission would be in json.py"),
        ("shop.httpx", "The mission would be in httpx.py"),
        ("device.control", "device.control comes with the product"),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_a_sentence(author: Author, name: str, said: str) -> None:
    assert said in author.makes(name, code=1)
    assert list(author.folder.iterdir()) == []


def test_nothing_is_overwritten(author: Author) -> None:
    test = author.folder / "test_hold.py"
    test.write_text("mine")
    assert "test_hold.py is there already" in author.makes("shop.hold", code=1)
    assert (test.read_text(), len(list(author.folder.iterdir()))) == ("mine", 1)
    (author.folder / "__init__.py").touch()
    assert "This folder is a package" in author.makes("shop.keep", code=1)


def test_a_folder_that_would_be_imported_in_its_place_is_named(author: Author) -> None:
    (author.folder / "parcel").mkdir()
    assert "the folder parcel would be found before it" in author.makes("shop.parcel", code=1)
    assert [one.name for one in author.folder.iterdir()] == ["parcel"]
