"""Mission ids (P17): unguessable, and they say their shard, their time and whether they are genuine.

25 bytes in Crockford's base32, 40 characters:
version (1) · shard (2) · epoch ms (6) · random (12) · keyed hash of what stands before (4).
A genuine id that Redis no longer knows has expired (410); anything else never was (404). No tombstones needed.
"""

import base64
import hashlib
import os
import struct
from dataclasses import dataclass

VERSION = 1
LENGTH = 40
_HEAD = struct.Struct(">BHHI")  # version, shard, and the time in two parts
_RFC = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_CROCKFORD = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"
# Writing takes ten bits at a time: base64.b32encode costs twice as much, and there is an id to write per command
_PAIRS = [first + second for first in _CROCKFORD.decode() for second in _CROCKFORD.decode()]
_SHIFTS = range(190, -1, -10)
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
        self._keyed = hashlib.blake2b(key=mac_key, digest_size=4)

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
        return MissionId(_write(raw), int.from_bytes(raw[1:3]), int.from_bytes(raw[3:9]))

    def _seal(self, shard: int, ms: int, random: bytes) -> str:
        body = _HEAD.pack(VERSION, shard, ms >> 32, ms & 0xFFFFFFFF) + random
        return _write(body + self._mac(body))

    def _mac(self, body: bytes) -> bytes:
        mac = self._keyed.copy()
        mac.update(body)
        return mac.digest()


def _write(raw: bytes) -> str:
    number = int.from_bytes(raw)
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])


def shard_of(name: str, shards: int) -> int:
    """The shard of a target (or any name): the same in every process and release."""
    if shards == 1:
        return 0
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest()) % shards
