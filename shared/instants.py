"""When a cron expression means, in a zone whose clocks are put forward and back: wall-clock times to instants. Pure.

`cronsim` says which wall-clock times an expression names, as Debian's cron reads it, and knows nothing of zones here.
What becomes of a time that does not exist, or exists twice, is decided here, by one rule:

=======  =======================================================  ==========================
rule     a time that does not exist                               a time that exists twice
=======  =======================================================  ==========================
`skip`   is left out                                              the first
`once`   as much later as the clocks were put forward (RFC 5545)  the first
`both`   likewise                                                 both
=======  =======================================================  ==========================

Two times that come to the same instant are one.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from itertools import islice
from typing import Final, Literal
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

DaylightSaving = Literal["skip", "once", "both"]

FIELDS: Final = 5
LONG_AGO: Final = datetime(2000, 1, 1)  # noqa: DTZ001  a time on the wall: it has no zone
AROUND_S: Final = 90_000
"""So near to a change of the clocks, a bit over a day, the order of times is not that of their instants."""


class TimesError(ValueError):
    """No times can be told; `field` is what is wrong, ``cron`` or ``zone``."""

    def __init__(self, field: str, sentence: str) -> None:
        """With a sentence for whoever wrote it."""
        super().__init__(sentence)
        self.field = field


class Times:
    """The instants of an expression in a zone, epoch milliseconds.

    Args:
        cron: minute, hour, day of month, month, day of week.
        zone: IANA name.
        rule: what becomes of times that do not exist or exist twice; None: `default_rule`.

    Raises:
        TimesError: either is wrong.
    """

    def __init__(self, cron: str, zone: str, rule: DaylightSaving | None = None) -> None:
        """Check both."""
        self._cron, self._zone = _checked(cron), _zone(zone)
        self._rule: DaylightSaving = rule or default_rule(cron)

    def after(self, ms: int) -> int | None:
        """The first instant after that one; None: there is none within fifty years."""
        second, best = ms // 1000, None
        try:
            for wall in CronSim(self._cron, self._wall(second) - self._span(second)):
                found = [instant for instant in self._instants(wall) if instant > second]
                best = min(found if best is None else [best, *found], default=None)
                if best is not None and wall >= self._wall(best) + self._span(best):
                    break
        except (OverflowError, ValueError):
            pass  # the end of the calendar
        return None if best is None else best * 1000

    def all_after(self, ms: int) -> Iterator[int]:
        """All instants after that one, in order."""
        while (found := self.after(ms)) is not None:
            yield found
            ms = found

    def newest(self, first: int, last: int, most: int) -> list[int]:
        """The newest `most` of the instants from `first` to `last`, both included, in order."""
        second = last // 1000
        walls = CronSim(self._cron, self._wall(second) + timedelta(seconds=1), reverse=True)
        oldest = None
        for wall in islice(walls, most):
            oldest = self._second(wall, fold=0)
            if oldest * 1000 < first:
                break
        if oldest is None:
            return []
        start = max(first - 1, (oldest - round(self._span(oldest).total_seconds())) * 1000 - 1)
        found = []
        for instant in self.all_after(start):
            if instant > last:
                break
            found.append(instant)
        return found[-most:]

    def local(self, ms: int) -> str:
        """An instant as the zone's clocks show it: RFC 3339 with its offset."""
        return datetime.fromtimestamp(ms // 1000, self._zone).isoformat()

    def _instants(self, wall: datetime) -> tuple[int, ...]:
        first, second = self._second(wall, fold=0), self._second(wall, fold=1)
        if first < second:
            return (first, second) if self._rule == "both" else (first,)
        if first > second and self._rule == "skip":  # in a gap the first reading is by the offset before it
            return ()
        return (first,)

    def _second(self, wall: datetime, *, fold: Literal[0, 1]) -> int:
        return round(wall.replace(tzinfo=self._zone, fold=fold).timestamp())

    def _wall(self, second: int) -> datetime:
        return datetime.fromtimestamp(second, self._zone).replace(tzinfo=None, fold=0)

    def _span(self, second: int) -> timedelta:
        """By how much the clocks are moved near this instant."""
        near = (second - AROUND_S, second, second + AROUND_S)
        offsets = [datetime.fromtimestamp(one, self._zone).utcoffset() or timedelta() for one in near]
        return max(offsets) - min(offsets)


def default_rule(cron: str) -> DaylightSaving:
    """What most people mean: every hour is every hour of real time, and a time of day comes once a day."""
    fields = cron.split()
    return "both" if len(fields) == FIELDS and fields[1].startswith("*") else "once"


def _checked(cron: str) -> str:
    if len(cron.split()) != FIELDS:
        raise TimesError("cron", f"{cron!r} has not five fields: minute, hour, day of month, month, day of week")
    try:
        next(CronSim(cron, LONG_AGO))
    except (CronSimError, ValueError, AssertionError) as error:
        raise TimesError(
            "cron", f"{cron!r} is no cron expression: {str(error).lower() or 'a field is wrong'}"
        ) from None
    except StopIteration:
        raise TimesError("cron", f"{cron!r} names no day that ever comes") from None
    return cron


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones()) - {"localtime"}


def _zone(name: str) -> ZoneInfo:
    if name not in _zones():
        raise TimesError("zone", f"{name!r} is no IANA time zone, such as Europe/Berlin or UTC")
    return ZoneInfo(name)
