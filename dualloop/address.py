"""Where a process of this machine is found; apart from `parts`, so that clients load nothing of what runs processes."""

LOCAL = "127.0.0.1"


def local_url(host: str, port: int) -> str:
    """The base URL for a client on this machine."""
    host = {"0.0.0.0": LOCAL, "::": "::1", "": LOCAL}.get(host, host)  # noqa: S104  compared, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
