"""What the audit makes of the missions that it has counted: pure, so that it can be told to a test.

A pass over all records takes minutes, in which missions move. So a number that differs is only suspected at first; in
the next pass its kind is marked, every script takes the mark off whatever it moves (``settle`` in ``places.lua``), and
what is still marked at the end stood still: then the number found is the true one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping


class Recount:
    """One shard's missions by ``type|status|state``, counted pass by pass."""

    def __init__(self) -> None:
        """Nothing is suspected yet."""
        self.suspects: frozenset[str] = frozenset()
        self.missions = 0
        self._found: Counter[str] = Counter()
        self._seen: set[str] = set()  # ids among the suspects: a scan may name a key twice

    def add(self, rows: Iterable[tuple[str, str]]) -> None:
        """Missions that were looked at: id and ``type|status|state``."""
        for task_id, kind in rows:
            self.missions += 1
            if kind in self.suspects:
                if task_id in self._seen:
                    continue
                self._seen.add(task_id)
            self._found[kind] += 1

    def pairs(self) -> Iterator[tuple[str, int]]:
        """What was found of the suspects."""
        return ((kind, self._found[kind]) for kind in self.suspects)

    def end(self, told: Mapping[str, int]) -> None:
        """The pass is over, and this is what the shard says: where it differs is suspected in the next one."""
        kinds = self._found.keys() | told.keys()
        self.suspects = frozenset(kind for kind in kinds if self._found[kind] != told.get(kind, 0))
        self.missions, self._found, self._seen = 0, Counter(), set()
