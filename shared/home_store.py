"""Where the home's inventory lies for all processes: one document in Redis, replaced as a whole and under a guard."""

from collections.abc import Collection
from typing import Any, NamedTuple

from pydantic_core import from_json, to_json

from shared import keys
from shared.home import EMPTY, Inventory
from shared.redis import Link


class Stored(NamedTuple):
    """What lies there.

    Attributes:
        revision: of the inventory; that of an empty one where there is none.
        document: as JSON; None: there is none.
        changed_at: since when, epoch ms.
        trouble: what is wrong with a file that was to be taken in: ``{"file", "where", "detail", "errors", "at"}``.
    """

    revision: str
    document: bytes | None
    changed_at: int | None
    trouble: dict[str, Any] | None


class Taken(NamedTuple):
    """What became of a write: ``OK``, ``SAME`` (it was there already) or ``CHANGED`` (another one is there).

    `changed_at` is since when it is there, epoch ms, or None; `revision` which one.
    """

    word: str
    revision: str
    changed_at: int | None


async def fetch(link: Link) -> Stored:
    """Read it.

    Raises:
        RedisAwayError: it cannot be read now.
    """
    return _stored(*await link.call("HMGET", keys.HOME, "revision", "document", "changed_at", "trouble"))


async def glance(link: Link) -> Stored:
    """All of it but the document, which is told as None: it may be a megabyte, and who only looks does so every second.

    Raises:
        RedisAwayError: it cannot be read now.
    """
    revision, changed_at, trouble = await link.call("HMGET", keys.HOME, "revision", "changed_at", "trouble")
    return _stored(revision, None, changed_at, trouble)


def _stored(revision: bytes | None, document: bytes | None, changed_at: bytes | None, trouble: bytes | None) -> Stored:
    return Stored(
        EMPTY.revision if revision is None else revision.decode(),
        document,
        None if changed_at is None else int(changed_at),
        None if trouble is None else from_json(trouble),
    )


async def furnish(link: Link, inventory: Inventory, known: Collection[str] | None = None) -> Taken:
    """Put it there, if one of the `known` revisions is there now; None: whatever is.

    Raises:
        RedisAwayError: nothing was written. RedisUnknownError: perhaps it was.
    """
    expected = "" if known is None else f",{','.join(known)},"
    word, told = await link.run(
        "furnish", keys.prefix(0), expected, EMPTY.revision, inventory.revision, inventory.packed()
    )
    if word == b"CHANGED":
        return Taken("CHANGED", told.decode(), None)
    return Taken(word.decode(), inventory.revision, int(told))


async def tell_trouble(link: Link, trouble: dict[str, Any] | None) -> None:
    """Let all see what is wrong with a file; None: nothing any more.

    Raises:
        RedisAwayError: perhaps nobody sees it.
    """
    if trouble is None:
        await link.call("HDEL", keys.HOME, "trouble")
    else:
        await link.call("HSET", keys.HOME, "trouble", to_json(trouble))
