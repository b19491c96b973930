"""The mission types that live workers know, as foregrounds see them (P15), without an import of the background."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
from pydantic import BaseModel, ConfigDict, ValidationError

from shared import keys
from shared.logs import get
from shared.redis import Link
from shared.status import Priority

log = get(__name__)


class Row(BaseModel):
    """One type in one payload version."""

    model_config = ConfigDict(frozen=True)

    type: str
    version: int
    description: str = ""
    payload_schema: dict[str, Any]
    target: str | None = None
    pool: str = "default"
    priority: Priority = Priority.NORMAL
    deadline_s: float | None = None
    initial: str
    states: dict[str, dict[str, Any]]
    transitions: list[dict[str, str]]
    events: list[str] = []
    """Outside events that a mission of this type may wait for."""
    optional: list[str] = []
    """States that may be skipped."""
    undos: list[str] = []
    """States that are undone if the mission fails later."""
    latest: dict[str, Any] | None = None
    """``{"aspect": …}`` or ``{"field": …, "aspects": {value: aspect}}``: what a newer command replaces (P11)."""
    oldest: int = 1
    """The oldest version that is still taken."""
    concurrency: int | None = None
    """Missions of this type that may run a handler at once, over all workers."""

    @property
    def kind(self) -> str:
        """``type@version``."""
        return f"{self.type}@{self.version}"

    def aspect(self, payload: Mapping[str, Any]) -> str | None:
        """What a command with this payload replaces on its target; None: nothing."""
        if self.latest is None:
            return None
        if "aspect" in self.latest:
            return str(self.latest["aspect"])
        value = payload.get(self.latest["field"])
        return self.latest["aspects"].get(value) if isinstance(value, str) else None

    def latest_of(self, held: str, payload: Mapping[str, Any]) -> str:
        """What a command wants to be the newest of, "tenant:target:aspect", or ""; `held` is "tenant:target" or ""."""
        aspect = self.aspect(payload) if held and self.latest is not None else None
        return f"{held}:{aspect}" if aspect else ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row with its schema compiled."""

    row: Row
    validator: Any


class Catalogue:
    """A process's copy of the rows."""

    def __init__(self) -> None:
        """Empty, and never read."""
        self.revision = -1
        self._entries: dict[tuple[str, int], Entry] = {}
        self._newest: dict[str, Entry] = {}

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self._entries)

    def find(self, type_: str, version: int | None = None) -> Entry | None:
        """A type in a payload version; None: the newest."""
        return self._newest.get(type_) if version is None else self._entries.get((type_, version))

    def versions(self, type_: str) -> list[int]:
        """The payload versions of a type, oldest first."""
        return sorted(version for name, version in self._entries if name == type_)

    def newest(self) -> list[Row]:
        """Each type in its newest version, by name."""
        return [self._newest[name].row for name in sorted(self._newest)]

    async def refresh(self, link: Link) -> bool:
        """Read what changed; True if anything did.

        Raises:
            RedisAwayError: the copy stays as it is.
        """
        revision = int(await link.call("GET", keys.CATALOGUE_REV) or 0)
        if revision == self.revision:
            return False
        rows = await link.call("HGETALL", keys.CATALOGUE)
        entries: dict[tuple[str, int], Entry] = {}
        for kind, raw in zip(rows[::2], rows[1::2], strict=True):
            if (entry := _compile(kind.decode(), raw)) is not None:
                entries[entry.row.type, entry.row.version] = entry
        self._entries = entries
        self._newest = {name: entries[name, version] for name, version in sorted(entries)}
        self.revision = revision
        return True


def _compile(kind: str, raw: bytes) -> Entry | None:
    """One bad row, from whatever release, must not cost the others."""
    try:
        row = Row.model_validate_json(raw)
        # no resource is ever fetched for a $ref: a schema comes out of Redis
        return Entry(row, jsonschema_rs.Draft202012Validator(row.payload_schema, retriever=_refuse))
    except (ValidationError, ValueError, jsonschema_rs.ReferencingError) as error:
        log.warning("catalogue row refused", kind=kind, error=str(error))
        return None


def _refuse(uri: str) -> Any:
    raise ValueError(f"a payload schema may not refer to {uri}")
