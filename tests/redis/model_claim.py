"""The work of one claim: shares of the lanes, parking, leasing."""

import math
from collections.abc import Collection, Sequence

from tests.redis.model_places import Mission, Places


class Claiming:
    """One claim on the places of a model."""

    def __init__(
        self, model: Places, owner: str, slots: tuple[int, int], knows: Collection[str], kinds: Sequence[str]
    ) -> None:
        self.model, self.owner, self.knows, self.kinds = model, owner, knows, kinds
        self.slots, self.urgent_slots = slots
        self.taken: list[str] = []
        self.drawn = model.fence  # the last fence before this claim: it decides whose the odd slot is

    def run(self) -> list[str]:
        """The ids it gets, in order."""
        model = self.model
        model.known |= dict.fromkeys(model.parked_types & set(self.knows), True)
        if self.urgent_slots == 0:
            return []
        old = "urgent" in model.ring and (model.aged("normal") or model.aged("bulk"))
        self._take("urgent", self.slots - self._share(self.slots, 2 if old else 8, math.sqrt(3) - 1))
        left = self.slots - len(self.taken)
        self._unpark(self.slots - self._share(left, 2, (math.sqrt(13) - 3) / 2))
        old = "normal" in model.ring and model.aged("bulk")
        left = self.slots - len(self.taken)
        self._take("normal", self.slots - self._share(left, 2 if old else 4, (math.sqrt(5) - 1) / 2))
        self._take("bulk", self.slots)
        self._take("normal", self.slots)
        self._unpark(self.slots)
        self._take("urgent", self.urgent_slots)
        return self.taken

    def _share(self, slots: int, part: int, irrational: float) -> int:
        return math.floor(slots / part + self.drawn * irrational % 1)

    def _take(self, priority: str, most: int) -> None:
        model = self.model
        while len(self.taken) < most and priority in model.ring:
            lane = [m for m in model.missions.values() if m.place == "lane" and m.priority == priority]
            wanted = most - len(self.taken)
            if len(lane) < wanted:
                model.ring.discard(priority)
            for m in sorted(lane, key=lambda m: m.order)[:wanted]:
                if m.type in self.knows:
                    self._lease(m)
                else:
                    m.place = "parked"
                    model.parked_types.add(m.type)
                    model.free(m)
                    model.lower(m)

    def _unpark(self, most: int) -> None:
        for kind in self.kinds:
            if kind not in self.knows or kind not in self.model.parked_types:
                continue
            parked = [m for m in self.model.missions.values() if (m.place, m.type) == ("parked", kind)]
            for m in sorted(parked, key=lambda m: (m.parked_at or 0, m.task_id)):
                if len(self.taken) >= most:
                    break
                if m.target and self.model.holder(m) not in (None, m.task_id):
                    self.model.enter(m)
                    m.old = False
                else:
                    if m.target:
                        self.model.holds[m.target] = m.task_id
                    self._lease(m)
            else:
                self.model.parked_types.discard(kind)
                self.model.known.pop(kind, None)

    def _lease(self, m: Mission) -> None:
        self.model.fence = self.drawn + 1
        m.place, m.owner, m.fence = "leased", self.owner, self.model.fence
        if m.status != "COMPENSATING":
            m.status = "RUNNING"
        if not m.started:
            m.started, m.seq = True, m.seq + 1
        self.taken.append(m.task_id)
