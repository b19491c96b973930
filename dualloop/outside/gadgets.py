"""Gadgets in the field, hundreds of them, each with a firmware that can be flashed over the air.

A flash that is accepted is journaled at once, and shows a moment later, over a death of this service too. What a gadget
does with it is up to the gadget: some are bricked, some are never there.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from dualloop.outside.desk import REPLACED, Desk, Refused, Stamp, Stamped
from dualloop.outside.ledger import Ledger, Thing
from shared.clock import now_ms

SERVICE: Final = "gadgets"
COUNT: Final = 600
"""At the first start: ``gadget.0001`` and so on."""

MODELS: Final = ("bulb", "plug", "lock", "thermostat")
FACTORY: Final = "1.0.0"
BRICKED: Final = frozenset({"gadget.0013", "gadget.0213", "gadget.0413"})
"""Those that take no firmware, ever."""

OFFLINE: Final = frozenset({"gadget.0042", "gadget.0342"})
"""Those that are not there."""

FLASH_MS: Final = 300
"""How long after it was accepted a flash shows."""

MOST: Final = 200
"""Gadgets a list has at a time."""

FLASHED: Final = "flashed"
Version = Annotated[str, Field(min_length=1, max_length=50, pattern=r"^[\w.+-]+$")]


class Flash(BaseModel):
    """Which firmware a gadget is to have, and what it has to show until then, if the caller minds."""

    version: Version
    seen: str | None = Field(None, description="the `flash` that the caller has read; another one is refused")


class Hand(BaseModel):
    """What a person does to a gadget: another firmware, the plug, a hammer."""

    model_config = ConfigDict(extra="forbid")

    version: Version | None = None
    online: bool | None = None
    bricked: bool | None = None


class Shed:
    """All gadgets, as the ledger has them."""

    def __init__(self, ledger: Ledger) -> None:
        """As its books say."""
        self.ledger, self._desk = ledger, Desk(ledger, SERVICE)

    def furnish(self) -> None:
        """Put them up at the first start; within a transaction."""
        if self.ledger.facts("gadget"):
            return
        for n in range(1, COUNT + 1):
            id_ = f"gadget.{n:04}"
            new = {"model": MODELS[n % len(MODELS)], "version": FACTORY, "before": FACTORY, "flash": "", "shows_at": 0}
            self.ledger.know("gadget", id_, new | {"online": id_ not in OFFLINE, "bricked": id_ in BRICKED})

    def known(self, id_: str) -> dict[str, Any]:
        """What is written down of one.

        Raises:
            Refused: there is none.
        """
        known = self.ledger.fact("gadget", id_)
        if known is None:
            raise Refused(404, "no_such_gadget", f"there is no {id_}")
        return known

    def flash(self, id_: str, wish: Flash, stamp: Stamp) -> dict[str, Any]:
        """Have it begin; the answer says how long it takes.

        Raises:
            Refused: by the gadget, or since it is not what the caller has seen any more.
        """
        known = self.known(id_)

        def work(_effect: int) -> dict[str, Any]:
            if not known["online"]:
                raise Refused(409, "offline", f"{id_} is offline")
            if known["bricked"]:
                raise Refused(409, "bricked", f"{id_} takes no firmware: it is bricked")
            if wish.seen is not None and wish.seen != known["flash"]:
                raise Refused(409, "changed", f"{id_} was flashed with {known['version']} by somebody else")
            if known["shows_at"] > now_ms():
                raise Refused(409, "busy", f"{id_} is being flashed with {known['version']}")
            return self._begin(id_, known, wish.version, stamp)

        return self._desk.act(stamp, "flash", id_, stamp.key, work)

    def touch(self, id_: str, hand: Hand) -> dict[str, Any]:
        """By hand, at the gadget itself: works on any of them, at once.

        Raises:
            Refused: there is none.
        """
        known = self.known(id_) | hand.model_dump(exclude={"version"}, exclude_none=True)
        with self.ledger.transaction():
            self.ledger.know("gadget", id_, known)
        if (version := hand.version) is not None:
            stamp = Stamp(f"hand:{id_}:{len(self.ledger.effects(id_)) + 1}", 0)

            def work(_effect: int) -> dict[str, Any]:
                return self._begin(id_, known, version, stamp, takes_ms=0)

            self._desk.act(stamp, "flash", id_, stamp.key, work)
        return read(id_, self.known(id_), now_ms())

    def _begin(
        self, id_: str, known: Mapping[str, Any], version: str, stamp: Stamp, takes_ms: int = FLASH_MS
    ) -> dict[str, Any]:
        now = now_ms()
        for older in self.ledger.things(SERVICE, FLASHED, id_):
            self.ledger.put(older._replace(state=REPLACED))
        flash = {"version": version, "before": known["version"]}
        self.ledger.put(Thing(SERVICE, stamp.key, id_, FLASHED, flash))
        self.ledger.know("gadget", id_, {**known, **flash, "flash": stamp.key, "shows_at": now + takes_ms})
        return {"id": id_, "flash": stamp.key, **flash, "accepted_at": now, "takes_ms": takes_ms}


def read(id_: str, known: Mapping[str, Any], now: int) -> dict[str, Any]:
    """A gadget as it shows itself now; times are epoch ms."""
    flashing = None
    if (left_ms := known["shows_at"] - now) > 0:
        flashing = {"version": known["version"], "flash": known["flash"], "left_ms": left_ms}
    return {
        "id": id_,
        "model": known["model"],
        "version": known["version"] if flashing is None else known["before"],
        "flash": known["flash"],
        "last_flashed": known["shows_at"] if flashing is None and known["flash"] else None,
        "flashing": flashing,
        "online": known["online"],
        "observed_at": now,
    }


def gadgets(ledger: Ledger) -> APIRouter:
    """Their routes."""
    routes, shed = APIRouter(prefix=f"/{SERVICE}"), Shed(ledger)

    @routes.get("/")
    async def listed(
        prefix: str = "",
        model: str | None = None,
        ids: Annotated[str | None, Query(description="these, by comma")] = None,
        after: str = "",
        limit: Annotated[int, Query(ge=1, le=MOST)] = MOST,
    ) -> dict[str, Any]:
        wanted = None if ids is None else frozenset(ids.split(","))
        found = [
            (id_, known)
            for id_, known in sorted(ledger.facts("gadget").items())
            if id_.startswith(prefix) and id_ > after and model in {None, known["model"]}
            if wanted is None or id_ in wanted
        ]
        now = now_ms()
        return {"gadgets": [read(id_, known, now) for id_, known in found[:limit]], "more": len(found) > limit}

    @routes.get("/{id_}")
    async def look(id_: str) -> dict[str, Any]:
        return read(id_, shed.known(id_), now_ms())

    @routes.post("/{id_}/flash", status_code=202)
    async def flash(id_: str, wish: Flash, stamp: Stamped) -> dict[str, Any]:
        return shed.flash(id_, wish, stamp)

    return routes


def counted(ledger: Ledger) -> dict[str, int]:
    """How many gadgets have which version, what they are being flashed with included."""
    return dict(sorted(Counter(known["version"] for known in ledger.facts("gadget").values()).items()))


def audited(ledger: Ledger) -> list[str]:
    """What is wrong, a sentence each: a gadget has the version of its last flash, or the one that it came with."""
    rows = ledger.ask("SELECT order_id, thing, MAX(n) FROM effects WHERE service = ? GROUP BY order_id", SERVICE)
    last = {id_: thing for id_, thing, _ in rows}
    said = []
    for id_, known in ledger.facts("gadget").items():
        thing = ledger.thing(SERVICE, last[id_]) if id_ in last else None
        flashed = FACTORY if thing is None else thing.body["version"]
        if (known["version"], known["flash"]) != (flashed, last.get(id_, "")):
            said.append(f"{id_} has {known['version']}, and its last flash was {flashed}")
    return said
