"""Sessions in memory, as `session.lua` has them."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from backend_loop.sessions import Sessions

if TYPE_CHECKING:
    from backend_loop.testing.world import World

MOST: Final = 8


class Memory:
    """The keys: those of sessions, and those of utterances."""

    def __init__(self) -> None:
        """Nothing is remembered."""
        self.sessions: dict[str, dict[str, Any]] = {}
        self.heard: dict[str, dict[str, Any]] = {}
        self.recordings: dict[str, bytes] = {}


class KitSessions(Sessions):
    """The way to those of a bench's run."""

    def __init__(self, world: "World") -> None:
        """To the memory of this world, which outlives its workers."""
        self._world, self._memory = world, world.sessions

    async def recording(self, task_id: str) -> bytes | None:
        """See `Sessions`."""
        return self._memory.recordings.get(task_id)

    def _shard(self, name: str) -> int:  # noqa: ARG002  of the base
        return 0

    async def _script(self, shard: int, *args: str | int) -> Any:  # noqa: ARG002  of the base
        verb, name, _keep, *rest = args
        return getattr(self, f"_{verb}")(str(name), *rest)

    async def _control(  # noqa: PLR0913, PLR0917  of the base
        self,
        task_id: str,
        verb: str,
        entry_id: str,
        entry: Mapping[str, Any],
        reason: str,  # noqa: ARG002  of the base
        note: bytes,  # noqa: ARG002  of the base
    ) -> tuple[str, str]:
        said = {name: value for name, value in entry.items() if name != "entry"}
        word = self._world.control.run(task_id, verb, said, entry_id=entry_id)
        record = self._world.shard.records.get(task_id)
        return word, "" if record is None else str(record.status)

    def _meet(self, name: str, area: str, language: str, by: str) -> list[Any]:
        kept = self._memory.sessions.setdefault(name, {})
        kept |= {field: said for field, said in (("area", area), ("language", language)) if said}
        texts = (kept.get(field, "") for field in ("area", "language", "commands", "question", "asked", "by"))
        last = kept.get("last_before" if kept.get("last_of") == by else "last", "")
        return [*(text.encode() for text in texts), int(self._open(kept)), last.encode()]

    def _did(self, name: str, task_id: str, about: str) -> bytes:
        kept = self._memory.sessions.setdefault(name, {})
        known = kept.get("commands", "").split()
        if task_id not in known:
            kept["commands"] = " ".join([task_id, *known][:MOST])
        if about and task_id == kept["commands"].split()[0]:
            if kept.get("last_of") != task_id:
                kept |= {"last_of": task_id, "last_before": kept.get("last", "")}
            kept["last"] = about
        return b"OK"

    def _undid(self, name: str, task_id: str) -> bytes:
        kept = self._memory.sessions.setdefault(name, {})
        kept["commands"] = " ".join(one for one in kept.get("commands", "").split() if one != task_id)
        return b"OK"

    def _ask(self, name: str, question: str, open_ms: str, asked: str) -> list[bytes]:
        kept = self._memory.sessions.setdefault(name, {})
        if kept.get("question") == question:
            return [b"TAKEN" if "by" in kept else b"OK", kept["before"].encode()]
        before = kept["question"] if "question" in kept and "by" not in kept else ""
        kept.pop("by", None)
        kept |= {"question": question, "asked": asked, "until": self._now() + int(open_ms), "before": before}
        return [b"OK", before.encode()]

    def _take(self, name: str, question: str, by: str) -> bytes:
        kept = self._memory.sessions.setdefault(name, {})
        if kept.get("question") != question or (kept.get("by") != by and not self._open(kept)):
            return b"NONE"
        kept["by"] = by
        return b"OK"

    def _hear(self, name: str, task_id: str, session: str, at: int, within: int) -> bytes:
        kept = self._memory.heard.setdefault(name, {"of": {}})
        if task_id not in kept["of"]:
            same = "id" in kept and kept["session"] != session and abs(kept["at"] - at) <= within
            if not same and kept.get("at", -math.inf) <= at:
                kept |= {"id": task_id, "session": session, "at": at}
            kept["of"][task_id] = kept["id"] if same else task_id
        answer: str = kept["of"][task_id]
        return answer.encode()

    def _open(self, kept: Mapping[str, Any]) -> bool:
        return "question" in kept and "by" not in kept and kept["until"] > self._now()

    def _now(self) -> int:
        return self._world.time.now_ms()
