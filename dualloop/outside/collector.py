"""The bank's own doing: it takes what was ordered, and tells missions that it was paid."""

import asyncio
import contextlib
import random
from typing import Final

import httpx

from dualloop.outside.desk import Refused, Stamp
from dualloop.outside.faults import faults_of
from dualloop.outside.payment import ORDERED, Bank

PAUSE_S: Final = (0.1, 5.0)
"""First and longest pause before an event is told again; how often it looks for what was ordered is the first."""

TAKEN: Final = frozenset({202, 404, 409, 410, 422})
"""The mission has the event, or never will."""


class Collector:
    """Takes payments and tells of them, one round after the other.

    Args:
        bank: whose payments.
        front: base URL of a foreground; None: nobody is told.
    """

    def __init__(self, bank: Bank, front: str) -> None:
        """Nothing runs yet."""
        self._bank, self._front = bank, front.rstrip("/")
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Something was ordered or paid."""
        self._woken.set()

    async def run(self) -> None:
        """Until cancelled."""
        pause_s = PAUSE_S[0]
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
            while True:
                self.collect()
                told = await self._tell(client)
                pause_s = PAUSE_S[0] if told else min(2 * pause_s, PAUSE_S[1])
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause_s * random.uniform(0.5, 1)):  # noqa: S311  jitter
                        await self._woken.wait()
                self._woken.clear()

    def collect(self) -> None:
        """Have everybody pay who has not yet, unless the bank is idle."""
        if faults_of(self._bank.ledger, "payment").idle:
            return
        for one in self._bank.ledger.things("payment", ORDERED):
            with contextlib.suppress(Refused):  # the customer has spent it meanwhile: it stays unpaid
                self._bank.pay(one.id, one.order, Stamp(f"bank:{one.id}", 0))

    async def _tell(self, client: httpx.AsyncClient) -> bool:
        """Tell what is to be told; whether all was taken."""
        for number, mission, body in self._bank.ledger.notices():
            try:
                answer = await client.post(f"{self._front}/v1/commands/{mission}/events", json=body)
            except httpx.TransportError:
                return False
            if answer.status_code not in TAKEN:
                return False
            self._bank.ledger.told(number)
        return True
