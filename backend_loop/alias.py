"""What strangers are told in place of a key: as good for knowing a double, and no mission's id is in it.

Who has an id may read the mission and cancel it (P17), so it goes to nobody else's server.
"""

import hashlib


def alias(key: str) -> str:
    """Always the same for the same key."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]
