"""The mission types that live workers know."""

from typing import Annotated, Any

import typer

from dualloop.cli.asking import ask
from dualloop.cli.output import Json, facts, machine, say, section, table

commands = typer.Typer()
group = typer.Typer(help="The mission types that workers know.", no_args_is_help=True)
commands.add_typer(group, name="types")


@group.command()
def ls(*, json: Json = False) -> None:
    """List the types."""
    types = ask(lambda client: client.mission_types())
    if json:
        machine(types)
    elif not types:
        say("No worker has announced a type yet: start one with dualloop background.")
    else:
        table(
            ("TYPE", "VERSIONS", "PRIORITY", "POOL", "TARGET", "WHAT IT DOES"),
            [
                (
                    row["type"],
                    ", ".join(map(str, row["versions"])),
                    row["priority"],
                    row["pool"],
                    row["target"] or "",
                    row["description"].partition("\n")[0],
                )
                for row in types
            ],
            fixed=frozenset({"TYPE"}),
        )


@group.command()
def show(
    type_: Annotated[str, typer.Argument(metavar="TYPE", help="As listed by: dualloop types ls.")],
    *,
    version: Annotated[
        int | None, typer.Option(help="Of the payload. Default: the newest.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Show states, transitions and payload of a type."""
    row = ask(lambda client: client.mission_type(type_, version))
    if json:
        machine(row)
        return
    say(f"{row['type']}@{row['version']}", "bold")
    if row["description"]:
        say(row["description"])
    say()
    facts(
        {
            "Versions": ", ".join(map(str, row["versions"])),
            "Priority": row["priority"],
            "Pool": row["pool"],
            "Target": f"payload field {row['target']}" if row["target"] else "",
            "Deadline": f"{row['deadline_s']:g} s" if row["deadline_s"] else "",
        }
    )
    say()
    table(("STATE", "TIMEOUT", "TRIES", "", "LEADS TO"), _states(row), fixed=frozenset({"STATE"}))
    section("Payload (JSON Schema)", row["payload_schema"])


def _states(row: dict[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            name,
            f"{spec['timeout_s']:g} s" if "timeout_s" in spec else "",
            str(spec.get("retry", {}).get("tries", "")),
            "acts" if spec.get("acting") else "",
            ", ".join(f"{one['event']} → {one['to']}" for one in row["transitions"] if one["from"] == name),
        )
        for name, spec in row["states"].items()
    ]
