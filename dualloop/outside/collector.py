"""The bank's own doing: it takes what was ordered, and tells missions that it was paid."""

import asyncio
import contextlib
import random
from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import httpx

from dualloop.outside.desk import Refused, Stamp
from dualloop.outside.faults import faults_of
from dualloop.outside.payment import ORDERED, Bank

PAUSE_S: Final = (0.1, 5.0)
"""First and longest pause before an event is told again."""

TAKEN: Final = frozenset({202, 404, 409, 410, 422})
"""The mission has the event, or never will."""


class Collector:
    """Takes payments and tells of them, one round after the other.

    Args:
        make: the bank whose payments they are, given what it is to call when something was ordered or paid.
        front: base URL of a foreground.
    """

    def __init__(self, make: Callable[[Callable[[], None]], Bank], front: str) -> None:
        """Nothing runs yet."""
        self._woken = asyncio.Event()
        self.bank, self._front = make(self._woken.set), front.rstrip("/")

    def wake(self) -> None:
        """Look again: it may be idle no more."""
        self._woken.set()

    async def run(self) -> None:
        """Until cancelled."""
        pause_s = PAUSE_S[0]
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
            while True:
                self._woken.clear()
                self.collect()
                if await self._tell(client):
                    pause_s = PAUSE_S[0]
                    await self._woken.wait()
                else:
                    await asyncio.sleep(pause_s * random.uniform(0.5, 1))  # noqa: S311  jitter
                    pause_s = min(2 * pause_s, PAUSE_S[1])

    def collect(self) -> None:
        """Have everybody pay who has not yet, unless the bank is idle."""
        if faults_of(self.bank.ledger, "payment").idle:
            return
        for one in self.bank.ledger.things("payment", ORDERED):
            with contextlib.suppress(Refused):  # the customer has spent it meanwhile: it stays unpaid
                self.bank.pay(one.id, one.order, Stamp(f"bank:{one.id}", 0))

    async def _tell(self, client: httpx.AsyncClient) -> bool:
        """Tell what is to be told, each mission by itself; whether all was taken."""
        number, all_taken = 0, True
        while (notice := self.bank.ledger.notice(number)) is not None:
            number, mission, body = notice
            try:
                answer = await client.post(f"{self._front}/v1/commands/{quote(mission, safe='')}/events", json=body)
            except httpx.TransportError:
                return False
            if answer.status_code in TAKEN:
                self.bank.ledger.told(number)
            elif answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                return False
            else:
                all_taken = False
        return all_taken
