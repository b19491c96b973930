"""What goes wrong, said once: problems for clients (RFC 9457) and faults of Redis."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic_core import to_json

TITLES: Final[Mapping[str, tuple[int, str]]] = {
    "bad_json": (400, "The body is not JSON"),
    "bad_encoding": (400, "The body is not UTF-8"),
    "bad_frame": (400, "The frame is not understood"),
    "bad_subprotocol": (400, "This subprotocol is not spoken here"),
    "bad_id": (404, "No such mission"),
    "no_schedule": (404, "No such schedule"),
    "no_file": (404, "No such file"),
    "not_found": (404, "Not found"),
    "method_not_allowed": (405, "Method not allowed"),
    "ended": (409, "The mission has ended"),
    "no_such_event": (409, "The mission's type declares no such event"),
    "not_optional": (409, "The state is not optional"),
    "other_state": (409, "The mission is in another state"),
    "not_ended": (409, "The mission is under way"),
    "no_dead_letter": (409, "The mission is no dead letter"),
    "undone": (409, "Something was undone"),
    "outbox_left": (409, "Something of it is still to be carried out"),
    "schedule_exists": (409, "There is such a schedule"),
    "schedule_changed": (409, "The schedule has changed meanwhile"),
    "too_many_schedules": (409, "There are too many schedules"),
    "home_file": (409, "The file of the home cannot be written"),
    "expired": (410, "The result has expired"),
    "home_changed": (412, "The home has changed meanwhile"),
    "too_large": (413, "The body is too large"),
    "wrong_content_type": (415, "The body must be application/json"),
    "no_recording": (415, "The body is no recording"),
    "bad_range": (416, "The file has no such bytes"),
    "bad_host": (421, "This host is not served here"),
    "forbidden_origin": (403, "Pages of this origin are not served here"),
    "invalid": (422, "The command is not valid"),
    "invalid_home": (422, "The home's inventory is not valid"),
    "empty_recording": (422, "The recording is empty"),
    "idempotency_mismatch": (422, "The key was used for another command"),
    "too_deep": (422, "The JSON is nested too deeply"),
    "not_finite": (422, "JSON has no NaN and no infinity"),
    "unknown_type": (422, "No such mission type"),
    "nothing_heard": (422, "Nothing was heard"),
    "speech_refused": (422, "This cannot be listened to"),
    "inbox_full": (429, "Too many unread events"),
    "too_many_watches": (429, "Too many missions are watched"),
    "too_many_voices": (429, "Too many people speak at the same time"),
    "internal": (500, "Internal error"),
    "no_catalogue": (503, "No mission types are known yet"),
    "draining": (503, "This process is going"),
    "redis_unavailable": (503, "The queue is unavailable"),
    "home_unavailable": (503, "The home is unavailable"),
    "audio_refused": (503, "There is no room for recordings"),
    "speech_unavailable": (503, "Nobody listens"),
}
"""Every code a client may meet, with its status and title; the detail is the sentence of the case."""


class Problem(Exception):  # noqa: N818  RFC 9457 calls it a problem
    """An error for the client: becomes ``application/problem+json`` on every transport.

    Args:
        code: one of `TITLES`; gives status and title.
        detail: a sentence that says what is wrong and what to do.
        errors: ``{"pointer": JSON pointer, "detail": sentence}`` per fault.
        retryable: the same request may succeed later.
        retry_after: seconds, for the header of that name.
        correlation_id: of the mission concerned, if any.
    """

    def __init__(  # noqa: PLR0913  the fields of the document
        self,
        code: str,
        detail: str,
        *,
        errors: Sequence[Mapping[str, str]] = (),
        retryable: bool = False,
        retry_after: float | None = None,
        correlation_id: str | None = None,
    ) -> None:
        """Look the code up; an unknown one is a bug here."""
        super().__init__(detail)
        self.status, self.title = TITLES[code]
        self.code = code
        self.detail = detail
        self.errors = list(errors)
        self.retryable = retryable
        self.retry_after = retry_after
        self.correlation_id = correlation_id

    def document(self, instance: str | None = None) -> dict[str, Any]:
        """The RFC 9457 document; `instance` is the path of the request."""
        return {
            "type": f"urn:dualloop:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            "code": self.code,
            "correlation_id": self.correlation_id,
            "retryable": self.retryable,
            "errors": self.errors,
        }

    def body(self, instance: str | None = None) -> bytes:
        """The document as JSON."""
        return to_json(self.document(instance))

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Headers of the HTTP answer."""
        head = [(b"content-type", b"application/problem+json")]
        if self.retry_after is not None:
            head.append((b"retry-after", str(max(1, round(self.retry_after))).encode()))
        if self.correlation_id is not None:
            head.append((b"x-correlation-id", self.correlation_id.encode()))
        return head


class RedisAwayError(Exception):
    """Redis did not take the command: nothing was written, the same call may be made again."""


class RedisUnknownError(RedisAwayError):
    """The command was sent and its answer was lost: it may have been carried out."""


def unavailable(detail: str) -> Problem:
    """503: the same request may be made again."""
    return Problem("redis_unavailable", detail, retryable=True, retry_after=1)
