"""Every guard of every script, taken out once, and the test that must fail then: the list is `mutants.txt`.

A mutant is an edit of a script's text in memory. ``python -m tests.redis.mutants`` prints what each script's header
has to say after *Guarded by*; `test_mutants.py` runs them all, and holds the headers to the list.
"""

import hashlib
import importlib
import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from shared.scripts import SCRIPTS, VERBS, Script

LIST: Final = Path(__file__).with_suffix(".txt")
SOURCES: Final = {
    name: (files("shared") / "lua" / f"{name}.lua").read_text() for name in ("places", "ends", "room", *VERBS)
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A guard taken out of a script (or of `places`, which all share), and the test that notices.

    Args:
        script: whose text.
        file: of the test, without `test_`.
        test: its name, without `test_`.
        arguments: that it takes beside `verbs`.
        old: stands once in the script.
        new: stands there instead.
    """

    script: str
    file: str
    test: str
    arguments: Mapping[str, Any]
    old: str
    new: str

    def scripts(self) -> dict[str, Script]:
        """All scripts, with the guard taken out."""
        source = SOURCES[self.script]
        assert source.count(self.old) == 1, f"{self.script}.lua has {source.count(self.old)} times: {self.old}"
        broken = source.replace(self.old, self.new)
        texts = {verb: script.text.replace(source, broken, 1) for verb, script in SCRIPTS.items()}
        return {verb: Script(verb, text, _sha(text)) for verb, text in texts.items()}

    def find(self) -> Callable[..., None]:
        """The test's function."""
        module = importlib.import_module(f"tests.redis.test_{self.file}")
        function: Callable[..., None] = getattr(module, f"test_{self.test}")
        return function


def _sha(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def _read() -> Iterator[Mutant]:
    script = ""
    for block in LIST.read_text().split("\n\n"):
        heading, *edit = block.strip("\n").split("\n")
        if heading.startswith("=== "):
            script = heading.removeprefix("=== ")
        elif script and heading:
            file, _, test = heading.partition(": ")
            name, brace, arguments = test.partition(" {")
            old, new = ("\n".join(line[2:] for line in edit if line[0] == sign) for sign in "-+")
            yield Mutant(script, file, name.replace(" ", "_"), json.loads(brace + arguments or "{}"), old, new)


MUTANTS: Final = tuple(_read())


def header(script: str) -> str:
    """What a script's header should say: the files whose tests fail without its guards."""
    found = dict.fromkeys(f"test_{mutant.file}.py" for mutant in MUTANTS if mutant.script == script)
    return textwrap.fill(
        " ".join(found),
        width=120,
        initial_indent="-- Guarded by tests/redis/mutants.txt: ",
        subsequent_indent="--           ",
    )


def told(script: str) -> str:
    """What its header does say."""
    lines = SOURCES[script].splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith("-- Guarded by ")), len(lines))
    end = next((n for n in range(start + 1, len(lines)) if not lines[n].startswith("--           ")), len(lines))
    return "\n".join(lines[start:end])


if __name__ == "__main__":
    for name in dict.fromkeys(mutant.script for mutant in MUTANTS):
        sys.stdout.write(f"{name}\n{header(name)}\n\n")
