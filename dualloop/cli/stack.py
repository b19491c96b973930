"""The commands that run processes: all of them together, or one."""

import contextlib
from typing import Annotated, Any

import typer
from pydantic import SecretStr

from dualloop.address import running_broker
from dualloop.errors import Refusal
from shared.settings import Settings

commands = typer.Typer()


@commands.command()
def up(
    workers: Annotated[
        int, typer.Option(min=0, help="Background processes; 0: none, start them yourself, as in a debugger.")
    ] = 1,
    *,
    reload: Annotated[bool, typer.Option("--reload", help="Take over mission modules when they are edited.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the logs of the parts here.")] = False,
) -> None:
    """Run everything on this machine: Redis, foreground, background, a simulated home, its broker, outside services."""
    from dualloop.stack import up as run  # noqa: PLC0415  other commands start without its imports

    raise typer.Exit(run(Settings(), workers=workers, reload=reload, verbose=verbose))


@commands.command()
def foreground() -> None:
    """Run one foreground process: accepts commands and tells results."""
    from frontend_loop.app import run  # noqa: PLC0415  the other processes do without it

    run(_joined(Settings()))


@commands.command()
def background() -> None:
    """Run one background process: decides and does."""
    from backend_loop.main import run  # noqa: PLC0415  the other processes do without it

    run(_joined(Settings()))


@commands.command()
def broker() -> None:
    """Run the MQTT broker of this machine alone."""
    from dualloop.broker import run  # noqa: PLC0415  as above

    run(Settings())


def _joined(settings: Settings) -> Settings:
    """Settings with what the ``up`` that runs on the state folder has, unless they name others."""
    given = dict[str, Any]()
    if settings.redis_url is None:
        given["redis_url"] = _redis_url(settings)
    for name in ("home", "outside"):
        if getattr(settings, f"{name}_url") is None:
            with contextlib.suppress(OSError):  # there is none
                given[f"{name}_url"] = (settings.state_dir / f"{name}.url").read_text()
    if settings.mqtt_url is None and settings.home_url is None and (broker := running_broker(settings.state_dir)):
        given["mqtt_url"] = SecretStr(broker)
    return settings.model_copy(update=given)


def _redis_url(settings: Settings) -> str:
    from dualloop.embedded import running_url  # noqa: PLC0415  not needed where the URL is given

    url = running_url(settings.state_dir)
    if url is None:
        raise Refusal(
            f"No Redis: set DUALLOOP_REDIS_URL, or run dualloop up (none runs on {settings.state_dir.absolute()})."
        )
    return url
