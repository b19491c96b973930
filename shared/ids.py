"""Mission ids (P17): unguessable, and they say their shard, their time and whether they are genuine.

25 bytes in Crockford's base32, 40 characters:
version (1) · shard (2) · epoch ms (6) · random (12) · keyed hash of what stands before (4).
A genuine id that Redis no longer knows has expired (410); anything else never was (404). No tombstones needed.
"""

import base64
import hashlib
import os
from dataclasses import dataclass

VERSION = 1
LENGTH = 40
_RFC = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_CROCKFORD = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_WRITE = bytes.maketrans(_RFC, _CROCKFORD)
# Reading takes lower case, O for 0, I and L for 1; all else becomes a byte that does not decode
_READ = bytes.maketrans(
    bytes(range(256)), bytes(_RFC[_CROCKFORD.find(n)] if n in _CROCKFORD else 0x21 for n in range(256))
)
_ALIASES = bytes.maketrans(b"abcdefghjkmnpqrstvwxyzOoIiLl", b"ABCDEFGHJKMNPQRSTVWXYZ001111")


@dataclass(frozen=True, slots=True)
class MissionId:
    """A genuine id, taken apart; `text` is its canonical spelling."""

    text: str
    shard: int
    ms: int


class Ids:
    """Makes and reads ids under one MAC key; the key lies in Redis, so all processes of a fleet agree."""

    def __init__(self, mac_key: bytes) -> None:
        """Take the fleet's key, 32 bytes."""
        self._key = mac_key

    def new(self, shard: int, ms: int) -> str:
        """A new id for a mission of `shard`, made at epoch milliseconds `ms`."""
        return self._seal(shard, ms, os.urandom(12))

    def derived(self, shard: int, ms: int, name: str) -> str:
        """The id that follows from `name` (``parent:run:state:visit:n``): the same each time it is asked for."""
        return self._seal(shard, ms, hashlib.blake2b(name.encode(), key=self._key, digest_size=12).digest())

    def read(self, text: str) -> MissionId | None:
        """Take an id apart; None if it is not one that this fleet made."""
        if len(text) != LENGTH or not text.isascii():
            return None
        try:
            raw = base64.b32decode(text.encode().translate(_ALIASES).translate(_READ))
        except ValueError:
            return None
        if raw[0] != VERSION or raw[21:] != self._mac(raw[:21]):
            return None
        canonical = base64.b32encode(raw).translate(_WRITE).decode()
        return MissionId(canonical, int.from_bytes(raw[1:3]), int.from_bytes(raw[3:9]))

    def _seal(self, shard: int, ms: int, random: bytes) -> str:
        body = b"%c%b%b%b" % (VERSION, shard.to_bytes(2), ms.to_bytes(6), random)
        return base64.b32encode(body + self._mac(body)).translate(_WRITE).decode()

    def _mac(self, body: bytes) -> bytes:
        return hashlib.blake2b(body, key=self._key, digest_size=4).digest()


def shard_of(name: str, shards: int) -> int:
    """The shard of a target (or any name): the same in every process and release."""
    if shards == 1:
        return 0
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest()) % shards
