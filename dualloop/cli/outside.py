"""The demonstration's outside services: run them, break them, look into their books."""

from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

import typer

from dualloop.cli.output import Json, machine, say
from dualloop.cli.tables import table
from dualloop.errors import Refusal
from shared.settings import Settings

if TYPE_CHECKING:
    import httpx

commands = typer.Typer()
group = typer.Typer(
    help="Stock, payment, shipping, logistics, notification, gadgets, a model; without a command: run them.",
    invoke_without_command=True,
)
commands.add_typer(group, name="outside")

Service = Literal["stock", "payment", "shipping", "logistics", "notification", "gadgets", "model"]


@group.callback()
def run(context: typer.Context) -> None:
    """Run the outside services alone, or ask those that run."""
    if context.invoked_subcommand is None:
        from dualloop.outside.ledger import OutsideTaken  # noqa: PLC0415  other commands start without it
        from dualloop.outside.main import run as serve  # noqa: PLC0415

        try:
            serve(Settings())
        except OutsideTaken as taken:
            raise Refusal(f"The outside services run already: {taken}.") from taken


@group.command()
def books(
    order: Annotated[str | None, typer.Argument(help="All about this one.", show_default=False)] = None,
    *,
    json: Json = False,
) -> None:
    """Whether the books balance, with what is in them; of an order: what stands for it, and what was done."""
    if order in {".", ".."}:
        raise Refusal("No order is called so.")
    told = _ask("GET", "/books" if order is None else f"/books/{quote(order, safe='')}")
    if json:
        machine(told)
    elif order is not None and not told["journal"]:
        say(f"Nothing was done for order {order}.")
    elif order is not None:
        rows = [(one["service"], one["verb"], told["states"][one["service"]]) for one in told["journal"]]
        table(("service", "did", "what stands now"), rows)
    else:
        for book in ("stock", "money"):
            table((book, "amount"), [(account, str(amount)) for account, amount in told[book].items()])
            say()
        table(("firmware", "gadgets"), [(version, str(count)) for version, count in told["firmware"].items()])
        say()
        say("The books balance." if told["balanced"] else "The books do not balance:")
        for fault in told["faults"]:
            say(f"  {fault}", "bold red")
    if not told.get("balanced", True):
        raise typer.Exit(1)


@group.command()
def fault(  # noqa: PLR0913  a fault each
    service: Annotated[Service, typer.Argument(help="Which one.")],
    *,
    slow: Annotated[float, typer.Option(metavar="SECONDS", min=0, max=60, help="Waits before anything happens.")] = 0,
    down: Annotated[bool, typer.Option("--down", help="Answers 503 and does nothing.")] = False,
    refuses: Annotated[bool, typer.Option("--refuses", help="Says no to what is new, for good.")] = False,
    garbage: Annotated[bool, typer.Option("--garbage", help="Does it, and answers nonsense.")] = False,
    lose_reply: Annotated[bool, typer.Option("--lose-reply", help="Does it, and cuts the connection.")] = False,
    flapping: Annotated[float, typer.Option(metavar="SHARE", min=0, max=1, help="So many fail, by chance.")] = 0,
    idle: Annotated[bool, typer.Option("--idle", help="Payment: nobody pays by themselves.")] = False,
    times: Annotated[int | None, typer.Option(min=1, help="Requests until it is well again.")] = None,
    json: Json = False,
) -> None:
    """Switch faults of a service on, in place of those it has; none given: it is well again."""
    switched = {"down": down, "refuses": refuses, "garbage": garbage, "lose_reply": lose_reply, "idle": idle}
    faults = {"slow_s": slow, "flapping": flapping, "times": times, **switched}
    told = _ask("PUT", f"/faults/{service}", faults)
    if json:
        machine(told)
        return
    del told["service"]
    on = [name if value is True else f"{name} {value}" for name, value in told.items() if value]
    say(f"{service}: {', '.join(on) or 'well'}")


def _ask(method: str, path: str, body: Any = None) -> dict[str, Any]:
    import httpx  # noqa: PLC0415  other commands start without it

    url = _url(Settings())
    try:
        answer = httpx.request(method, f"{url}{path}", json=body, timeout=10, trust_env=False)
    except httpx.TransportError as error:
        raise Refusal(f"No outside services answer at {url}: start them with dualloop up.") from error
    return _told(answer)


def _told(answer: "httpx.Response") -> dict[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        document = None
    if answer.is_success and isinstance(document, dict):
        return document
    if answer.is_success:
        raise Refusal("The outside services gave an answer that is no JSON object.")
    detail = document.get("detail") if isinstance(document, dict) else None
    if isinstance(detail, list) and detail:  # of what the framework itself refuses
        detail = f"{(detail[0].get('loc') or ['it'])[-1]}: {detail[0].get('msg')}."
    raise Refusal(detail if isinstance(detail, str) else f"HTTP {answer.status_code} from the outside services.")


def _url(settings: Settings) -> str:
    if settings.outside_url is not None:
        return settings.outside_url.rstrip("/")
    try:
        return (settings.state_dir / "outside.url").read_text()
    except OSError:
        raise Refusal(
            f"No outside services run on {settings.state_dir.absolute()}: start them with dualloop up, "
            "or name some in DUALLOOP_OUTSIDE_URL."
        ) from None
