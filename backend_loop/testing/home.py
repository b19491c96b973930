"""The devices of a bench: they obey, show what they are, and misbehave as they are told.

Only the wire is played: the real `HttpDevice` asks.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import httpx

from backend_loop.testing.faults import NOTHING, Answer, Answers, Call, Fault, Scripted, settled
from backend_loop.testing.script import Around, Wire
from backend_loop.testing.skipping import Time
from shared.actions import wanted
from shared.clock import rfc3339

BASE_URL: Final = "http://home"

STATUS: Final[Mapping[str, int]] = {"down": 503, "refused": 403, "lost": 504}


class Home:
    """Devices by entity, with what they show at first: ``{"light.kitchen": {"power": "off"}}``.

    A device takes the actions that set nothing but values it has. Each list of faults is gone through call by call,
    and then all is well; a fault that is in no list stays.

    Args:
        devices: by entity.
        observe: faults of looks at a device, by entity: `down`, `slow`, `refused`, `lost`, `garbage`.
        act: faults of acts, by entity: these, and `ignored`.
    """

    def __init__(
        self,
        devices: Mapping[str, Mapping[str, Any]],
        *,
        observe: Mapping[str, Answers] | None = None,
        act: Mapping[str, Answers] | None = None,
    ) -> None:
        """As said."""
        self.devices = {entity: dict(values) for entity, values in devices.items()}
        self.faults: Mapping[str, Mapping[str, Answers]] = {"GET": observe or {}, "POST": act or {}}


class Gadget:
    """One device, as it is now."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Nobody has touched it yet."""
        self.values, self.version = dict(values), 1
        self.changes: dict[str, dict[str, str]] = {}
        self.kept = dict[str, Mapping[str, Any]]()
        self.fence = 0

    def change(self, values: Mapping[str, Any], by: str, at: str) -> None:
        """It is told, or touched by hand."""
        changed = {name: value for name, value in values.items() if self.values[name] != value}
        self.version += bool(changed)
        self.values |= changed
        self.changes |= {name: {"by": by, "version": str(self.version), "at": at} for name in changed}


class HomeWire(Wire):
    """Plays a home."""

    def __init__(self, home: Home, around: Around, time: Time) -> None:
        """As it was furnished."""
        super().__init__(around)
        self.gadgets = {entity: Gadget(values) for entity, values in home.devices.items()}
        self._faults, self._time, self._at = home.faults, time, dict[tuple[str, str], int]()

    def hand(self, entity: str, values: Mapping[str, Any]) -> None:
        """A person changes a device.

        Raises:
            KeyError: there is no such device or value.
        """
        self.gadgets[entity].change(values, "hand", self._now())

    async def answered(self, call: Call, request: httpx.Request) -> httpx.Response:  # noqa: ARG002  of the base
        """See `Wire`."""
        entity = call.path.split("/")[1]
        gadget = self.gadgets.get(entity)
        if gadget is None:
            return self._no(404, f"there is no {entity} in this home")
        answer, gone = await settled(self._next(call.method, entity), call, self._around.meet)
        answered = self._shown(gadget) if call.method == "GET" else self._obeyed(gadget, call, answer)
        call.answer = answer if isinstance(answer, Fault) else answered.json()
        await self._around.point("after", call)
        if gone is not None:
            raise gone
        return self._faulty(entity, answer) or answered

    def _next(self, method: str, entity: str) -> Scripted:
        faults = self._faults[method].get(entity, NOTHING)
        if not isinstance(faults, Sequence):
            return faults
        place = self._at.get((method, entity), 0)
        self._at[method, entity] = place + 1
        return faults[place] if place < len(faults) else NOTHING

    def _faulty(self, entity: str, answer: Answer) -> httpx.Response | None:
        if not isinstance(answer, Fault) or answer.kind == "ignored":
            return None
        if answer.kind == "garbage":
            return httpx.Response(200, content=b"<html>oops")
        sentence = {"down": f"{entity} is offline", "lost": f"{entity} did not answer in time"}
        return self._no(STATUS[answer.kind], answer.detail or sentence.get(answer.kind, "the device refuses"))

    def _obeyed(self, gadget: Gadget, call: Call, answer: Answer) -> httpx.Response:
        """Once per key, and never for a mission that has been taken over."""
        if isinstance(answer, Fault) and answer.kind in {"down", "refused", "ignored"}:
            return httpx.Response(200, json={"done": True})
        key, fence = str(call.body["key"]), int(call.body["fence"])
        call.key, call.fence = key, fence
        if fence < gadget.fence:
            return self._no(409, f"fence {fence} is older than {gadget.fence}")
        gadget.fence = fence
        if key not in gadget.kept:
            try:
                values = wanted(call.body["action"], call.body["value"])
                gadget.change(values, "command", self._now())
            except (ValueError, KeyError) as error:
                return self._no(422, f"it cannot do this: {error}")
            gadget.kept[key], call.effect = values, True
        return httpx.Response(200, json={"done": True})

    def _shown(self, gadget: Gadget) -> httpx.Response:
        shown = {"value": dict(gadget.values), "version": str(gadget.version), "observed_at": self._now()}
        return httpx.Response(200, json={**shown, "changes": gadget.changes})

    def _no(self, status: int, detail: str) -> httpx.Response:
        return httpx.Response(status, json={"detail": detail})

    def _now(self) -> str:
        return rfc3339(self._time.now_ms())
