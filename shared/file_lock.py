"""A file as a lock between the processes of one machine: it is free again when its holder ends, however that ends."""

import fcntl
import os
from pathlib import Path


def try_lock(path: Path) -> int | None:
    """Lock the file for as long as the returned descriptor, or a child's copy of it, is open; None: it is taken.

    Raises:
        OSError: it cannot be made, or not be locked.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
