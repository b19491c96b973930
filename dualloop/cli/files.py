"""See and download what missions have made. Part of ``dualloop missions``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualloop.cli.arguments import Id
from dualloop.cli.asking import ask
from dualloop.cli.fitting import Column
from dualloop.cli.output import Json, ago, machine, say
from dualloop.cli.tables import table
from dualloop.cli.writing import writing
from dualloop.errors import Refusal

if TYPE_CHECKING:
    from dualloop.client import Client

commands = typer.Typer()
STDOUT = Path("-")


@commands.command()
def files(id_: Id, *, json: Json = False) -> None:
    """List the files that a mission has made."""
    found = ask(lambda client: client.files.ls(id_))
    if json:
        machine({"files": found})
    elif not found:
        say("It has made no files, or none yet.")
    else:
        rows = [(one["name"], size(one["bytes"]), ago(one["modified_at"]), one["link"]) for one in found]
        name, link = Column("FILE", least=16, folds=True), Column("LINK", least=1, folds=True, below=True)
        table((name, "SIZE", "AGE", link), rows)


@commands.command()
def download(
    id_: Id,
    name: Annotated[str | None, typer.Argument(metavar="[FILE]", help="Its name. Default: the only one.")] = None,
    *,
    to: Annotated[
        Path | None, typer.Option("--to", help="Where to put it; - for standard output.", show_default="its name, here")
    ] = None,
) -> None:
    """Download a file that a mission has made."""

    async def work(client: "Client") -> tuple[str, Path]:
        wanted = name or _only(await client.files.ls(id_))
        if to == STDOUT:
            await client.files.read(id_, wanted, sys.stdout.buffer.write)
            return wanted, STDOUT
        own = Path(wanted).name
        path = to / own if to is not None and to.is_dir() else to or Path(own)
        if path.exists():
            raise Refusal(f"{path} is there already: say --to another place, or remove it.")
        with writing(path):
            await client.files.download(id_, wanted, path)
        return wanted, path

    wanted, path = ask(work)
    if path != STDOUT:
        say(f"{wanted}: {size(path.stat().st_size)} in {path}")


def _only(found: list[dict[str, Any]]) -> str:
    names = [str(one["name"]) for one in found]
    if len(names) != 1:
        there = ", ".join(names)
        raise Refusal(
            f"It has {len(names)} files: name one of {there}." if names else "It has made no files, or none yet."
        )
    return names[0]


def size(count: int) -> str:
    """Bytes, in the largest unit that leaves a whole one."""
    number, unit = float(count), "bytes"
    for larger in ("KB", "MB", "GB", "TB"):
        if number < 1000:
            break
        number, unit = number / 1000, larger
    return f"{count} bytes" if unit == "bytes" else f"{number:.1f} {unit}"
