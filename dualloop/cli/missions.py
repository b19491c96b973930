"""List and show missions."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic_core import to_json

from dualloop.cli import export, files, verbs
from dualloop.cli.arguments import Id, one
from dualloop.cli.asking import ask
from dualloop.cli.beginnings import told_apart
from dualloop.cli.fitting import Column
from dualloop.cli.output import Json, ago, between, facts, machine, moment, say, section, zone
from dualloop.cli.pace import line, short
from dualloop.cli.tables import table
from frontend_loop.progress import of
from shared.status import Status

if TYPE_CHECKING:
    from dualloop.client import Client

commands = typer.Typer()
group = typer.Typer(help="List and show missions, and act on them.", no_args_is_help=True)
group.add_typer(verbs.commands)
group.add_typer(files.commands)
group.add_typer(export.commands)
commands.add_typer(group, name="missions")

PAGE = 200
LOOKED_AT = 2_000
"""Rows that a list looks at for the youngest: the foreground has no order of all of them."""


@group.command()
def ls(  # noqa: PLR0913  the filters of the API
    *,
    status: Annotated[
        list[Status] | None,
        typer.Option(metavar="STATUS", help=f"{', '.join(Status)}; may be repeated.", show_default=False),
    ] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Mission type.", show_default=False)] = None,
    state: Annotated[str | None, typer.Option(help="State of the mission's machine.", show_default=False)] = None,
    target: Annotated[str | None, typer.Option(help="What is acted on.", show_default=False)] = None,
    correlation_id: Annotated[
        str | None, typer.Option(callback=one, help="A root and its children.", show_default=False)
    ] = None,
    q: Annotated[str | None, typer.Option("-q", help="Text within any of these.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows at most.")] = 50,
    json: Json = False,
) -> None:
    """List missions that fit all filters, the youngest first."""
    filters = {"status": status, "type": type_, "state": state, "target": target, "q": q}

    async def work(client: "Client") -> tuple[list[dict[str, Any]], bool]:
        found: dict[str, dict[str, Any]] = {}
        cursor = None
        while len(found) < max(LOOKED_AT, limit):
            page = await client.missions(**filters, correlation_id=correlation_id, cursor=cursor, limit=PAGE)
            found |= {row["task_id"]: row for row in page["missions"]}
            if (cursor := page["cursor"]) is None:
                break
        return sorted(found.values(), key=lambda row: str(row["created_at"]), reverse=True), cursor is None

    rows, whole = ask(work)
    if json:
        machine({"missions": rows[:limit], "whole": whole and len(rows) <= limit})
        return
    if not rows:
        some = any((*filters.values(), correlation_id))
        say("No mission fits." if some else "There is no mission. Send one: dualloop send --help")
        return
    _rows(rows[:limit], mission_column(rows))
    if not whole:
        say(f"There are more than {len(rows)}, in no order: these are the youngest of those. Use a filter.", "dim")
    elif len(rows) > limit:
        say(f"The youngest {limit} of {len(rows)}: see more with --limit.", "dim")


@group.command()
def show(id_: Id, *, json: Json = False) -> None:
    """Show everything about a mission."""
    mission = ask(lambda client: client.mission(id_))
    if json:
        machine(mission)
    else:
        everything(mission)


def everything(mission: Mapping[str, Any], more: Mapping[str, str] | None = None) -> None:
    """Print all about a mission; `more` facts come first."""
    say(mission["why"], "bold")
    say()
    times = f"{here}; in the sentence above UTC" if (here := zone()) else ""
    facts({"Times": times, **(more or {}), **_facts(mission)})
    say()
    table(
        (
            Column("SEQ"),
            Column("TIME"),
            Column("STATUS"),
            Column("STATE"),
            Column("DATA", least=1, folds=True, below=True),
        ),
        [
            (
                str(event["seq"]),
                moment(event["at"]),
                event["status"],
                "" if event["state"] == event["status"] else event["state"],
                "" if event["data"] is None else to_json(event["data"]).decode(),
            )
            for event in mission["history"]
        ],
    )
    if mission["children"]:
        say()
        apart = told_apart(child["task_id"] for child in mission["children"])
        table(
            (
                Column("CHILD", least=apart + 1, first=True),
                Column("STATUS"),
                Column("TYPE", least=10, goes=1),
                Column("NAME", least=10),
            ),
            [_child(child) for child in mission["children"]],
        )
    section("Payload", mission["envelope"].get("payload"))
    section("Context", mission["context"])
    section("Result", mission["result"])


def _child(child: Mapping[str, Any]) -> list[str]:
    status = child["status"] or ("?" if child["begun"] else "not begun yet")
    return [child["task_id"], status, child["type"], child["name"] or ""]


def mission_column(rows: Iterable[Mapping[str, Any]]) -> Column:
    """Of ids that a command is to be given: where one is cut, what is left of it is enough for that."""
    return Column("MISSION", least=told_apart(row["task_id"] for row in rows) + 1, first=True)


def _rows(rows: list[dict[str, Any]], mission: Column) -> None:
    """As a table. A target tells a person's missions apart, which ids do not; where one stands `why` says too."""
    some = any(short(of(row["progress"])) for row in rows)
    columns = [
        mission,
        Column("STATUS"),
        Column("STATE", least=12, goes=5),
        Column("TYPE", least=10, goes=1),
        Column("TARGET", least=10, goes=3),
        *([Column("DONE", goes=4)] if some else []),
        Column("AGE", goes=2),
    ]
    cells = [
        [
            row["task_id"],
            f"{row['status']} ({row['waiting_for']})" if row["waiting_for"] else row["status"],
            "" if row["state"] == row["status"] else row["state"],
            row["type"],
            row["target"] or "",
            *([short(of(row["progress"]))] if some else []),
            ago(row["created_at"]),
        ]
        for row in rows
    ]
    table(columns, cells, hint="widen the terminal, or see one with show.")


def _facts(mission: Mapping[str, Any]) -> dict[str, str]:
    lease, hold, ended = mission["lease"], mission["hold"], (mission["result"] or {}).get("finished_at")
    holder = "" if hold is None else hold["holder"] or "nobody"
    progress, at = of(mission["progress"]), mission["progress_at"]
    told = f", told {ago(at)} ago" if at and not ended else ""
    own = "this mission" if holder == mission["task_id"] else holder
    return {
        "Mission": mission["task_id"],
        "Root": "" if mission["correlation_id"] == mission["task_id"] else mission["correlation_id"],
        "Parent": mission["parent"] or "",
        "Type": f"{mission['type']}@{mission['version']}, {mission['priority']}",
        "Accepted": f"{moment(mission['created_at'])} by {_source(mission['envelope'])}",
        "Started": moment(mission["started_at"]),
        "Progress": f"{line(progress)}{told}" if progress is not None else "",
        "Ended": f"{moment(ended)}, after {between(mission['created_at'], ended)}" if ended else "",
        "Deadline": moment(mission["deadline"]),
        "Target": f"{mission['target']}, held by {own}, {hold['waiters']} waiting" if hold else "",
        "Lease": f"worker {lease['owner']}, until {moment(lease['ends_at'])}" if lease else "",
        "Wakes": moment(mission["wake_at"]),
        "Paused": moment(mission["paused_at"]),
        "Parked": moment(mission["parked_at"]),
        "Permits": ", ".join(mission["permits"]),
        "Newest wins": mission["latest"] or "",
        "Lane": f"{mission['lane']}, order {mission['order']}",
        "Attempt": f"{mission['attempt']}, visit {mission['visit']}, {mission['deaths']} deaths, run {mission['run']}",
        "Written": f"seq {mission['seq']}, rev {mission['rev']}, fence {mission['fence']}, {mission['unread']} unread",
        "Trace": mission["trace_id"] or "",
        "Refused": "; ".join(row.get("why", "") for row in mission["outbox"]["dead"]),
    }


def _source(envelope: dict[str, Any]) -> str:
    source, schedule = str(envelope.get("source", "?")), envelope.get("schedule")
    return f"{source} {schedule.get('name')}" if isinstance(schedule, dict) else source
