"""The home's inventory as a file: its schema, taken along, brought in. Part of ``dualloop home``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from dualloop.cli.asking import ask
from dualloop.cli.output import clean, machine, say
from dualloop.cli.writing import writing
from dualloop.errors import Refusal
from shared import home
from shared.home import Inventory, InventoryError

commands = typer.Typer()


@commands.command()
def schema() -> None:
    """Print the JSON Schema of the inventory's file, for editors."""
    machine(home.schema())


@commands.command()
def export(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="Default: standard output.")] = None,
) -> None:
    """Write the inventory as it is now: areas, devices, what they are called, scenes."""
    told = ask(lambda client: client.home.look())
    try:
        inventory = home.check(told["inventory"])
    except InventoryError as error:
        raise Refusal(clean(f"The foreground is of another release: {error}.")) from error
    if file is None:
        typer.echo(inventory.text(), nl=False)
        return
    with writing(file):
        file.write_bytes(inventory.text())
    say(f"Wrote {_counted(inventory)} to {file}, revision {told['revision']}.")


@commands.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The inventory; - reads standard input.")],
    *,
    revision: Annotated[
        str | None, typer.Option(help="Only if the home is still at this revision.", show_default=False)
    ] = None,
) -> None:
    """Put this inventory in the place of the one that is there; all processes heed it at once."""
    inventory = _read(file)
    document = inventory.model_dump(by_alias=True, exclude_none=True)
    told = ask(lambda client: client.home.replace(document, revision=revision))
    say(f"The home has {_counted(inventory)}, revision {told['revision']}.")


def _read(file: Path) -> Inventory:
    try:
        return home.read(sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes())
    except OSError as error:
        raise Refusal(clean(f"{file} cannot be read: {error.strerror}.")) from error
    except InventoryError as error:
        faults = (f"{file}: {fault['pointer'] or 'the document'}: {fault['detail']}" for fault in error.faults)
        raise Refusal(clean("\n".join(faults))) from error


def _counted(inventory: Inventory) -> str:
    counts = {"area": len(inventory.areas), "device": len(inventory.devices), "scene": len(inventory.scenes)}
    return ", ".join(f"{number} {name}{'' if number == 1 else 's'}" for name, number in counts.items())
