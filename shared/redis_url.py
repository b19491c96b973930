"""What a Redis URL may settle: where Redis is and who asks. What is spoken and how long we wait is ours alone."""

from typing import Any, Final

from redis import connection as blocking_connection
from redis.asyncio import connection as asyncio_connection

OURS: Final = frozenset(
    {
        *("protocol", "decode_responses", "encoding", "encoding_errors"),
        *("socket_timeout", "socket_connect_timeout", "health_check_interval", "retry_on_timeout", "retry_on_error"),
        *("max_connections", "timeout"),  # of a pool, where there is none
    }
)
"""Options of a URL that are passed over: other clients of the same Redis may want them."""

SHAPE: Final = "redis://user:password@host:6379/0, rediss://… or unix:///path (in a password, %2F for /, %40 for @)"


class RedisUrlError(ValueError):
    """The URL is wrong; the sentence says what to write, and never holds a password."""


def options(url: str, wait_s: float, *, blocking: bool = False) -> dict[str, Any]:
    """What a connection is made of: its `connection_class`, and the arguments of that.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``.
        wait_s: how long connecting, and an answer of the handshake, may take.
        blocking: of redis-py's two kinds, that of threads.

    Raises:
        RedisUrlError: no connection can be made of it.
    """
    kind: Any = blocking_connection if blocking else asyncio_connection
    try:
        parsed = dict(kind.parse_url(url))
    except ValueError as error:
        # said without its own words, which may hold a part of the password, but for what names an option
        reason = f" ({error})" if str(error).startswith("Invalid value for '") else ""
        raise RedisUrlError(f"the URL of Redis cannot be read{reason}: write {SHAPE}") from None
    settled = {name: value for name, value in parsed.items() if name not in OURS}
    settled |= {"protocol": 2, "socket_timeout": wait_s, "socket_connect_timeout": wait_s}
    make = settled.setdefault("connection_class", kind.Connection)
    try:
        make(**{name: value for name, value in settled.items() if name != "connection_class"})
    except Exception as error:  # noqa: BLE001  redis-py checks its options in its own ways
        raise RedisUrlError(f"an option in the URL of Redis is wrong: {error}") from None
    return settled
