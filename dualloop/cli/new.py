"""Begin something of one's own: a mission with its test."""

import importlib.machinery
import importlib.util
import keyword
import shlex
import sys
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated, Final, NamedTuple

import typer

from dualloop.address import local_url
from dualloop.cli.output import clean, say
from dualloop.cli.writing import writing
from dualloop.errors import Refusal
from shared.settings import Settings

commands = typer.Typer()
group = typer.Typer(help="Begin something of your own.", no_args_is_help=True)
commands.add_typer(group, name="new")

PAYLOAD: Final = '{"sku": "lamp", "customer": "ada"}'
"""What the template's mission takes."""

TAKEN: Final = frozenset(
    {
        *("BaseModel", "Field", "Mission", "Fail", "Go", "Outcome", "Retry", "ServiceRefused", "Toolbox"),
        *("Answers", "Bench", "Payload", "Context"),
    }
)
"""Names that the templates use themselves."""


class Names(NamedTuple):
    """What the parts of a new mission are called."""

    type: str
    module: str
    cls: str

    @property
    def files(self) -> tuple[Path, Path]:
        """The mission's and its test's, in this folder."""
        return Path(f"{self.module}.py"), Path(f"test_{self.module}.py")


@group.command()
def mission(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the type, such as shop.parcel.")],
) -> None:
    """Write a mission and its test into this folder, and say how to run, test and send it."""
    names, settings = named(name), Settings()
    for file in names.files:
        if file.exists():
            raise Refusal(f"{file} is there already: choose another name, or move it away.")
    if Path("__init__.py").exists():
        raise Refusal("This folder is a package: make the mission beside it, where DUALLOOP_MISSIONS can name it.")
    missions, url = ",".join((*settings.missions, names.module)), local_url(settings.host, settings.port)
    words = {**names._asdict(), "missions": missions, "url": url}
    for file, template in zip(names.files, ("mission.txt", "test.txt"), strict=True):
        content = Template(files("dualloop").joinpath("templates", template).read_text()).substitute(words)
        with writing(file), file.open("x") as opened:
            opened.write(content)
    say(f"Wrote {names.files[0]} and {names.files[1]}.", "bold")
    _say_how(names, missions, url)


def named(name: str) -> Names:
    """What follows from the name of a type.

    Raises:
        Refusal: it cannot be one, or its file would hide a module.
    """
    from backend_loop.definition import NAME  # noqa: PLC0415  other commands start without missions

    if not NAME.fullmatch(name):
        raise Refusal(
            clean(f"{name!r} cannot be a mission type: write small letters, digits and _, with dots between words, ")
            + "such as shop.parcel."
        )
    module = name.rpartition(".")[2]
    if keyword.iskeyword(module) or hides(module):
        raise Refusal(
            f"The mission would be in {module}.py, and Python has a {module} of its own: choose another last word."
        )
    if Path(module).is_dir():
        raise Refusal(f"The mission would be in {module}.py, and the folder {module} would be found before it.")
    if name in _built_in():
        raise Refusal(f"{name} comes with the product: choose another name.")
    cls = "".join(word.capitalize() for word in module.split("_"))
    return Names(name, module, f"{cls}Mission" if cls in TAKEN else cls)


def hides(module: str) -> bool:
    """Whether a file of this name here would stand in front of a module that others import."""
    if module in sys.stdlib_module_names:
        return True
    here = {str(Path.cwd()), ""}
    found = importlib.machinery.PathFinder.find_spec(module, [path for path in sys.path if path not in here])
    return found is not None


def _in_checkout() -> bool:
    """Whether this folder is that of the product itself, whose pytest wants what its own tests do."""
    return Path("requirements-dev.lock").exists() and Path("dualloop", "cli").is_dir()


def _built_in() -> frozenset[str]:
    from backend_loop import registry  # noqa: PLC0415  other commands start without missions

    return frozenset(one.type for one in registry.load(()).values())


def _say_how(names: Names, missions: str, url: str) -> None:
    lacks = importlib.util.find_spec("pytest") is None
    install = "make dev" if _in_checkout() else "python -m pip install pytest"
    body = f'{{"type": "{names.type}", "payload": {PAYLOAD}}}'
    say()
    say("Test it" + (f", once there is a pytest: {install}" if lacks else ""))
    typer.echo(f"  python -m pytest test_{names.module}.py")
    say("Run it; the worker takes up what you edit")
    typer.echo(f"  DUALLOOP_MISSIONS={missions} dualloop up --reload")
    say("Send one, from a second terminal, either way")
    typer.echo(f"  curl -s {url}/v1/commands -H 'content-type: application/json' -d {shlex.quote(body)}")
    typer.echo(f"  dualloop send --type {names.type} --payload {shlex.quote(PAYLOAD)} --wait")
