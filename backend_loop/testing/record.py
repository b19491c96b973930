"""A mission's record as the kit's shard keeps it: what `places.lua` says of the hash, its log, inbox and outbox."""

from dataclasses import dataclass, field
from typing import Any, Literal

from shared.status import Status

Place = Literal["lane", "leased", "waiting", "waiters", "paused", "ended", "scripted"]
"""As in Redis; *scripted*: a child that no handler runs, and whose end the test says."""


@dataclass(slots=True, kw_only=True)
class Record:
    """One mission. Times are epoch milliseconds; the words are those of `places.lua`."""

    task_id: str
    type: str
    version: int
    envelope: bytes
    state: str
    lane: str
    order: int
    created_at: int
    deadline: int
    target: str = ""
    latest: str = ""
    root: str = ""
    parent: str = ""
    parent_run: int = 0

    place: Place = "lane"
    status: Status = Status.PENDING
    was: Status | None = None
    owner: str = ""
    fence: int = 0
    leased_at: int = -1
    rev: int = 0
    seq: int = 0
    run: int = 1
    key_run: int = 1
    deaths: int = 0
    started_at: int | None = None
    paused_at: int | None = None
    joined_at: int = 0
    """When it joined the waiters of its target."""
    wake_at: int | None = None
    waiting_for: str = ""
    failed_in: str = ""
    armed: bool = True
    """Its deadline stands, and nobody was told of it yet."""
    newer: bool = False
    """A newer command on the same aspect of its target is there (P11)."""
    spawned: bool = False

    document: bytes = b""
    progress: bytes = b""
    log: list[dict[str, Any]] = field(default_factory=list)
    inbox: list[bytes] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    """Ids of entries that were posted."""
    outbox: list[bytes] = field(default_factory=list)
    result: dict[str, Any] | None = None

    @property
    def correlation_id(self) -> str:
        """The root's id."""
        return self.root or self.task_id

    @property
    def ended(self) -> bool:
        """Whether it has come to its end."""
        return self.place == "ended"

    @property
    def at_rest(self) -> Status:
        """Its status where nobody leases it any more, as long as it is on its way forward."""
        return Status.WAITING if self.rev else Status.PENDING

    @property
    def rank(self) -> int:
        """0 is served first."""
        return ("urgent", "normal", "bulk").index(self.lane.partition(":")[0])
