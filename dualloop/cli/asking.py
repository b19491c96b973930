"""How a command asks the foreground: what goes wrong becomes one sentence, and Ctrl-C is no error."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import typer

from dualloop.cli.output import clean
from dualloop.errors import Refusal

if TYPE_CHECKING:
    from dualloop.client import Client

T = TypeVar("T")
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


def ask(work: Callable[["Client"], Awaitable[T]], interrupted: str = "") -> T:
    """Run the work with a client; `interrupted` is told on Ctrl-C.

    Raises:
        Refusal: the foreground refused, or there is none.
        typer.Exit: Ctrl-C.
    """
    from dualloop.client import Client, ClientProblem, UnreachableError  # noqa: PLC0415  other commands start without it

    async def whole() -> T:
        async with Client() as client:
            return await work(client)

    try:
        return asyncio.run(whole())
    except ClientProblem as problem:
        raise Refusal(clean(_sentence(problem.detail))) from problem
    except UnreachableError as error:
        raise Refusal(clean(f"{error} Start one with dualloop up, or name another in DUALLOOP_URL.")) from error
    except KeyboardInterrupt:
        if interrupted:
            typer.echo(f"\n{interrupted}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
