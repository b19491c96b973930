"""A mission on the bench, and what may be said to it."""

from collections.abc import Mapping
from typing import Any, Final, Self

from pydantic_core import from_json, to_json

from backend_loop.testing.view import View
from shared.status import Reason

OPERATOR: Final = "operator"
"""Who it was, where a verb does not say."""


class EndedError(AssertionError):
    """It has ended, and takes nothing any more."""


class Trial(View):
    """One mission of a run: `View` says what may be looked at.

    What is said to it takes effect with the next `run` or `advance`, or at once where it is said `meanwhile`. Each verb
    answers with the mission itself, for chaining.
    """

    def run(self) -> Self:
        """Let it go on until it ends or waits for what only the test can give; retries and timers are skipped to."""
        self._world.play()
        return self

    def advance(self, seconds: float) -> Self:
        """Let so much time pass: what becomes due meanwhile happens in its order, deadlines too."""
        self._world.play(self._world.time.now_ms() + round(seconds * 1000))
        return self

    def event(self, name: str, data: Mapping[str, Any] | None = None, *, id: str | None = None) -> Self:  # noqa: A002  the word of the API
        """Tell it an outside event; an early one is remembered, one with a known `id` counts no second time.

        Raises:
            ValueError: its type declares no such event.
        """
        known = self._definition.row().events if self._definition is not None else []
        if name not in known:
            declared = ", ".join(known) or "none"
            raise ValueError(f"{self.type} declares no event {name!r}; those that it does: {declared}")
        return self._say("event", {"event": name, "data": dict(data or {})}, "" if id is None else f"event:{id}")

    def cancel(self, *, by: str | None = None, note: str | None = None) -> Self:
        """Cancel it: a handler that runs is cut, and what was done is undone."""
        return self._say("cancel", {"reason": Reason.REQUESTED, **_said(by, note)}, "cancel")

    def pause(self, *, by: str | None = None, note: str | None = None) -> Self:
        """Pause it, at its next commit."""
        return self._say("pause", _said(by or OPERATOR, note))

    def resume(self, *, by: str | None = None, note: str | None = None) -> Self:
        """Let it go on."""
        return self._say("resume", _said(by or OPERATOR, note))

    def skip(self, *, by: str | None = None, note: str | None = None) -> Self:
        """Go on without the optional state that it is in.

        Raises:
            ValueError: it is not optional.
        """
        if self._definition is None or self.state not in self._definition.row().optional:
            raise ValueError(f'{self.state} of {self.type} is not optional: that is said by on_failure="skip"')
        return self._say("skip", {"state": self.state, "by": by or OPERATOR, "note": note})

    def complete(
        self, result: Mapping[str, Any] | None = None, *, by: str | None = None, note: str | None = None
    ) -> Self:
        """It was done by hand: it succeeds with this result; while it undoes, the present undo is done."""
        return self._say("complete", {"result": dict(result or {}), "by": by or OPERATOR, "note": note})

    def replay(self, *, start: bool = False, new_key: bool = False, payload: Mapping[str, Any] | None = None) -> Self:
        """Run a dead letter again, from the state it failed in or from the start; a corrected `payload` has new keys.

        Raises:
            ValueError: it is no dead letter, or something was undone, so that it can only be run from the start.
        """
        record, definition = self._record, self._definition
        if definition is None or not record.failed_in:
            raise ValueError(f"only what failed for good can be replayed: {self!r}")
        if self.undone and not start and self._kept.course.ending is None:
            raise ValueError(f"{', '.join(self.undone)} of it was undone: replay it from the start")
        if payload is not None:
            record.envelope = to_json({**from_json(record.envelope), "payload": payload})
        said = {
            "from": "start" if start else "failed_state",
            "key": "new" if new_key or payload is not None else "same",
        }
        self._world.replay(record, {"event": "replayed", **said, "by": OPERATOR})
        return self

    def supersede(self) -> Self:
        """A newer command on the same aspect of its target has come: it may not act any more."""
        if self._record.latest == "":
            raise ValueError(
                f"nothing is newer than this {self.type}: its type says nothing of latest, or it has no target"
            )
        self._record.newer = True
        return self

    def hand(self, entity: str, **values: Any) -> Self:
        """A person changes a device, such as ``hand("light.kitchen", power="on")``."""
        self._world.home.hand(entity, values)
        return self

    def _say(self, verb: str, entry: Mapping[str, Any], entry_id: str = "") -> Self:
        answer = self._world.control.run(self.task_id, verb, entry, entry_id=entry_id)
        if answer == "ENDED":
            raise EndedError(f"it takes no {verb} any more: {self!r}")
        if answer == "FULL":
            raise AssertionError("its inbox is full: as many entries as it keeps are unread")
        return self


def _said(by: str | None, note: str | None) -> dict[str, str]:
    return {name: text for name, text in (("by", by), ("note", note)) if text is not None}
