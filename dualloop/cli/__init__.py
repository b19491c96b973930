"""The command line.

To add commands: write ``dualloop/cli/NAME.py`` with ``commands = typer.Typer()`` and ``@commands.command()``
functions, and name it in ``MODULES``. What a person did wrong is a ``Refusal``: one sentence, exit code 1.
"""

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer
from pydantic import ValidationError

from dualloop.cli import dead_letters, doctor, home, missions, new, outside, schedules, send, stack, types
from dualloop.errors import Refusal

MODULES = (stack, send, missions, dead_letters, schedules, types, new, home, outside, doctor)

app = typer.Typer(
    name="dualloop",
    help="Answer in milliseconds, work for seconds to hours.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for module in MODULES:
    app.add_typer(module.commands)


def main() -> None:
    """Run the command line; never shows a traceback for what a person can put right."""
    try:
        app()
    except Refusal as refusal:
        _fail(str(refusal))
    except ValidationError as error:
        if error.title != "Settings":
            raise
        _fail("; ".join(f"DUALLOOP_{str(one['loc'][0]).upper()}: {one['msg']}" for one in error.errors()))
    except KeyboardInterrupt:
        sys.exit(130)


def _say_version(wanted: bool) -> None:
    if wanted:
        try:
            typer.echo(f"dualloop {version('dualloop')}")
        except PackageNotFoundError:
            typer.echo("dualloop, from a checkout")
        raise typer.Exit


@app.callback()
def _root(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version and leave.")
    ] = False,
) -> None:
    pass


def _fail(sentence: str) -> None:
    typer.echo(sentence, err=True)
    sys.exit(1)
