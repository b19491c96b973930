"""Sessions: what the commands of one speaker have in common for a while, and what one of them says to another.

All of it may be asked again by a handler that died before it could write down the answer, and is answered as before:
each question, and each taker of its answer, is known by its mission.
"""

import hashlib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json, to_json

from shared import keys
from shared.fleet import Fleet
from shared.ids import shard_of
from shared.redis import Link
from shared.sessions import target_of
from shared.settings import Settings
from shared.status import Reason

KEEP_MS: Final = 15 * 60_000
"""How long a session is remembered after the last command."""

HEARD_MS: Final = 60_000
SAME_MS: Final = 1_000
"""Two microphones that hear the same within this time have heard one command."""

ANSWERED: Final = "ANSWERED"
"""The event by which a mission hears the answer to what it asked."""


@dataclass(frozen=True, slots=True)
class Question:
    """One that is open.

    Attributes:
        name: of the question: the mission's id and a number.
        asked: what the mission wrote down of it.
    """

    name: str
    asked: Mapping[str, Any]

    @property
    def task_id(self) -> str:
        """Who asks."""
        return self.name.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Session:
    """What is remembered.

    Attributes:
        area: where the speaker is; `language`: how he speaks; None: he never said.
        commands: ids of the last ones, the newest first.
        last: what the newest one before this command was about; None: there was none, or it was about nothing.
        question: the open one, or the one that this command has taken already.
    """

    area: str | None = None
    language: str | None = None
    commands: tuple[str, ...] = ()
    last: Any = None
    question: Question | None = None


class Sessions:
    """The way to them.

    Each raises RedisAwayError: it may have been done, or not; ask again.
    """

    def __init__(self, link: Link, fleet: Fleet, settings: Settings) -> None:
        """`fleet` is joined by somebody else."""
        self._link, self._fleet, self._retention_ms = link, fleet, round(settings.retention_s * 1000)

    async def meet(self, tenant: str, name: str, by: str, *, area: str | None, language: str | None) -> Session:
        """The session of a command that comes in; what it says of the speaker is kept. `by`: the command's id."""
        told = await self._run("meet", tenant, name, area or "", language or "", by)
        area_, language_, commands, question, asked, taker = (part.decode() for part in told[:6])
        there = question and (told[6] or taker == by)
        return Session(
            area_ or None,
            language_ or None,
            tuple(commands.split()),
            from_json(told[7]) if told[7] else None,
            Question(question, from_json(asked)) if there else None,
        )

    async def did(self, tenant: str, name: str, task_id: str, about: Any = None) -> None:
        """A command was understood, or may have been said: it is the last one of its session from here on.

        What it is `about` may be said later, or anew, as long as it is; None: that is not known yet.
        """
        await self._run("did", tenant, name, task_id, "" if about is None else to_json(about).decode())

    async def undid(self, tenant: str, name: str, task_id: str) -> None:
        """It may have been a command, and is none: nobody means it who says "cancel that"."""
        await self._run("undid", tenant, name, task_id)

    async def ask(self, tenant: str, name: str, question: str, asked: Mapping[str, Any], within_s: float) -> str | None:
        """Open a question, for so long; who had another one open there is told that it is no more."""
        told = await self._run("ask", tenant, name, question, str(round(within_s * 1000)), to_json(asked).decode())
        before = told[1].decode() or None
        if before is not None:
            await self.withdraw(before, question)
        return before

    async def take(self, tenant: str, name: str, question: str, by: str) -> bool:
        """Take a question, to answer or to withdraw it; False: it is not open any more, or others were faster."""
        return bool(await self._run("take", tenant, name, question, by) == b"OK")

    async def answer(self, question: str, by: str, data: Mapping[str, Any]) -> bool:
        """Tell who asked; False: he is not there any more. Asked again with the same `by` it counts once."""
        entry = {"entry": "event", "event": ANSWERED, "data": {**data, "by": by}}
        word, _ = await self._control(question.partition(":")[0], "event", f"answer:{by}", entry, "", b"")
        return word in {"OK", "DUPLICATE"}

    async def withdraw(self, question: str, by: str) -> bool:
        """Tell who asked that nobody will answer: something else was said."""
        return await self.answer(question, by, {"withdrawn": True})

    async def cancel(self, task_id: str, by: str) -> bool:
        """Cancel a command; False: it had ended before, and not by a cancel, or is not kept any more."""
        said = {"reason": Reason.REQUESTED, "by": "speaker", "note": by}
        word, status = await self._control(
            task_id, "cancel", "cancel", {"entry": "cancel", **said}, Reason.REQUESTED, to_json(said)
        )
        return word in {"OK", "DUPLICATE"} or status == "CANCELLED"

    async def hear(self, tenant: str, text: str, session: str, task_id: str, at_ms: int) -> str:
        """The command that this one is the same as, heard by another session within a second; else its own id."""
        digest = hashlib.blake2b(utterance(text).encode(), digest_size=16).hexdigest()
        told = await self._script(
            self._shard(f"{tenant}:heard:{digest}"),
            *("hear", f"{tenant}:{digest}", HEARD_MS, task_id, session, at_ms, SAME_MS),
        )
        return str(told.decode())

    async def recording(self, task_id: str) -> bytes | None:
        """What was said with a command, as it came; None: it has ended, or that was minutes ago."""
        found = self._fleet.ids.read(task_id)
        if found is None or found.shard >= self._fleet.shards:
            return None
        kept: bytes | None = await self._link.call("GET", keys.audio(found.shard, task_id))
        return kept

    async def _run(self, verb: str, tenant: str, name: str, *args: str) -> Any:
        shard = self._shard(f"{tenant}:{target_of(name)}")
        return await self._script(shard, verb, f"{tenant}:{name}", KEEP_MS, *args)

    def _shard(self, name: str) -> int:
        return shard_of(name, self._fleet.shards)

    async def _script(self, shard: int, *args: str | int) -> Any:
        return await self._link.run("session", keys.prefix(shard), *args)

    async def _control(  # noqa: PLR0913, PLR0917  those of the script
        self, task_id: str, verb: str, entry_id: str, entry: Mapping[str, Any], reason: str, note: bytes
    ) -> tuple[str, str]:
        """The script's word, and the status of the mission as of now."""
        found = self._fleet.ids.read(task_id)
        if found is None or found.shard >= self._fleet.shards:
            return "GONE", ""
        args = (task_id, verb, entry_id, to_json(entry), reason, self._retention_ms, note)
        word, status, _ = await self._link.run("control", keys.prefix(found.shard), *args)
        return word.decode(), status.decode()


def utterance(text: str) -> str:
    """What two microphones would write alike: without case, punctuation and blanks."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(one for one in folded if unicodedata.category(one)[0] not in "PZC")
