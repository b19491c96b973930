"""One interpreter for each home, kept while the home stays as it is."""

import threading
from collections import OrderedDict
from typing import Final

from backend_loop.language.interpreter import Interpreter
from shared.home import Inventory

KEPT: Final = 4
"""Homes that a process remembers: the current one, and those that missions under way began with."""

_lock = threading.Lock()
_known = OrderedDict[str, Interpreter]()


def interpreter(home: Inventory) -> Interpreter:
    """The interpreter of a home; the same one for two inventories that say the same. Any thread may use it."""
    with _lock:
        found = _known.get(home.revision)
        if found is None:
            found = _known[home.revision] = Interpreter(home)
            while len(_known) > KEPT:
                _known.popitem(last=False)
        _known.move_to_end(home.revision)
        return found
