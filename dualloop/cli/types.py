"""The mission types that live workers know."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualloop.cli.asking import ask
from dualloop.cli.fitting import Column
from dualloop.cli.output import Json, console, drawing, facts, machine, say, section
from dualloop.cli.tables import table
from dualloop.cli.writing import writing
from dualloop.errors import Refusal
from frontend_loop.why import lasting
from shared.settings import Settings

if TYPE_CHECKING:
    from dualloop.client import Client

commands = typer.Typer()
group = typer.Typer(help="The mission types that workers know.", no_args_is_help=True)
commands.add_typer(group, name="types")

OF_THE_FOREGROUND = frozenset({"versions", "graph"})
"""What a foreground adds to a row of the catalogue."""


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
            (
                Column("TYPE"),
                Column("VERSIONS", goes=2),
                Column("PRIORITY", goes=1),
                Column("POOL", goes=3),
                Column("TARGET", goes=4),
                Column("WHAT IT DOES", least=50, folds=True),
            ),
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
            hint="widen the terminal, or see one with show.",
        )


@group.command()
def show(  # noqa: PLR0913  the ways to show it
    type_: Annotated[str, typer.Argument(metavar="TYPE", help="As listed by: dualloop types ls.")],
    *,
    version: Annotated[
        int | None, typer.Option(help="Of the payload. Default: the newest.", show_default=False)
    ] = None,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Its diagram alone, as Mermaid text.")] = False,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Write its diagram as a picture.", show_default=False)
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="The payload as JSON Schema, as the door checks it.")
    ] = False,
    json: Json = False,
) -> None:
    """Show states, transitions and payload of a type."""
    row = ask(lambda client: client.mission_type(type_, version))
    if svg is not None:
        with writing(svg):
            svg.write_bytes(row["graph"]["svg"].encode())
    if json:
        machine(row)
    elif mermaid:
        typer.echo(row["graph"]["mermaid"], nl=False)
    elif svg is not None:
        say(f"Drew {row['type']}@{row['version']} into {svg}")
    else:
        _show(row, schema=schema)


@group.command()
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What DUALLOOP_CATALOGUE is to name.")],
    *,
    installed: Annotated[
        bool, typer.Option("--installed", help="Of the mission modules of this machine; nothing need run.")
    ] = False,
) -> None:
    """Write all types into a file, by which a foreground takes commands before any worker ran."""
    from shared.catalogue_file import packed  # noqa: PLC0415  other commands start without it

    rows = _installed() if installed else ask(_announced)
    if not rows:
        raise Refusal("No worker has announced a type yet: start one, or add --installed.")
    with writing(file):
        file.write_bytes(packed(rows))
    kinds = [f"{row['type']}@{row['version']}" for row in rows]
    say(f"Wrote {len(kinds)} mission type{'s' if len(kinds) != 1 else ''} to {file}: {', '.join(kinds)}")
    say(f"A foreground with DUALLOOP_CATALOGUE={file} takes commands for them before any worker ran.", "dim")


async def _announced(client: "Client") -> list[dict[str, Any]]:
    """The rows of the catalogue, every version of them."""
    rows = [
        await client.mission_type(listed["type"], version)
        for listed in await client.mission_types()
        for version in listed["versions"]
    ]
    return [{name: value for name, value in row.items() if name not in OF_THE_FOREGROUND} for row in rows]


def _installed() -> list[dict[str, Any]]:
    from backend_loop import registry  # noqa: PLC0415  other commands start without missions
    from backend_loop.mission import DefinitionError  # noqa: PLC0415
    from backend_loop.mission_type import rows_of  # noqa: PLC0415

    try:
        types = registry.load(Settings().missions)
    except DefinitionError as error:
        raise Refusal(str(error)) from error
    return [row.model_dump(mode="json") for row in rows_of(types.values())]


def _show(row: Mapping[str, Any], *, schema: bool) -> None:
    from frontend_loop.diagram import diagram  # noqa: PLC0415  other commands start without it
    from frontend_loop.diagram_text import text  # noqa: PLC0415
    from shared.catalogue import Row  # noqa: PLC0415

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
            "Deadline": lasting(round(1000 * row["deadline_s"])) if row["deadline_s"] else "",
            "At once": f"{row['concurrency']} at most" if row["concurrency"] else "",
            "Newest wins": _latest(row["latest"]),
        }
    )
    say()
    drawing(text(diagram(Row.model_validate(row)), console().width))
    if schema:
        section("Payload (JSON Schema)", row["payload_schema"])
    else:
        _payload(row["payload_schema"])


def _payload(schema: Mapping[str, Any]) -> None:
    """What to send, a line a field; the schema itself is for machines."""
    fields, required = schema.get("properties", {}), schema.get("required", ())
    say()
    if not fields:
        say("Payload: any object.")
        return
    table(
        (
            Column("PAYLOAD"),
            Column("TYPE", least=12, folds=True),
            Column(""),
            Column("WHAT IT IS", least=1, folds=True, below=True),
        ),
        [
            (name, _kind(field), "required" if name in required else "", field.get("description", ""))
            for name, field in fields.items()
        ],
    )


def _kind(field: Mapping[str, Any]) -> str:
    if "enum" in field or "const" in field:
        return " | ".join(str(one) for one in field.get("enum", [field.get("const")]))
    if "anyOf" in field:
        return " or ".join(_kind(one) for one in field["anyOf"])
    return str(field.get("type") or field.get("$ref", "any").rpartition("/")[2])


def _latest(rule: Mapping[str, Any] | None) -> str:
    if rule is None:
        return ""
    if rule.get("aspect"):
        return f"for {rule['aspect']} of a target"
    return f"for what {rule['field']} says of a target: {', '.join(dict.fromkeys(rule['aspects'].values()))}"
