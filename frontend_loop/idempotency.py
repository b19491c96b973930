"""One key, one command (P16): the key's shard reserves a mission id, under which the command is accepted however often.

Whoever dies between the two steps, loses a reply or sends twice at once comes to the same id; accept knows it by then,
or takes it in now. Commands without a key never come here.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import to_json

from frontend_loop.reading import invalid
from shared import keys
from shared.envelope import IDEMPOTENCY_KEY
from shared.errors import Problem, RedisAwayError, unavailable
from shared.ids import shard_of
from shared.logs import get
from shared.redis import Link, ReplyError

log = get(__name__)

KEEP_S: Final = 86_400.0
"""A key holds for a day at least, however short results are kept."""

ACCEPT_WINDOW_MS: Final = 600_000
"""How long after its reservation lapsed an id is still known as used: a foreground may be late, and clocks differ."""

FIELD: Final = "idempotency_key"
_VISIBLE: Final = re.compile(IDEMPOTENCY_KEY)
_NEVER: Final = ""


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a key stands for.

    Args:
        task_id: accept the command under this id.
        held: what it acts on, as resolved when the id was reserved; the id's shard is this one's.
        used_until: epoch ms up to which the id may not be accepted a second time.
        first: nobody had reserved under this key.
    """

    task_id: str
    held: str
    used_until: int
    first: bool


class Idempotency:
    """Reserves ids."""

    def __init__(self, link: Link, shards: int, retention_s: float) -> None:
        """Ready at once."""
        self._link, self._shards = link, shards
        self._keep_ms = round(max(KEEP_S, retention_s) * 1000)

    async def reserve(self, tenant: str, key: str, command: Mapping[str, Any], task_id: str, held: str) -> Reservation:
        """The id of this command: `task_id`, or the one that a try before this one reserved.

        Raises:
            Problem: 422 the key stands for another command; 503.
        """
        found = await self._ask(tenant, key, command, task_id, held, self._keep_ms)
        assert found is not None  # noqa: S101  it was asked to make one
        return found

    async def known(self, tenant: str, key: str, command: Mapping[str, Any]) -> Reservation | None:
        """The reservation, if there is one; makes none.

        Raises:
            Problem: as `reserve`.
        """
        return await self._ask(tenant, key, command, _NEVER, "", 0)

    async def _ask(  # noqa: PLR0913, PLR0917  the arguments of the script
        self, tenant: str, key: str, command: Mapping[str, Any], task_id: str, held: str, keep_ms: int
    ) -> Reservation | None:
        name = f"{tenant}:{key}"
        prefix = keys.prefix(shard_of(name, self._shards))
        try:
            answer = await self._link.run("reserve", prefix, name, _hash(command), task_id, held, keep_ms)
        except RedisAwayError as error:
            raise unavailable(f"nothing was taken: {error}") from error
        except ReplyError as error:
            log.exception("reserve failed")
            raise unavailable("nothing was taken: Redis refused to keep the key; the log says why") from error
        if answer == b"MISMATCH":
            detail = "this key was sent with another command: a new command needs a new key"
            raise Problem("idempotency_mismatch", detail, errors=[{"pointer": f"/{FIELD}", "detail": detail}])
        if answer == b"NONE":
            return None
        word, reserved, acts_on, expires_ms = answer
        return Reservation(reserved.decode(), acts_on.decode(), expires_ms + ACCEPT_WINDOW_MS, word == b"OK")


def from_header(value: bytes) -> str:
    """The key in the header ``Idempotency-Key``: a structured string ("…"), or its characters alone.

    Raises:
        Problem: 422.
    """
    text = value.decode("latin-1").strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = re.sub(r'\\(["\\])', r"\1", text[1:-1])
    if _VISIBLE.fullmatch(text) is None:
        detail = "the header Idempotency-Key has 1 to 200 visible ASCII characters, no spaces"
        raise invalid([{"pointer": f"/{FIELD}", "detail": detail}])
    return text


def agreed(header: str | None, body: str | None) -> str | None:
    """The key of a command that may have come in two places.

    Raises:
        Problem: 422, two different ones.
    """
    if header is not None and body is not None and header != body:
        detail = "differs from the header Idempotency-Key: send the key in one place, or the same in both"
        raise invalid([{"pointer": f"/{FIELD}", "detail": detail}])
    return body if header is None else header


def _hash(command: Mapping[str, Any]) -> str:
    """Of the command as it was sent, less the key, which may come in the header: the same on every transport."""
    sent = {name: value for name, value in command.items() if name != FIELD}
    return hashlib.blake2b(to_json(sent), digest_size=16).hexdigest()
