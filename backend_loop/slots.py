"""How many missions a process may still take."""

from backend_loop.way import Way
from shared.settings import Settings


class Slots:
    """Over all shards; some are kept for urgent ones, who may take the others too, but not at their cost.

    An urgent mission counts against what is kept for urgent ones first: so many others as there are ordinary slots may
    run beside, whatever is urgent.
    """

    def __init__(self, settings: Settings) -> None:
        """All free."""
        self._slots, self._kept = settings.slots, settings.urgent_slots
        self._urgent = self._others = 0
        self.open = True
        self.way = Way(settings.urgent_slots, max(1, settings.slots // 2))

    @property
    def running(self) -> int:
        """Slots taken."""
        return self._urgent + self._others

    def take(self, *, urgent: bool) -> None:
        """A mission begins."""
        self._count(urgent=urgent, by=1)
        if urgent:
            self.way.begins()

    def give_back(self, *, urgent: bool) -> None:
        """One is over, here."""
        self._count(urgent=urgent, by=-1)
        if urgent:
            self.way.ended()

    def _count(self, *, urgent: bool, by: int) -> None:
        if urgent:
            self._urgent += by
        else:
            self._others += by

    def free(self) -> tuple[int, int]:
        """Free for any mission, and for urgent ones, those included."""
        if not self.open:
            return 0, 0
        left = self._slots + self._kept - self.running
        return max(0, min(self._slots - self._others, left)), max(0, left)

    @property
    def full(self) -> bool:
        """Whether another mission has to wait for one of these to end."""
        return self.free()[0] == 0
