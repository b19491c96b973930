"""What a schedule is: which command, when, and what becomes of the instants at which nobody was there."""

import hashlib
from functools import cached_property
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from shared.instants import DaylightSaving, Times

OFFICE: Final = "schedules"
"""What the process leads in that fires them."""

Misfire = Literal["skip", "once", "all"]

ScheduleName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]


class Plan(BaseModel):
    """A schedule as its author wrote it.

    `times` raises TimesError where expression or zone are wrong.
    """

    model_config = ConfigDict(extra="forbid")

    cron: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="minute, hour, day of month, month, day of week", examples=["30 2 * * MON-FRI"]
    )
    zone: Annotated[str, Field(max_length=100)] = Field(
        "UTC", description="IANA time zone that the expression is read in", examples=["Europe/Berlin"]
    )
    command: dict[str, Any] = Field(description="what is sent each time: a command as of POST /v1/commands")
    misfire: Misfire = Field(
        "once",
        description="which instants are made up for that nobody was there for, later than late_s: none (skip), "
        "the newest one (once), or each, the newest hundred at most (all)",
    )
    late_s: float = Field(
        60.0, gt=0, le=2_678_400, allow_inf_nan=False, description="an instant is run in any case up to so much later"
    )
    daylight_saving: DaylightSaving | None = Field(
        None,
        description="a time that does not exist, or exists twice: left out, first (skip); later, first (once); later, "
        "both (both). Default: both where the hour is *, else once",
    )
    jitter_s: float = Field(
        0.0, ge=0, le=3_600, allow_inf_nan=False, description="each run comes later by up to so much, evenly spread"
    )

    @cached_property
    def times(self) -> Times:
        """When it is to run."""
        return Times(self.cron, self.zone, self.daylight_saving)

    def due(self, name: str, instant: int) -> int:
        """When to run an instant, epoch ms: it and its jitter, the same whoever asks."""
        share = int.from_bytes(hashlib.blake2b(f"{name}:{instant}".encode(), digest_size=4).digest()) / 2**32
        return instant + round(share * self.jitter_s * 1000)
