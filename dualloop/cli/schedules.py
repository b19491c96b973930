"""Commands that are sent by the clock: listed, looked at, added, paused, run by hand, removed."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dualloop.cli.arguments import By, Note, json_object, who
from dualloop.cli.asking import ask, ask_each
from dualloop.cli.fitting import Column
from dualloop.cli.output import Json, ago, facts, machine, moment, say, section
from dualloop.cli.tables import table
from dualloop.errors import Refusal
from shared.status import Priority

if TYPE_CHECKING:
    from dualloop.client import Client

commands = typer.Typer()
group = typer.Typer(help="Commands that are sent by the clock.", no_args_is_help=True)
commands.add_typer(group, name="schedules")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the schedule.")]
Names = Annotated[list[str], typer.Argument(metavar="NAME…", help="Of schedules, as listed by: dualloop schedules ls.")]
PAGE = 200


@group.command()
def ls(
    *,
    q: Annotated[str | None, typer.Option("-q", help="Text within the name.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows at most.")] = 50,
    json: Json = False,
) -> None:
    """List schedules by name."""

    async def work(client: "Client") -> tuple[list[dict[str, Any]], bool]:
        rows: list[dict[str, Any]] = []
        cursor = None
        while len(rows) <= limit:
            page = await client.schedules.page(q=q, cursor=cursor, limit=PAGE)
            rows += page["schedules"]
            if (cursor := page["cursor"]) is None:
                break
        return rows[:limit], len(rows) <= limit

    rows, whole = ask(work)
    if json:
        machine({"schedules": rows, "whole": whole})
    elif not rows:
        say("No schedule fits." if q else "There is no schedule. Add one: dualloop schedules add --help")
    else:
        cells = [
            [row["name"], row["cron"], row["zone"], row["command"]["type"], _ahead(row), _last(row), _troubled(row)]
            for row in rows
        ]
        columns = [
            Column("SCHEDULE", least=16, folds=True),  # by which it is called
            Column("CRON", goes=2),
            Column("ZONE", least=8, goes=4),
            Column("TYPE", least=10, goes=3),
            Column("NEXT"),
            Column("LAST", goes=1),
            Column("", least=16, folds=True, below=True),
        ]
        table(columns, cells, hint="widen the terminal, or see one with show.")
        if not whole:
            say(f"The first {limit}: see more with --limit.", "dim")


@group.command()
def show(name: Name, *, json: Json = False) -> None:
    """Show everything about a schedule, with its next instants."""
    told = ask(lambda client: client.schedules.look(name))
    if json:
        machine(told)
        return
    last, by_hand, trouble = told["last_fired"], told["last_run"], told["trouble"]
    say(told["name"] + (" (paused)" if told["paused"] else ""), "bold")
    facts(
        {
            "Cron": f"{told['cron']}  {told['zone']}",
            "Daylight saving": told["daylight_saving"],
            "Misfire": f"{told['misfire']}, later than {told['late_s']:g} s",
            "Jitter": f"up to {told['jitter_s']:g} s" if told["jitter_s"] else "",
            "Next": ", ".join(one["local"] for one in told["next"]),
            "Fired": f"{told['fired']} times",
            "Last": f"{last['task_id']} for {moment(last['instant'])} ({last['status'] or 'kept no more'})"
            if last
            else "",
            "By hand": f"{by_hand['task_id']} by {by_hand['by']} at {moment(by_hand['at'])}" if by_hand else "",
            "Trouble": f"{trouble['detail']} (since {moment(trouble['at'])})" if trouble else "",
        }
    )
    section("Command", told["command"])


@group.command()
def add(  # noqa: PLR0913  what may be said of it
    name: Name,
    *,
    cron: Annotated[str, typer.Option(help="Minute, hour, day of month, month, day of week.")],
    type_: Annotated[str | None, typer.Option("--type", help="Mission type.", show_default=False)] = None,
    payload: Annotated[str, typer.Option(metavar="JSON", help="Of each mission; - reads standard input.")] = "{}",
    text: Annotated[str | None, typer.Option(help="What you want, in words, instead of --type.")] = None,
    locale: Annotated[str | None, typer.Option(help="Language of the text. Default: as it looks.")] = None,
    zone: Annotated[str, typer.Option(help="IANA time zone of the expression.")] = "UTC",
    target: Annotated[str | None, typer.Option(help="What is acted on.", show_default=False)] = None,
    priority: Annotated[Priority | None, typer.Option(help="Default: the type's.", show_default=False)] = None,
    deadline: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Of each mission. Default: the type's.", show_default=False)
    ] = None,
    misfire: Annotated[
        Literal["skip", "once", "all"],
        typer.Option(help="Which instants are made up for that nobody was there for: none, the newest, or each."),
    ] = "once",
    late: Annotated[float, typer.Option(metavar="SECONDS", help="How late an instant is still run in any case.")] = 60,
    daylight_saving: Annotated[
        Literal["skip", "once", "both"] | None,
        typer.Option(
            help="Of a time that does not exist, or exists twice. Default: once; both where the hour is *.",
            show_default=False,
        ),
    ] = None,
    jitter: Annotated[float, typer.Option(metavar="SECONDS", help="Each run comes later by up to so much.")] = 0,
    paused: Annotated[bool, typer.Option("--paused", help="Not before it is resumed.")] = False,
    by: By = None,
    note: Note = None,
    json: Json = False,
) -> None:
    """Add a schedule; it is checked like a command."""
    if (type_ is None) == (text is None):
        raise Refusal('Give a --type, or say it in words, such as --text "turn off the hall light".')
    body = json_object(payload, "payload")
    if text is not None and body:
        raise Refusal("A --payload goes with a --type: words have none.")
    command: dict[str, Any] = {"type": type_, "payload": body} if text is None else {"text": text}
    given = {"locale": locale, "target": target, "priority": priority, "deadline_s": deadline}
    command |= {field: value for field, value in given.items() if value is not None}
    how: dict[str, Any] = {"zone": zone, "misfire": misfire, "late_s": late, "daylight_saving": daylight_saving}
    how |= {"jitter_s": jitter, "paused": paused, "by": who(by), "note": note}
    told = ask(lambda client: client.schedules.add(name, cron, command, **how))
    if json:
        machine(told)
    else:
        say(f"{name}  {_goes_on(told)}")


@group.command()
def pause(names: Names, *, by: By = None, note: Note = None, json: Json = False) -> None:
    """Fire them no more, until they are resumed."""
    asks = {"by": who(by), "note": note}
    ask_each(names, lambda client, name: client.schedules.pause(name, **asks)).show(lambda _: "paused", json=json)


@group.command()
def resume(names: Names, *, by: By = None, note: Note = None, json: Json = False) -> None:
    """Fire them again, from now on."""
    asks = {"by": who(by), "note": note}
    ask_each(names, lambda client, name: client.schedules.resume(name, **asks)).show(_goes_on, json=json)


@group.command()
def run(names: Names, *, by: By = None, note: Note = None, json: Json = False) -> None:
    """Send their commands now, paused or not; when they are next fired stays as it is."""
    asks = {"by": who(by), "note": note}
    ask_each(names, lambda client, name: client.schedules.run(name, **asks)).show(
        lambda ack: f"sent as {ack['correlation_id']}: dualloop watch {ack['correlation_id']}", json=json
    )


@group.command()
def rm(names: Names, *, by: By = None, note: Note = None, json: Json = False) -> None:
    """Remove them; missions that they have sent stay."""
    asks = {"by": who(by), "note": note}
    ask_each(names, lambda client, name: client.schedules.remove(name, **asks)).show(lambda _: "removed", json=json)


def _goes_on(told: dict[str, Any]) -> str:
    return f"is fired at {told['next'][0]['local']}" if told["next"] else "is paused"


def _ahead(row: dict[str, Any]) -> str:
    return str(row["next"][0]["local"]) if row["next"] else "paused"


def _last(row: dict[str, Any]) -> str:
    """By the clock or by hand."""
    ran = [run["at"] for run in (row["last_fired"], row["last_run"]) if run]
    return ago(max(ran)) if ran else "never"


def _troubled(row: dict[str, Any]) -> str:
    return str(row["trouble"]["detail"]) if row["trouble"] else ""
