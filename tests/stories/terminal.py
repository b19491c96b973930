"""The command line as a person or a script runs it: ``python -m dualloop …`` as a process."""

import asyncio
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from tests.forge import Piped, piped


@dataclass(frozen=True)
class Said:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output, which is JSON."""
        return from_json(self.out)


class Terminal:
    """Runs commands with these variables in a folder of their own."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.folder = folder
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DUALLOOP_")}
        self.env = inherited | {"PYTHONPATH": str(Path.cwd()), "DUALLOOP_STATE_DIR": str(folder / "state")} | env

    async def start(self, *args: str) -> Piped:
        """Begin a command; its output is read by who asks for it."""
        return await piped(("-m", "dualloop", *args), env=self.env, cwd=self.folder)

    async def run(self, *args: str, stdin: str = "", interrupt_at: bytes | None = None) -> Said:
        """A command from beginning to end; with `interrupt_at`, Ctrl-C once it has printed a line with this."""
        process = await self.start(*args)
        try:
            async with asyncio.timeout(120):
                seen = b""
                if interrupt_at is not None:
                    while interrupt_at not in seen:
                        line = await process.stdout.readline()
                        assert line, f"it ended before it said {interrupt_at!r}"
                        seen += line
                    process.send_signal(signal.SIGINT)
                out, err = await process.communicate(stdin.encode())
        finally:
            process.kill()
            code = await process.wait()
            process.close()
        assert b"Traceback" not in err, err.decode()
        return Said(code, (seen + out).decode(), err.decode())
