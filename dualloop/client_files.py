"""What a client asks of the files that missions have made."""

from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import quote

from dualloop.client_http import Exchange
from shared.files import NAME, ROUTE


class Files:
    """The part of the client that downloads, as ``client.files``.

    All raise `ClientProblem` where the foreground refuses (404 never known, or no such file yet; 410 no longer kept)
    and `UnreachableError` where none answered.
    """

    def __init__(self, exchange: Exchange) -> None:
        """Ready at once."""
        self._exchange = exchange

    async def ls(self, task_id: str) -> list[dict[str, Any]]:
        """What a mission has published so far, by name: ``{"name", "bytes", "modified_at", "link"}`` each."""
        found: list[dict[str, Any]] = (await self._exchange.ask("GET", _path(task_id)))["files"]
        return [one for one in found if NAME.fullmatch(str(one["name"]))]

    async def download(self, task_id: str, name: str, to: Path) -> None:
        """Have a file whole under the path `to`, in place of what is there; nothing is changed unless it is whole."""
        part = to.with_name(f".{to.name}.{token_hex(4)}.part")  # nobody else's, whatever else lies there
        try:
            with part.open("xb") as sink:
                await self.read(task_id, name, sink.write)
            part.replace(to)
        finally:
            part.unlink(missing_ok=True)

    async def read(self, task_id: str, name: str, take: Callable[[bytes], object]) -> None:
        """A file, piece by piece as it comes."""
        await self._exchange.fetch(f"{_path(task_id)}/{quote(name, safe='')}", take)


def _path(task_id: str) -> str:
    return f"{ROUTE}/{quote(task_id, safe='')}"
