"""``dualloop up --reload``: whoever runs missions begins anew when a mission module was edited, and can be imported.

Edits are tried in a process of their own first (`backend_loop.trial`): while they cannot be used, what runs goes on. A
change is one of content, so that neither a storm of saves nor a save without a change restarts anything twice.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from hashlib import blake2b
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ValidationError

from dualloop.errors import Refusal
from dualloop.lifeline import ends_with_parent

DEBOUNCE_MS: Final = 2_000
"""Saves that follow each other are one, for at most so long."""
QUIET_MS: Final = 200
"""They do if no more than this lies between them."""
LOOK_MS: Final = 5_000
"""The files are looked at so often also if nothing tells of a change, as on some network drives."""
TRIAL_S: Final = 20.0
EDITED_S: Final = 0.5
"""While modules are tried it is looked so often whether somebody goes on editing them: one that hangs was mended."""
LINES: Final = 8
"""Of what is wrong, so many are told."""

Prints = dict[Path, bytes | None]
"""Fingerprints of files; None: it is gone."""


class Verdict(BaseModel):
    """What the trial of the modules says: what is wrong with them, if anything, and what they consist of."""

    fault: str | None
    files: frozenset[Path] = frozenset()
    folders: frozenset[Path] = frozenset()


Trial = Callable[[], Awaitable[Verdict]]


async def trial(modules: Sequence[str]) -> Verdict:
    """Try to import the modules, in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "backend_loop.trial", *modules),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=ends_with_parent(signal.SIGKILL),
    )
    try:
        async with asyncio.timeout(TRIAL_S):
            answer, _ = await process.communicate()
        return Verdict.model_validate_json(answer)
    except TimeoutError:
        return Verdict(fault=f"They take longer than {TRIAL_S:g} s to be imported.")
    except ValidationError:
        return Verdict(fault=f"They end the process that imports them, with exit code {process.returncode}.")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


class Reloader:
    """Watches the files of mission modules.

    Args:
        modules: their import paths.
        say: tells the person at the terminal.
        restart: ends what runs the old code, and has it begin anew.
        try_: says whether the modules can be used.
    """

    def __init__(
        self,
        modules: Sequence[str],
        say: Callable[[str], None],
        restart: Callable[[], Awaitable[None]],
        try_: Trial | None = None,
    ) -> None:
        """`begin` comes first."""
        self._say, self._restart = say, restart
        self._try = try_ or (lambda: trial(modules))
        self._parts, self._good = Verdict(fault=None), Verdict(fault=None)
        self._tried: Prints = {}
        self._loaded: Prints = {}
        self._read: dict[Path, tuple[tuple[int, int, int], bytes]] = {}

    async def begin(self) -> str:
        """Look at the modules before anything runs them; says what will be watched.

        Raises:
            Refusal: they cannot be used, or there are none.
        """
        verdict = await self._try()
        if verdict.fault is not None:
            raise Refusal(verdict.fault)
        if not verdict.files:
            raise Refusal("There is nothing to reload: name your mission modules in DUALLOOP_MISSIONS.")
        self._parts = self._good = verdict
        self._tried = self._loaded = self._prints()
        whole = {file for file in verdict.files if not any(map(file.is_relative_to, verdict.folders))}
        return ", ".join(shown(path) for path in sorted(verdict.folders | whole))

    async def run(self) -> None:
        """Follow what is edited, until cancelled."""
        while True:
            watched = self._watched()
            async with aclosing(_changes(watched, self._say)) as changes:
                await self.once()
                async for _ in changes:
                    await self.once()
                    if self._watched() != watched:
                        break

    async def once(self) -> None:
        """If anything has changed since the last look, try it, and take it over if it is in order."""
        while changed := self._changed(found := self._prints()):
            verdict = await self._verdict_on(found)
            if verdict is not None and self._prints() == found:  # else somebody went on editing: that is tried instead
                await self._take(verdict, found, _names(changed))

    async def _verdict_on(self, found: Prints) -> Verdict | None:
        """What the trial says; None: somebody went on editing before it did."""
        trying = asyncio.ensure_future(self._try())
        try:
            while not (await asyncio.wait([trying], timeout=EDITED_S))[0]:
                if self._prints() != found:
                    return None
            return trying.result()
        finally:
            trying.cancel()
            await asyncio.wait([trying])

    def _changed(self, found: Prints) -> list[Path]:
        return sorted(file for file in found.keys() | self._tried.keys() if found.get(file) != self._tried.get(file))

    async def _take(self, verdict: Verdict, found: Prints, names: str) -> None:
        """Nobody has edited anything since it was tried."""
        mended = self._parts.fault is not None
        if verdict.fault is not None:
            files, folders = self._good.files | verdict.files, self._good.folders
            self._parts = Verdict(fault=verdict.fault, files=files, folders=folders)
            self._tried = self._prints() | found
            self._say(
                f"Edited {names}: of no use like this, the background goes on as it was.{_indented(verdict.fault)}"
            )
            return
        self._parts = self._good = verdict
        self._tried = {file: found.get(file, print_) for file, print_ in self._prints().items()}
        if self._tried == self._loaded:
            self._say(f"Edited {names}: this is what the background runs already.")
            return
        self._loaded = self._tried
        self._say(f"{'Mended' if mended else 'Edited'} {names}: restarting the background.")
        await self._restart()

    def _prints(self) -> Prints:
        files = set(self._parts.files)
        for folder in self._parts.folders:
            files |= set(_inside(folder))
        if self._parts.fault is not None:  # what is missing may be a file that nobody has named yet
            files |= {file for folder in self._watched() for file in folder.glob("*.py")}
        return {file: self._print(file) for file in files}

    def _print(self, file: Path) -> bytes | None:
        try:
            stat = file.stat()
            stamp, (known, digest) = (stat.st_mtime_ns, stat.st_size, stat.st_ino), self._read.get(file, (None, b""))
            if stamp != known:
                digest = blake2b(file.read_bytes(), digest_size=16).digest()
                self._read[file] = stamp, digest
        except OSError:
            return None
        return digest

    def _watched(self) -> frozenset[Path]:
        folders = {file.parent for file in self._parts.files} | set(self._parts.folders)
        folders |= {file.parent for folder in self._parts.folders for file in _inside(folder)}
        return frozenset(folder for folder in folders if folder.is_dir())


async def _changes(folders: Iterable[Path], say: Callable[[str], None]) -> AsyncGenerator[None, None]:
    """Something may have changed in one of these folders; now and then also if nothing has."""
    from watchfiles import awatch  # noqa: PLC0415  whoever does not reload starts without it

    polling = None
    while True:
        try:
            async for _ in awatch(
                *folders,
                debounce=DEBOUNCE_MS,
                step=QUIET_MS,
                rust_timeout=LOOK_MS,
                yield_on_timeout=True,
                recursive=False,
                force_polling=polling,
            ):
                yield
        except OSError as error:  # such as a machine's limit of watches
            if polling:
                raise
            say(f"Edits are looked for every now and then, since they cannot be told of: {error}.")
            polling = True


def _inside(folder: Path) -> Iterable[Path]:
    """The files of a package, its own packages included."""
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "__pycache__"))]
        yield from (
            Path(where, name) for name in files if not name.startswith(".") and not name.endswith(("~", ".pyc"))
        )


def _names(files: Sequence[Path]) -> str:
    first, *more = map(shown, files)
    return first if not more else f"{first} and {len(more)} more"


def shown(path: Path) -> str:
    """A path as a person types it who is here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _indented(text: str) -> str:
    return "".join(f"\n    {line}" for line in text.splitlines()[:LINES])
