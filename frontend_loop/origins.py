"""Which pages may open a socket, or send a recording. Browsers let any page try without asking: only `Origin` tells."""

from collections.abc import Collection, Iterable
from typing import Final

_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


def may_open(headers: Iterable[tuple[bytes, bytes]], allowed: Collection[str]) -> bool:
    """Whether a request with these headers comes from a page of this host, an allowed one, or no page at all.

    Args:
        headers: of the request, names in lower case.
        allowed: further origins, as ``https://panel.example``; ``*`` for all.
    """
    origins, host = [], ""
    for name, value in headers:
        if name == b"origin":
            origins.append(value.decode("latin-1").lower())
        elif name == b"host":
            host = value.decode("latin-1").lower()
    if not origins or "*" in allowed:
        return True
    if len(origins) > 1:
        return False
    origin = origins[0]
    return _own(origin, host) or origin in {one.rstrip("/").lower() for one in allowed}


def _own(origin: str, host: str) -> bool:
    """The scheme is not compared: a proxy in front may have ended TLS."""
    scheme, separator, authority = origin.partition("://")
    port = _DEFAULT_PORTS.get(scheme)
    return bool(separator and port and host) and authority.removesuffix(port or "") == host.removesuffix(port or "")
