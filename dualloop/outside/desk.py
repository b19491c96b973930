"""How every outside service takes an order: once per key, never from a mission that has been taken over."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Header
from pydantic import BaseModel

from dualloop.outside.ledger import Effect, Ledger, Thing
from shared.clock import now_ms

Word = dict[str, Any]


class Refused(Exception):  # noqa: N818  a service's answer, not a fault of the program
    """The service says no, and has done nothing."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        """`code` is for programs, `detail` a sentence."""
        super().__init__(detail)
        self.status, self.code = status, code


class Of(BaseModel):
    """Which order a request is about."""

    order: str


class Stamp(NamedTuple):
    """Who asks: the key of the effect, and the fence of the mission's lease."""

    key: str
    fence: int

    @property
    def holder(self) -> str:
        """The mission, which its keys begin with."""
        return self.key.partition(":")[0]


def _stamp(
    key: Annotated[str, Header(alias="Idempotency-Key", min_length=1, max_length=512)],
    fence: Annotated[int, Header(alias="Fence", ge=0)] = 0,
) -> Stamp:
    return Stamp(key, fence)


Stamped = Annotated[Stamp, Depends(_stamp)]


class Desk:
    """Takes orders for one service.

    Args:
        ledger: of all services.
        service: its name.
    """

    def __init__(self, ledger: Ledger, service: str) -> None:
        """Nothing is done yet."""
        self.ledger, self.service = ledger, service

    def act(self, stamp: Stamp, verb: str, order: str, thing: str, work: Callable[[int], Word]) -> Word:
        """Do it once: a second request with the key gets the answer of the first one, whatever else it says.

        Args:
            stamp: who asks.
            verb: what.
            order: for which order.
            thing: the id of what it is done to.
            work: does it, given the number of the effect for its postings; the answer.

        Raises:
            Refused: by `work`, or the key belongs to something else, or the mission was taken over.
        """
        asked, ledger = f"{self.service} {verb} {thing} {order}", self.ledger
        with ledger.transaction():
            latest = ledger.fence(stamp.holder)
            if stamp.fence < latest:
                raise Refused(409, "fenced", f"fence {stamp.fence} is older than {latest}")
            if stamp.fence > latest:
                ledger.keep_fence(stamp.holder, stamp.fence)
            if (known := ledger.answer(stamp.key)) is not None:
                if known[0] != asked:
                    raise Refused(422, "key_reused", f"key {stamp.key!r} was used for another request")
                return known[1]
            effect = Effect(stamp.key, self.service, verb, thing, order, stamp.fence, now_ms())
            answer = work(ledger.journal(effect))
            ledger.keep_answer(stamp.key, asked, answer)
            return answer

    def make(self, stamp: Stamp, order: str, state: str, body: Word) -> Word:
        """Keep a new thing under the key that it is made with; within `act`.

        Raises:
            Refused: it was called off before it came, or the order has one already.
        """
        if self.ledger.thing(self.service, stamp.key) is not None:
            raise Refused(409, "called_off", f"{stamp.key} was called off before it came")
        if others := [one for one in self.ledger.things(self.service, order=order) if stands(one)]:
            raise Refused(409, "order_known", f"order {order} has {others[0].id} in {self.service} already")
        thing = Thing(self.service, stamp.key, order, state, body)
        self.ledger.put(thing)
        return shown(thing)

    def turn(self, id_: str, order: str, state: str, *, of: Iterable[str]) -> Thing:
        """Bring a thing into another state; how it was before. Within `act`.

        Raises:
            Refused: there is none, or it is in no state of `of`.
        """
        thing = self.ledger.thing(self.service, id_)
        if thing is None or thing.order != order:
            raise Refused(404, "not_found", f"{self.service} has no {id_} for order {order}")
        if thing.state not in of:
            raise Refused(409, "wrong_state", f"{id_} is {thing.state}")
        self.ledger.put(thing._replace(state=state))
        return thing

    def call_off(self, id_: str, order: str) -> Thing | None:
        """Let a thing count no more; how it was before. One that never came is refused when it comes late.

        Raises:
            Refused: it belongs to another order.
        """
        thing = self.ledger.thing(self.service, id_)
        if thing is not None and thing.order != order:
            raise Refused(404, "not_found", f"{self.service} has no {id_} for order {order}")
        before = thing or Thing(self.service, id_, order, CALLED_OFF, {})
        self.ledger.put(before._replace(state=CALLED_OFF))
        return thing


CALLED_OFF = "called_off"
REPLACED = "replaced"
"""By a newer one, which is what counts."""


def stands(thing: Thing) -> bool:
    """Whether it still counts."""
    return thing.state not in {CALLED_OFF, REPLACED}


def shown(thing: Thing) -> Word:
    """A thing as its service tells it."""
    return {"id": thing.id, "order": thing.order, "state": thing.state, **thing.body}
