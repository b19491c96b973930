"""What several commands take: an id, who asks and why, a JSON object."""

import getpass
import sys
from typing import Annotated, Any

import typer
from pydantic_core import from_json

from dualloop.cli.beginnings import whole
from dualloop.errors import Refusal


def one(context: typer.Context, value: str | None) -> str | None:
    """The whole id of an argument that may be its beginning.

    Raises:
        Refusal: it begins no id, or several.
    """
    return value if value is None or context.resilient_parsing else whole([value])[0]


def each(context: typer.Context, value: list[str] | None) -> list[str] | None:
    """As `one`, of several; if one of them is refused nothing is done for any."""
    return value if not value or context.resilient_parsing else whole(value)


Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", callback=one, help="correlation_id of the mission, or task_id of a child, or how it begins."
    ),
]
Ids = Annotated[
    list[str],
    typer.Argument(metavar="ID…", callback=each, help="correlation_ids, or task_ids of children, or how they begin."),
]
By = Annotated[str | None, typer.Option("--by", help="Who asks, for the log. Default: your login name.")]
Note = Annotated[str | None, typer.Option("--note", help="Why, for the log.", show_default=False)]


def who(by: str | None) -> str | None:
    """The name given, else that of the login; None where a machine without one asks."""
    if by is not None:
        return by
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return None


def json_object(text: str, what: str) -> dict[str, Any]:
    """A JSON object out of an argument; ``-`` reads it from standard input.

    Raises:
        Refusal: it is something else; `what` names it.
    """
    try:
        value = from_json(sys.stdin.read() if text == "-" else text, allow_inf_nan=False)
    except ValueError as error:
        raise Refusal(f"The {what} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise Refusal(f'The {what} must be a JSON object, such as {{"entity": "light.kitchen"}}.')
    return value
