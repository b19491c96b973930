"""Where a process of this machine is found; apart from `parts`, so that clients load nothing of what runs processes."""

from pathlib import Path

LOCAL = "127.0.0.1"
BROKER_FILE = "mqtt.url"
"""In the state folder: where the broker that runs on it is."""


def local_url(host: str, port: int) -> str:
    """The base URL for a client on this machine."""
    host = {"0.0.0.0": LOCAL, "::": "::1", "": LOCAL}.get(host, host)  # noqa: S104  compared, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def local_broker_url(port: int) -> str:
    """Where the broker of this machine listens."""
    return f"mqtt://{LOCAL}:{port}"


def running_broker(state_dir: Path) -> str | None:
    """URL of the broker that runs on a state folder, as it wrote it down; None: none does."""
    try:
        return (state_dir / BROKER_FILE).read_text()
    except OSError:
        return None
