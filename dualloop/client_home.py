"""What a client says of the home: its inventory, with areas, devices, names and scenes."""

from collections.abc import Mapping
from typing import Any, Final

from dualloop.client_http import Exchange

PATH: Final = "/v1/home"


class Home:
    """The part of the client that keeps the home's inventory, as ``client.home``.

    Both raise `ClientProblem` where the foreground refuses and `UnreachableError` where none answered, and may be
    asked again without harm. They answer ``{"revision", "changed_at", "trouble", "inventory"}``: `trouble` says why an
    edited file was not taken in, and is None where all is well.
    """

    def __init__(self, exchange: Exchange) -> None:
        """Ready at once."""
        self._exchange = exchange

    async def look(self) -> dict[str, Any]:
        """What is known of the home."""
        return await self._exchange.ask("GET", PATH)

    async def replace(self, inventory: Mapping[str, Any], *, revision: str | None = None) -> dict[str, Any]:
        """Put another inventory in its place, also into the file that people edit.

        Args:
            inventory: the whole document, as ``dualloop home schema`` describes it.
            revision: only if it is still at this one; None: whatever is there (412 `home_changed` if it is not).
        """
        head = {} if revision is None else {"if-match": f'"{revision}"'}
        return await self._exchange.ask("PUT", PATH, body=dict(inventory), head=head)
