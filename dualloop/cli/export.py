"""Take a mission along, for the test kit. Part of ``dualloop missions``."""

import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pydantic_core import to_json

from dualloop.cli.arguments import Id
from dualloop.cli.asking import ask
from dualloop.cli.output import clean, say
from dualloop.cli.writing import writing
from dualloop.errors import Refusal
from shared.clock import now_ms, rfc3339

commands = typer.Typer()

FORMAT: Final = 1
"""Of the file; `backend_loop.testing.exported` reads it."""

KEPT: Final = (
    *("type", "version", "task_id", "correlation_id", "parent", "status", "state", "place", "waiting_for", "target"),
    *("priority", "lane", "latest", "run", "key_run", "rev", "seq", "deaths", "transitions"),
    *("created_at", "started_at", "deadline", "wake_at", "paused_at", "trace_id", "why"),
    *("envelope", "envelope_base64", "document", "context", "progress", "inbox", "children", "result"),
)
"""What of an operator's view goes into the file."""


@commands.command()
def export(
    id_: Id,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Default: standard output.")] = None,
) -> None:
    """Write all about a mission into a file that the test kit replays, or goes on with.

    Payload, context, events and results are in it as they are: it may contain personal data. Treat it like that.
    """
    mission = ask(lambda client: client.mission(id_))
    content = to_json(exported(mission, rfc3339(now_ms())), indent=2) + b"\n"
    if file is None:
        typer.echo(content, nl=False)
        return
    if file.exists():
        raise Refusal(clean(f"{file} is there already: name another one, or remove it."))
    # for its owner only: what is in it was told to us
    with writing(file), os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(content)
    say(f"Wrote {mission['type']} {mission['task_id']} to {file}: it may contain personal data.")
    say(f'In a test: Bench(…).replay("{file}"), or .resume("{file}") to go on with it.', "dim")


def exported(mission: Mapping[str, Any], at: str) -> dict[str, Any]:
    """The file's content, out of what an operator sees of a mission; `at`: now."""
    dead = mission["dead_letter"]
    return {
        "export": FORMAT,
        "product": _product(),
        "exported_at": at,
        **{name: mission[name] for name in KEPT},
        "dead_letter": dead is not None,
        "failed_in": None if dead is None else dead["failed_in"],
        "error": (mission["result"] or {}).get("error"),
        "log": mission["history"],
    }


def _product() -> str:
    try:
        return version("dualloop")
    except PackageNotFoundError:
        return "checkout"
