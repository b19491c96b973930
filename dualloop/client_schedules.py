"""What a client says to schedules: commands that are sent by the clock."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from dualloop.client_http import Exchange

PATH: Final = "/v1/schedules"


class Schedules:
    """The part of the client that keeps schedules, as ``client.schedules``.

    All raise `ClientProblem` where the foreground refuses (404 there is none of that name, 409 there is one already,
    422 it would not be accepted, 503) and `UnreachableError` where none answered. All but `run` may be asked again
    without harm. Each answers with the schedule's document, unless it says otherwise.
    """

    def __init__(self, exchange: Exchange) -> None:
        """Ready at once."""
        self._exchange = exchange

    async def page(self, **filters: Any) -> dict[str, Any]:
        """A page by name: ``{"schedules": [document, …], "cursor": text or None}``.

        Args:
            filters: ``q cursor limit``; None: left out.
        """
        return await self._exchange.ask("GET", PATH, query=_said(filters))

    async def look(self, name: str) -> dict[str, Any]:
        """Everything about one: its next instants, what it has sent last, what keeps it from being fired."""
        return await self._exchange.ask("GET", _path(name))

    async def add(self, name: str, cron: str, command: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        """Take one in; the very same one twice is one.

        Args:
            name: what it is called.
            cron: minute, hour, day of month, month, day of week.
            command: as of `Client.submit`: ``{"type": …, "payload": …, …}``.
            options: ``zone misfire late_s daylight_saving jitter_s paused by note``; None: left out.
        """
        body = {"name": name, "cron": cron, "command": dict(command), **_said(options)}
        return await self._exchange.ask("POST", PATH, body=body)

    async def change(self, name: str, **changes: Any) -> dict[str, Any]:
        """Change one: ``cron zone command misfire late_s daylight_saving jitter_s``; None: left as it is."""
        return await self._exchange.ask("PATCH", _path(name), body=_said(changes))

    async def pause(self, name: str, *, by: str | None = None, note: str | None = None) -> dict[str, Any]:
        """Fire no more, until it is resumed."""
        return await self._exchange.ask("POST", f"{_path(name)}/pause", body=_said({"by": by, "note": note}))

    async def resume(self, name: str, *, by: str | None = None, note: str | None = None) -> dict[str, Any]:
        """Fire again, from now on."""
        return await self._exchange.ask("POST", f"{_path(name)}/resume", body=_said({"by": by, "note": note}))

    async def run(self, name: str, *, by: str | None = None, note: str | None = None) -> dict[str, Any]:
        """Send its command now, as a mission of its own; its ack."""
        return await self._exchange.ask("POST", f"{_path(name)}/run", body=_said({"by": by, "note": note}))

    async def remove(self, name: str, *, by: str | None = None, note: str | None = None) -> dict[str, Any]:
        """Remove it: ``{"name", "removed"}``; missions that it has sent stay."""
        return await self._exchange.ask("DELETE", _path(name), query=_said({"by": by, "note": note}))


def _said(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _path(name: str) -> str:
    return f"{PATH}/{quote(name, safe='')}"
