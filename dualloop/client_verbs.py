"""What a client says to missions that are there: cancel, pause, resume, events, and the verbs of an operator.

Of each verb `by` says who asks, and `note` why: free texts that stand in the mission's log and in the foreground's.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal
from urllib.parse import quote

from dualloop.client_http import Exchange

From = Literal["failed_state", "start"]
Key = Literal["same", "new"]

DEAD_LETTERS: Final = "/v1/dead-letters"


class Verbs:
    """The part of the client that acts on missions.

    All raise `ClientProblem` where the foreground refuses (404 never known, 409 impossible now, 410 no longer kept, 422
    wrongly asked, 429 too much unread, 503) and `UnreachableError` where none answered. All but `event` without an
    `id`, and replays, may be asked again without harm.
    """

    def __init__(self, exchange: Exchange) -> None:
        """Ready at once."""
        self._exchange = exchange

    async def cancel(
        self, correlation_id: str, *, wait: float = 0.0, by: str | None = None, note: str | None = None
    ) -> dict[str, Any]:
        """Cancel a mission: ``{"correlation_id", "task_id", "status", "stopped"}``, as of now.

        `stopped` says that no handler of it runs any more. With `wait`, seconds: the result document instead, once the
        mission has ended, so that its `status` is terminal; else the above as of then.
        """
        query = {"wait": wait} if wait else {}
        body = _said(by=by, note=note)
        return await self._exchange.ask(
            "POST", f"{_command(correlation_id)}/cancel", body=body, query=query, wait_s=wait
        )

    async def pause(self, correlation_id: str, *, by: str | None = None, note: str | None = None) -> dict[str, Any]:
        """Pause a mission, at its next commit if a handler runs; the answer as of `cancel`."""
        return await self._exchange.ask("POST", f"{_command(correlation_id)}/pause", body=_said(by=by, note=note))

    async def resume(self, correlation_id: str, *, by: str | None = None, note: str | None = None) -> dict[str, Any]:
        """Let a paused mission go on; the answer as of `cancel`."""
        return await self._exchange.ask("POST", f"{_command(correlation_id)}/resume", body=_said(by=by, note=note))

    async def event(
        self,
        correlation_id: str,
        event: str,
        data: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002  the contract's word
    ) -> dict[str, Any]:
        """Tell a mission an outside event that its type declares; the answer as of `cancel`, and `duplicate`.

        Args:
            correlation_id: of the mission.
            event: its name.
            data: what came with it.
            id: of this event: told twice under the same one, it counts once.
        """
        body = _said(event=event, data=data, id=id)
        return await self._exchange.ask("POST", f"{_command(correlation_id)}/events", body=body)

    async def priority(
        self, task_id: str, priority: str, *, by: str | None = None, note: str | None = None
    ) -> dict[str, Any]:
        """Give a mission the priority ``urgent``, ``normal`` or ``bulk``; the answer as of `cancel`, and `priority`."""
        body = _said(priority=priority, by=by, note=note)
        return await self._exchange.ask("POST", f"{_mission(task_id)}/priority", body=body)

    async def skip(
        self, task_id: str, *, state: str | None = None, by: str | None = None, note: str | None = None
    ) -> dict[str, Any]:
        """Skip the optional state that a mission is in (`state`: only if it is that one); the answer as of `cancel`."""
        body = _said(state=state, by=by, note=note)
        return await self._exchange.ask("POST", f"{_mission(task_id)}/skip", body=body)

    async def complete(
        self,
        task_id: str,
        result: Mapping[str, Any] | None = None,
        *,
        by: str | None = None,
        note: str | None = None,
    ) -> dict[str, Any]:
        """End a mission SUCCEEDED with this result, since it was done by hand; the answer as of `cancel`."""
        body = _said(result=result or {}, by=by, note=note)
        return await self._exchange.ask("POST", f"{_mission(task_id)}/complete", body=body)

    async def dead_letters(self, **filters: Any) -> dict[str, Any]:
        """A page, the newest first: ``{"dead_letters": [row, …], "cursor": text or None}``.

        Args:
            filters: ``type code q cursor limit``; None: left out.
        """
        return await self._exchange.ask("GET", DEAD_LETTERS, query=_said(**filters))

    async def dead_letter(self, task_id: str) -> dict[str, Any]:
        """Everything about one: as `Client.mission`, and what replaying it needs."""
        return await self._exchange.ask("GET", f"{DEAD_LETTERS}/{_part(task_id)}")

    async def replay(  # noqa: PLR0913  what may be said of it
        self,
        task_id: str,
        *,
        from_: From | None = None,
        key: Key | None = None,
        payload: Mapping[str, Any] | None = None,
        deadline_s: float | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> dict[str, Any]:
        """Run a dead letter again: ``{"correlation_id", "task_id", "status", "run", "from", "key"}``.

        Args:
            task_id: of the mission.
            from_: the state it failed in, or the start; None: the former, unless something was undone.
            key: whether effects keep the keys they had; None: ``same``, unless the payload is corrected.
            payload: takes the place of the one that was sent.
            deadline_s: seconds from now; None: the type's.
            by: who asks.
            note: why.
        """
        body = {"from": from_, "key": key, "payload": payload, "deadline_s": deadline_s, "by": by, "note": note}
        return await self._exchange.ask("POST", f"{DEAD_LETTERS}/{_part(task_id)}/replay", body=_said(**body))

    async def replay_all(  # noqa: PLR0913  what may be said of it
        self,
        filter: Mapping[str, Any] | None = None,  # noqa: A002  the contract's word
        *,
        from_: From | None = None,
        key: Key | None = None,
        payload: Mapping[str, Any] | None = None,
        deadline_s: float | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> dict[str, list[dict[str, Any]]]:
        """Run all dead letters again that fit the filter (``type code q``; none given: all of them).

        Returns:
            ``{"replayed": [as of replay, …], "refused": [problem with task_id, …]}``.
        """
        body = {"from": from_, "key": key, "payload": payload, "deadline_s": deadline_s, "by": by, "note": note}
        said: dict[str, Any] = {"filter": _said(**(filter or {})), **_said(**body)}
        replayed: list[dict[str, Any]] = []
        refused: list[dict[str, Any]] = []
        while True:
            page = await self._exchange.ask("POST", f"{DEAD_LETTERS}/replay", body=said)
            replayed += page["replayed"]
            refused += page["refused"]
            if page["cursor"] is None:
                return {"replayed": replayed, "refused": refused}
            said["cursor"] = page["cursor"]

    async def discard(self, task_id: str, *, by: str | None = None, note: str | None = None) -> dict[str, Any]:
        """Give a dead letter up: it is removed with all that is known of it."""
        return await self._exchange.ask("DELETE", f"{DEAD_LETTERS}/{_part(task_id)}", query=_said(by=by, note=note))


def _said(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _command(correlation_id: str) -> str:
    return f"/v1/commands/{_part(correlation_id)}"


def _mission(task_id: str) -> str:
    return f"/v1/missions/{_part(task_id)}"


def _part(text: str) -> str:
    return quote(text, safe="")
