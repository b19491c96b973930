"""Act on missions: cancel, pause, resume, events, priority, skip, complete. Part of ``dualloop missions``."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualloop.cli.arguments import By, Id, Ids, Note, json_object, who
from dualloop.cli.asking import ask, ask_each
from dualloop.cli.output import Json, between, machine, say
from dualloop.errors import Refusal
from shared.status import ErrorCode, Priority, Status

if TYPE_CHECKING:
    from dualloop.client import Client

commands = typer.Typer()


@commands.command()
def cancel(
    ids: Ids,
    *,
    wait: Annotated[
        bool, typer.Option("--wait", help="Until they have ended and no handler runs; exit code 1 unless CANCELLED.")
    ] = False,
    by: By = None,
    note: Note = None,
    json: Json = False,
) -> None:
    """Cancel missions: at once what never began, the others as soon as their handler can be cut."""
    name = who(by)

    async def work(client: "Client", id_: str) -> dict[str, Any]:
        told = await client.cancel(id_, by=name, note=note)
        return await client.wait(id_) if wait else told

    answers = ask_each(ids, work, "They are told to end all the same: only the waiting has ended.")
    answers.show(_ended if wait else _cancelling, json=json)
    others = [id_ for id_, told in answers.told.items() if told["status"] != Status.CANCELLED]
    if wait and others:
        raise Refusal(f"{len(others)} of {len(answers.told)} did not end CANCELLED.")


@commands.command()
def pause(ids: Ids, *, by: By = None, note: Note = None, json: Json = False) -> None:
    """Pause missions: at once where no handler runs, else at the next commit; a handler that runs is not cut."""
    name = who(by)
    ask_each(ids, lambda client, id_: client.pause(id_, by=name, note=note)).show(_pausing, json=json)


@commands.command()
def resume(ids: Ids, *, by: By = None, note: Note = None, json: Json = False) -> None:
    """Let paused missions go on; nothing happens to those that are not paused."""
    name = who(by)
    ask_each(ids, lambda client, id_: client.resume(id_, by=name, note=note)).show(_resuming, json=json)


@commands.command()
def priority(
    id_: Id,
    lane: Annotated[Priority, typer.Argument(metavar="LANE", help="urgent, normal or bulk.")],
    *,
    by: By = None,
    note: Note = None,
    json: Json = False,
) -> None:
    """Move a mission to another lane, wherever it stands."""
    told = ask(lambda client: client.priority(id_, lane, by=who(by), note=note))
    if json:
        machine(told)
    else:
        say(f"{id_}  has priority {told['priority']} from now on ({told['status']})")


@commands.command()
def event(
    id_: Id,
    name: Annotated[str, typer.Argument(metavar="NAME", help="One that its type declares; see: dualloop types show.")],
    *,
    data: Annotated[
        str, typer.Option(metavar="JSON", help="What came with it, an object; - reads it from standard input.")
    ] = "{}",
    event_id: Annotated[
        str | None, typer.Option("--id", help="Of this event: told twice, it counts once.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Tell a mission an outside event; an early one is remembered."""
    content = json_object(data, "data")
    told = ask(lambda client: client.event(id_, name, content, id=event_id))
    took = "had it already: nothing was changed" if told["duplicate"] else f"was told {name}"
    _show(told, f"{id_}  {took} ({told['status']})", json=json)


@commands.command()
def skip(
    id_: Id,
    *,
    state: Annotated[
        str | None, typer.Option(help="Only if it is in this one. Default: whichever it is in.", show_default=False)
    ] = None,
    by: By = None,
    note: Note = None,
    json: Json = False,
) -> None:
    """Skip the optional state that a mission is in."""
    told = ask(lambda client: client.skip(id_, state=state, by=who(by), note=note))
    _show(told, f"{id_}  was told to skip {state or 'the state that it is in'} ({told['status']})", json=json)


@commands.command()
def complete(
    id_: Id,
    *,
    result: Annotated[
        str, typer.Option(metavar="JSON", help="What its result is to be, an object; - reads it from standard input.")
    ] = "{}",
    by: By = None,
    note: Note = None,
    json: Json = False,
) -> None:
    """End a mission SUCCEEDED, since it was done by hand."""
    content = json_object(result, "result")
    told = ask(lambda client: client.complete(id_, content, by=who(by), note=note))
    _show(told, f"{id_}  was told that it is done ({told['status']})", json=json)


def _show(told: dict[str, Any], sentence: str, *, json: bool) -> None:
    if json:
        machine(told)
        return
    say(sentence)
    if not Status(told["status"]).terminal:
        say(f"See what becomes of it: dualloop watch {told['task_id']}", "dim", whole=True)


def _cancelling(told: dict[str, Any]) -> str:
    if told["status"] == Status.CANCELLED:
        return "cancelled"
    how = "no handler runs, a worker ends it" if told["stopped"] else "its handler is being cut"
    return f"{told['status']}, told to end: {how}"


def _ended(result: dict[str, Any]) -> str:
    took = f"{result['status']} after {between(result['created_at'], result['finished_at'])}"
    if (result["error"] or {}).get("code") == ErrorCode.COMPENSATION_FAILED:
        return f"{took}: {result['error']['message']}; not undone: {', '.join(result['error']['not_undone'])}"
    if result["status"] != Status.CANCELLED:
        return f"{took}: it ended before the cancel came"
    found = result["result"] or {}
    if found.get("may_have_happened"):
        return f"{took}, its handler has stopped; what it did in {found.get('state')} may have happened: look"
    undone = f"; undone: {', '.join(found['undone'])}" if found.get("undone") else ""
    return f"{took}, no handler of it runs{undone}"


def _pausing(told: dict[str, Any]) -> str:
    if told["status"] == Status.PAUSED:
        return "paused"
    return f"{told['status']}, pauses " + ("when a worker reads it" if told["stopped"] else "at its next commit")


def _resuming(told: dict[str, Any]) -> str:
    return "told to go on" if told["status"] == Status.PAUSED else f"goes on ({told['status']})"
