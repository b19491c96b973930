"""What handlers really did, seen from outside: one line per call, appended to a file that all processes share."""

import os
from typing import Any, Final

VARIABLE: Final = "DUALLOOP_TEST_TALLY"
"""Environment: path of the file; unset: nothing is written."""

_open: dict[str, int] = {}


def tally(tools: Any, word: str = "run") -> None:
    """Append ``word task_id state attempt fence``; one write, so that lines of several processes never mix."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    if path not in _open:
        _open[path] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    state = tools.key.split(":")[2]
    os.write(_open[path], f"{word} {tools.task_id} {state} {tools.attempt} {tools.fence}\n".encode())
