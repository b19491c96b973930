"""What ``dualloop up`` says to the person before it."""

import contextlib
import shlex
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

import typer

from dualloop.parts import Plan
from shared.logs import redact_url

EXAMPLE = '{"type": "device.control", "payload": {"entity": "light.living_room", "action": "turn_on"}}'


class Terminal:
    """Plain lines; a terminal that was closed meanwhile is no reason to fail."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def say(self, line: str) -> None:
        """Tell what happens, when it happens."""
        self._write(f"{typer.style(time.strftime('%H:%M:%S'), dim=True)}  {line}")

    def starting(self, parts: Sequence[str]) -> None:
        """The first line."""
        self._write(f"{typer.style(f'Dual Loop {_version()}', bold=True)}: starting {', '.join(parts)}")

    def ready(self, plan: Plan, watched: str = "") -> None:
        """Where it is, what to try, how to stop; with `watched`, whose edits are taken over."""
        url, settings = plan.url, plan.settings
        server = f"{plan.held.program}, " if plan.held else ""
        example = f"curl {url}/v1/commands -H 'content-type: application/json' \\\n{'':14}-d {shlex.quote(EXAMPLE)}"
        tries = {"Try": example, "Result": f"curl '{url}/v1/results/CORRELATION_ID?wait=10'"}
        rows = {
            **(tries if plan.own_home else {"Try": "dualloop doctor"}),  # what a home of others has, it finds out
            **({} if settings.home_url is None else {"Home": redact_url(settings.home_url)}),
            **({} if settings.mqtt_url is None else {"MQTT": redact_url(settings.mqtt_url.get_secret_value())}),
            **({} if settings.outside_url is None else {"Outside": redact_url(settings.outside_url)}),
            "Redis": f"{server}{redact_url(str(settings.redis_url))}",
            "Logs": "this terminal" if plan.verbose else f"{settings.state_dir / 'logs'}",
            **({} if plan.workers else {"Workers": "none yet: start one, in this folder, with dualloop background"}),
            **({"Reload": f"when edited: {watched}"} if watched else {}),
            "Stop": "Ctrl-C",
        }
        took = time.monotonic() - self._began
        self._write(f"\nReady after {took:.1f} s at {typer.style(url, bold=True, fg='green')}\n")
        for name, told in rows.items():
            self._write(f"  {typer.style(f'{name:8}', dim=True)}  {told}")
        self._write("")

    def stopping(self, plan: Plan) -> None:
        """The parts are being ended now."""
        self._began = time.monotonic()
        self._write("\nStopping in order. What was accepted is kept, and goes on with the next dualloop up")
        self._write(f"on {plan.settings.state_dir}. Ctrl-C once more stops at once.")

    def stopped(self) -> None:
        """The last line."""
        self._write(f"Stopped after {time.monotonic() - self._began:.1f} s.")

    def _write(self, line: str) -> None:
        with contextlib.suppress(OSError):
            typer.echo(line)


def _version() -> str:
    try:
        return version("dualloop")
    except PackageNotFoundError:  # run from a checkout
        return "(from a checkout)"
