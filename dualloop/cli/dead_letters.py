"""Missions that failed for good: look at them, run them again, give them up."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dualloop.cli.arguments import By, Id, Note, each, json_object, who
from dualloop.cli.asking import ask, ask_each
from dualloop.cli.fitting import Column
from dualloop.cli.missions import everything, mission_column
from dualloop.cli.output import Json, ago, machine, moment, say
from dualloop.cli.tables import table
from dualloop.errors import Refusal
from frontend_loop.naming import placed
from shared.status import ErrorCode

if TYPE_CHECKING:
    from dualloop.client import Client

commands = typer.Typer()
group = typer.Typer(help="Missions that failed for good, kept to be looked at and run again.", no_args_is_help=True)
commands.add_typer(group, name="dead-letters")

Type = Annotated[str | None, typer.Option("--type", help="Mission type.", show_default=False)]
Code = Annotated[
    ErrorCode | None, typer.Option("--code", metavar="CODE", help="Code of the error.", show_default=False)
]
Text = Annotated[
    str | None, typer.Option("-q", help="Text within id, type, state, target or error.", show_default=False)
]
Many = Annotated[
    list[str],
    typer.Argument(
        metavar="ID…", callback=each, help="task_ids, or how they begin, as listed by: dualloop dead-letters ls."
    ),
]
From = Literal["failed_state", "start"]
Key = Literal["same", "new"]
PAGE = 200


@group.command()
def ls(
    *,
    type_: Type = None,
    code: Code = None,
    q: Text = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows at most.")] = 50,
    json: Json = False,
) -> None:
    """List dead letters that fit all filters, the newest first."""

    async def work(client: "Client") -> tuple[list[dict[str, Any]], bool]:
        rows: list[dict[str, Any]] = []
        cursor = None
        while len(rows) <= limit:
            page = await client.dead_letters(type=type_, code=code, q=q, cursor=cursor, limit=PAGE)
            rows += page["dead_letters"]
            if (cursor := page["cursor"]) is None:
                return rows, True
        return rows, False

    rows, whole = ask(work)
    if json:
        machine({"dead_letters": rows[:limit], "whole": whole and len(rows) <= limit})
    elif not rows:
        say("No dead letter fits." if type_ or code or q else "There is no dead letter.")
    else:
        _rows(rows[:limit], mission_column(rows))
        if len(rows) > limit:
            say(f"The newest {limit}: see more with --limit.", "dim")
        say("Look at one:   dualloop dead-letters show ID", "dim")
        say("Run it again:  dualloop dead-letters replay ID", "dim")


@group.command()
def show(id_: Id, *, json: Json = False) -> None:
    """Show everything about a dead letter."""
    mission = ask(lambda client: client.dead_letter(id_))
    if json:
        machine(mission)
        return
    dead = mission["dead_letter"]
    rows = f"{dead['outbox']} rows of its outbox are still to be carried out: it can be replayed after them"
    everything(
        mission,
        {
            "Error": f"{dead['code']}: {placed(_failure(mission), dead['message'])}",
            "Failed in": dead["failed_in"] or "",
            "Undone": ", ".join(dead["undone"]),
            "Kept until": moment(dead["kept_until"]),
            "Outbox": rows if dead["outbox"] else "",
        },
    )
    if mission["envelope_base64"]:
        say(f"\nIts envelope cannot be read. In base64: {mission['envelope_base64']}")


@group.command()
def replay(  # noqa: PLR0913  what may be said of it
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID…", callback=each, help="task_ids, or how they begin.", show_default=False),
    ] = None,
    *,
    all_: Annotated[bool, typer.Option("--all", help="All that fit --type, --code and -q.")] = False,
    type_: Type = None,
    code: Code = None,
    q: Text = None,
    from_: Annotated[
        From | None,
        typer.Option(
            "--from", help="Default: the state it failed in; start if anything was undone.", show_default=False
        ),
    ] = None,
    key: Annotated[
        Key | None,
        typer.Option(help="Whether effects keep their keys. Default: same; new with --payload.", show_default=False),
    ] = None,
    payload: Annotated[
        str | None,
        typer.Option(
            metavar="JSON", help="Instead of the one that was sent; - reads standard input.", show_default=False
        ),
    ] = None,
    deadline: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="From now on. Default: the type's.", show_default=False)
    ] = None,
    by: By = None,
    note: Note = None,
    json: Json = False,
) -> None:
    """Run dead letters again, each as a new run of the same mission."""
    filters = {"type": type_, "code": code, "q": q}
    if bool(ids) == all_:
        raise Refusal("Name the dead letters to run again, or say --all, with or without filters.")
    if ids and any(filters.values()):
        raise Refusal("Filters go with --all: of dead letters that are named none is chosen.")
    corrected = None if payload is None else json_object(payload, "payload")
    how: dict[str, Any] = {"from_": from_, "key": key, "payload": corrected, "deadline_s": deadline}
    how |= {"by": who(by), "note": note}
    if ids:
        ask_each(ids, lambda client, id_: client.replay(id_, **how)).show(_replayed, json=json)
    else:
        _replayed_all(ask(lambda client: client.replay_all(filters, **how)), json=json)


@group.command()
def discard(ids: Many, *, by: By = None, note: Note = None, json: Json = False) -> None:
    """Give dead letters up: they are removed with all that is known of them."""
    name = who(by)
    ask_each(ids, lambda client, id_: client.discard(id_, by=name, note=note)).show(
        lambda _: "discarded: it is removed with its log", json=json
    )


def _failure(mission: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of its result while that is kept, then of the last event of its log."""
    error = (mission["result"] or {}).get("error")
    last = mission["history"][-1]["data"] if mission["history"] else None
    return next((told for told in (error, last) if isinstance(told, dict)), {})


def _replayed(told: dict[str, Any]) -> str:
    begin = "the start" if told["from"] == "start" else "the state it failed in"
    keys = (
        "with new keys for its effects"
        if told["key"] == "new"
        else "with the keys that its effects had, new ones where they were undone"
    )
    return f"run {told['run']} from {begin}, {keys} ({told['status']})"


def _replayed_all(told: dict[str, list[dict[str, Any]]], *, json: bool) -> None:
    replayed, refused = told["replayed"], told["refused"]
    if json:
        machine(told)
    elif not replayed and not refused:
        say("No dead letter fits.")
    else:
        for one in replayed:
            say(f"{one['task_id']}  {_replayed(one)}")
        for problem in refused:
            say(f"{problem['task_id']}  refused: {problem['detail']}", "yellow")
        say({0: "None runs again.", 1: "1 runs again."}.get(len(replayed), f"{len(replayed)} run again."), "bold")
    if refused:
        raise Refusal(f"{len(refused)} of {len(replayed) + len(refused)} were refused.")


def _rows(rows: list[dict[str, Any]], mission: Column) -> None:
    """As a table; what went wrong is what one looks for in it."""
    columns = [
        mission,
        Column("CODE"),
        Column("FAILED IN", least=12, goes=4),
        Column("TYPE", least=10, goes=2),
        Column("TARGET", least=10, goes=3),
        Column("AGE", goes=1),
        Column("ERROR", least=20),
    ]
    cells = [
        [
            row["task_id"],
            row["code"] or "",
            row["failed_in"] or "",
            row["type"],
            row["target"] or "",
            ago(row["ended_at"]),
            row["message"] or "",
        ]
        for row in rows
    ]
    table(columns, cells, hint="widen the terminal, or see one with show.")
