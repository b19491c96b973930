"""How a command asks the foreground: what goes wrong becomes one sentence, and Ctrl-C is no error."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from dualloop.cli.output import clean, machine, say
from dualloop.errors import Refusal

if TYPE_CHECKING:
    from dualloop.client import Client
    from dualloop.client_faults import ClientProblem

T = TypeVar("T")
AT_A_TIME = 20
"""Requests under way at once, where many missions are acted on."""
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
        raise Refusal(clean(_faults(problem))) from problem
    except UnreachableError as error:
        raise Refusal(clean(f"{error} Start one with dualloop up, or name another in DUALLOOP_URL.")) from error
    except KeyboardInterrupt:
        if interrupted:
            typer.echo(f"\n{interrupted}", err=True)
        raise typer.Exit(INTERRUPTED) from None


@dataclass(frozen=True, slots=True)
class Answers:
    """What was answered to each id, in the order in which they were given."""

    told: Mapping[str, dict[str, Any]]
    refused: Mapping[str, "ClientProblem"]

    def show(self, sentence: Callable[[dict[str, Any]], str], *, json: bool) -> None:
        """Print a line for each id.

        Raises:
            Refusal: one was refused.
        """
        whole = dict(self.told) | {id_: problem.document for id_, problem in self.refused.items()}
        if json:
            machine(whole)
        elif len(whole) > 1 or not self.refused:
            for id_ in whole:
                if id_ in self.told:
                    say(f"{id_}  {sentence(self.told[id_])}", whole=True)
                else:
                    say(f"{id_}  refused: {_sentence(self.refused[id_].detail)}", "yellow")
        if self.refused:
            first = next(iter(self.refused.values()))
            alone = len(whole) == 1
            raise Refusal(clean(_faults(first)) if alone else f"{len(self.refused)} of {len(whole)} were refused.")


def ask_each(
    ids: Iterable[str], work: Callable[["Client", str], Awaitable[dict[str, Any]]], interrupted: str = ""
) -> Answers:
    """Ask the same of each id, some at a time; one that is refused keeps no other from being asked.

    Raises:
        Refusal: there is no foreground.
        typer.Exit: Ctrl-C.
    """
    from dualloop.client_faults import ClientProblem  # noqa: PLC0415  other commands start without it

    ids = list(dict.fromkeys(ids))

    async def all_of_them(client: "Client") -> list[dict[str, Any] | ClientProblem]:
        gate = asyncio.Semaphore(AT_A_TIME)

        async def one(id_: str) -> dict[str, Any] | ClientProblem:
            async with gate:
                try:
                    return await work(client, id_)
                except ClientProblem as problem:
                    return problem

        return await asyncio.gather(*map(one, ids))

    answers = dict(zip(ids, ask(all_of_them, interrupted), strict=True))
    return Answers(
        {id_: answer for id_, answer in answers.items() if not isinstance(answer, ClientProblem)},
        {id_: answer for id_, answer in answers.items() if isinstance(answer, ClientProblem)},
    )


def _faults(problem: "ClientProblem") -> str:
    """Each fault of what was sent in a line of its own; where they are not told, the sentence for all."""
    errors = problem.document.get("errors") or []
    if problem.code == "redis_unavailable":
        return f"{_sentence(problem.detail)} dualloop doctor looks for the cause."
    if len(errors) < 2:
        return _sentence(problem.detail)
    return "\n".join(_sentence(f"{error['pointer'] or 'the body'}: {error['detail']}") for error in errors)


def _sentence(text: str) -> str:
    if text.partition(" ")[0].isalpha():  # a name keeps its small letters
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
