"""The home: what is where and how it stands; and of the simulated one the switches by hand and the faults.

The simulated home is looked at as by a person who stands before its devices; any other one is read by a worker, live.
"""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from pydantic import SecretStr
from pydantic_core import from_json

from dualloop.address import running_broker
from dualloop.cli import inventory
from dualloop.cli.asking import ask
from dualloop.cli.fitting import Column
from dualloop.cli.output import Json, ago, facts, machine, moment, say
from dualloop.cli.tables import table
from dualloop.errors import Refusal
from shared.settings import Settings

if TYPE_CHECKING:
    from dualloop.client import Client

commands = typer.Typer()
group = typer.Typer(help="The home; without a command: run the simulated one.", invoke_without_command=True)
group.add_typer(inventory.commands)
commands.add_typer(group, name="home")

Entity = Annotated[str, typer.Argument(metavar="ENTITY", help="As listed by: dualloop home ls.")]
Document = dict[str, Any]
AT_ONCE: Final = 100
"""Devices that one query may ask for."""
READ_S: Final = 70.0
"""Longer than a query lives."""
ELSEWHERE: Final = "elsewhere"
"""The area of devices that the inventory puts into none."""
CALLED: Final[Mapping[str, str]] = {
    "refuse": "refuses",
    "lie": "lies",
    "lose_answer": "lose-answer",
    "observe_stale": "stale",
    "duplicate": "duplicates",
    "latency_ms": "slow",
    "act_latency_ms": "slow-answer",
    "late_ms": "late",
}
"""Faults by the option that sets them, where it is another word; one in ms is told in seconds, as it was set."""


@group.callback()
def run(context: typer.Context) -> None:
    """Run the simulated home alone, or ask the home that runs."""
    if context.invoked_subcommand is None:
        from dualloop.home.main import run as serve  # noqa: PLC0415  other commands start without it
        from dualloop.home.store import HomeTaken  # noqa: PLC0415

        settings = Settings()
        broker = running_broker(settings.state_dir) if settings.mqtt_url is None else None
        try:
            serve(settings.model_copy(update={"mqtt_url": SecretStr(broker)} if broker else {}))
        except HomeTaken as taken:
            raise Refusal(f"The simulated home runs already: {taken}. dualloop home ls shows it.") from taken


@group.command()
def ls(
    area: Annotated[str | None, typer.Argument(help="Only what is there.", show_default=False)] = None,
    *,
    json: Json = False,
) -> None:
    """List areas and devices, and how each stands now."""

    async def work(client: "Client") -> tuple[Document, list[Document]]:
        known = (await client.home.look())["inventory"]
        return known, await _states(client, [entry["entity"] for entry in known["devices"]])

    known, devices = ask(work)
    rows = [row for row in _rows(known, devices) if area is None or row["area"] == area]
    if area is not None and not rows:
        raise Refusal(f"There is no device in {area}: dualloop home ls lists the areas.")
    if json:
        machine({"devices": rows})
        return
    if not rows:
        say("No device has a name yet: write home.json (dualloop home schema), or dualloop home import FILE.")
        return
    cells = [[row["area"], row["entity"], row["name"], _values(row["value"]), _trouble(row)] for row in rows]
    columns = [
        Column("AREA", least=8, goes=1),  # most entities say their area too
        Column("DEVICE"),
        Column("NAME", least=12, goes=2),
        Column("SHOWS", least=36),
        Column("", least=16, folds=True),
    ]
    table(columns, cells, hint="widen the terminal, or see one with show.")


@group.command()
def show(entity: Entity, *, json: Json = False) -> None:
    """Show a device: how it stands, who changed it last, what it can do, its faults."""

    async def work(client: "Client") -> tuple[Document, Document]:
        known = (await client.home.look())["inventory"]
        return known, await _simulated(client.home.device(entity)) or (await _read(client, [entity]))[0]

    known, device = ask(work)
    (row,) = _rows(known, [device], every=False)
    if json:
        machine(row)
        return
    say(entity, "bold")
    facts(
        {
            "Area": row["area"],
            "Names": ", ".join(name for names in row["names"].values() for name in names),
            "MQTT": row["wire"] or "",
            "Shows": _values(row["value"]),
            "Can": ", ".join(row["actions"]),
            "Trouble": _trouble(row),
        }
    )
    for name, change in row["changes"].items():
        say(f"  {name} was changed by {change['by']} at {moment(change['at'])}, {ago(change['at'])} ago")


@group.command()
def hand(
    entity: Entity,
    values: Annotated[list[str], typer.Argument(metavar="NAME=VALUE…", help="What it is to show, as power=on.")],
    *,
    json: Json = False,
) -> None:
    """Switch a device of the simulated home by hand."""
    wanted = dict(_value(text) for text in values)
    told = ask(lambda client: client.home.intervene(entity, hand=wanted))
    if json:
        machine(told)
    else:
        say(f"{entity}: {_values(told['value'])}")


@group.command()
def fault(  # noqa: PLR0913  a fault each
    entity: Entity,
    *,
    offline: Annotated[bool, typer.Option("--offline", help="Away, and known to be.")] = False,
    silent: Annotated[bool, typer.Option("--silent", help="Gives no answer and does nothing.")] = False,
    slow: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Waits before anything happens.")] = 0,
    slow_answer: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Waits before it answers.")] = 0,
    refuses: Annotated[bool, typer.Option("--refuses", help="Says no.")] = False,
    lies: Annotated[bool, typer.Option("--lies", help="Says that it obeyed, and did not.")] = False,
    lose_answer: Annotated[bool, typer.Option("--lose-answer", help="Obeys, and does not say so.")] = False,
    stale: Annotated[bool, typer.Option("--stale", help="Goes on showing what it shows now.")] = False,
    duplicates: Annotated[bool, typer.Option("--duplicates", help="Says everything twice, by MQTT.")] = False,
    late: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Reports come so late, by MQTT.")] = 0,
    json: Json = False,
) -> None:
    """Break a device of the simulated home, in place of the faults it has; none given: it is well again."""
    switches = {"offline": offline, "silent": silent, "refuse": refuses, "lie": lies, "lose_answer": lose_answer}
    switches |= {"observe_stale": stale, "duplicate": duplicates}
    waits = {"latency_ms": slow, "act_latency_ms": slow_answer, "late_ms": late}
    faults: Document = {name: on for name, on in switches.items() if on}
    faults |= {name: round(seconds * 1000) for name, seconds in waits.items() if seconds}
    told = ask(lambda client: client.home.intervene(entity, faults=faults))
    if json:
        machine(told)
    else:
        say(f"{entity}: {_faults(told['faults']) or 'well'}")


async def _simulated(question: Awaitable[Document]) -> Document | None:
    """What the simulated home answers; None: there is none."""
    from dualloop.client_faults import ClientProblem  # noqa: PLC0415  other commands start without it

    try:
        return await question
    except ClientProblem as problem:
        if problem.code != "home_unavailable":
            raise
        return None


async def _states(client: "Client", entities: Sequence[str]) -> list[Document]:
    if (told := await _simulated(client.home.devices())) is not None:
        return list(told["devices"])
    chunks = [entities[begin : begin + AT_ONCE] for begin in range(0, len(entities), AT_ONCE)]
    return [state for chunk in chunks for state in await _read(client, chunk)]


async def _read(client: "Client", entities: Sequence[str]) -> list[Document]:
    """How they are, read by a worker; `error` says why one could not be."""
    ack = await client.submit("device.query", {"entity": list(entities)})
    done = await client.wait(ack.correlation_id, timeout=READ_S)
    if not done["result"]:
        raise Refusal(f"The devices could not be read: {(done['error'] or {}).get('message') or done['status']}.")
    return list(done["result"]["devices"])


def _rows(known: Document, devices: Iterable[Document], *, every: bool = True) -> list[Document]:
    """Each device with what the inventory says of it, by area; ``every``: also those that only it has."""
    entries = {entry["entity"]: entry for entry in known.get("devices", ())}
    areas = [area["id"] for area in known.get("areas", ())]
    states = {device["entity"]: device for device in devices}
    wanted = [*(entity for entity in entries if every or entity in states), *(states.keys() - entries.keys())]
    rows = [_row(entity, entries.get(entity, {}), states.get(entity, {})) for entity in wanted]
    places = {area: place for place, area in enumerate(areas)}
    return sorted(rows, key=lambda row: (places.get(row["area"], len(places)), row["entity"]))


def _row(entity: str, entry: Document, state: Document) -> Document:
    names: dict[str, list[str]] = entry.get("names") or {}
    return {
        "entity": entity,
        "area": entry.get("area") or ELSEWHERE,
        "names": names,
        "name": next((spoken[0] for spoken in names.values() if spoken), ""),
        "wire": entry.get("wire"),
        "value": state.get("value"),
        "reachable": state.get("reachable"),
        "actions": state.get("actions") or [],
        "changes": state.get("changes") or {},
        "faults": state.get("faults") or {},
        "freshness": state.get("freshness"),
        "error": state.get("error"),
    }


def _value(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise Refusal(f"{text} is no NAME=VALUE: write power=on, or brightness=40.")
    try:
        number = from_json(value)
    except ValueError:
        return name, value
    return name, number if isinstance(number, int | float) else value


def _values(value: Mapping[str, Any] | None) -> str:
    return "" if value is None else ", ".join(f"{name} {one}" for name, one in value.items())


def _trouble(row: Document) -> str:
    if row["value"] is None and not row["error"]:
        return "not in the simulated home"
    return row["error"] or _faults(row["faults"])


def _faults(faults: Mapping[str, Any]) -> str:
    return ", ".join(_fault(name, on) for name, on in faults.items() if on)


def _fault(name: str, on: Any) -> str:
    called = CALLED.get(name, name)
    if on is True:
        return called
    return f"{called} {on / 1000:g} s" if name.endswith("_ms") else f"{called} {on}"
