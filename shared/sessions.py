"""What a speaker's session is called: the target in whose order his commands are understood, and the shard of both."""

import hashlib
import re
from typing import Final

TYPE: Final = "assistant.command"
"""The mission type of what is said."""

_PLAIN: Final = re.compile(r"[^\s\x00-\x1f\x7f]{1,180}")


def target_of(session: str) -> str:
    """What the commands of a session act on, so that one is understood after the other, in the order of their accept.

    It is given up while they are carried out, so that nobody has to wait to say "cancel that".
    """
    if _PLAIN.fullmatch(session) is None:
        session = hashlib.blake2b(session.encode(), digest_size=16).hexdigest()
    return f"session:{session}"
