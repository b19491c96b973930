"""What a client says of the home: its inventory, with areas, devices, names and scenes."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from dualloop.client_http import Exchange

PATH: Final = "/v1/home"


class Home:
    """The part of the client that keeps the home's inventory, as ``client.home``.

    All raise `ClientProblem` where the foreground refuses and `UnreachableError` where none answered, and may be
    asked again without harm. Those of the inventory answer ``{"revision", "changed_at", "trouble", "inventory"}``:
    `trouble` says why an edited file was not taken in, and is None where all is well.
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

    async def devices(self) -> dict[str, Any]:
        """Every device of the simulated home as it stands now: ``{"devices": [document, …]}``."""
        return await self._exchange.ask("GET", f"{PATH}/devices")

    async def device(self, entity: str) -> dict[str, Any]:
        """One of them: ``value``, ``changes``, ``actions``, ``reachable``, ``faults``."""
        return await self._exchange.ask("GET", _path(entity))

    async def intervene(
        self, entity: str, *, hand: Mapping[str, Any] | None = None, faults: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Switch one by hand, give it faults in place of those it has, or both; it, as it stands then."""
        body = {"hand": hand and dict(hand), "faults": None if faults is None else dict(faults)}
        return await self._exchange.ask("POST", _path(entity), body=body)


def _path(entity: str) -> str:
    return f"{PATH}/devices/{quote(entity, safe='')}"
