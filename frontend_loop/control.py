"""What a client wants of a mission under way."""

from typing import Final

from shared import keys
from shared.errors import Problem, RedisAwayError, unavailable
from shared.ids import MissionId
from shared.redis import Link
from shared.settings import Settings
from shared.status import Reason, Status

CANCEL_ENTRY: Final = "cancel"
"""Id of the entry: one cancel of a mission is like another, so a double changes nothing."""


class Control:
    """Posts entries to missions' inboxes."""

    def __init__(self, link: Link, settings: Settings) -> None:
        """Ready at once."""
        self._link, self._retention_ms = link, round(settings.retention_s * 1000)

    async def cancel(self, mission: MissionId, reason: Reason = Reason.REQUESTED) -> Status:
        """Cancel a mission: idempotent; the status as of now.

        Raises:
            Problem: 409 it has ended otherwise, 410 it is gone, 503.
        """
        entry = f'{{"entry":"cancel","reason":"{reason}"}}'
        try:
            answer, status = await self._link.run(
                "control",
                keys.prefix(mission.shard),
                mission.text,
                "cancel",
                CANCEL_ENTRY,
                entry,
                reason,
                self._retention_ms,
            )
        except RedisAwayError as error:
            raise unavailable(f"the cancel may not have been taken: {error}") from error
        if answer == b"GONE":
            raise Problem("expired", "this mission has ended and is no longer kept", correlation_id=mission.text)
        if answer == b"ENDED" and status != b"CANCELLED":
            detail = f"the mission has ended: {status.decode()}; nothing is left to cancel"
            raise Problem("ended", detail, correlation_id=mission.text)
        return Status(status.decode())
