"""One interpreter for each home, kept while the home stays as it is.

The grammar's libraries take a tenth of a second and more to import, so that is left to whoever first asks for one: the
loop that warms it, in a thread, or else the first sentence.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from backend_loop.language.interpreter import Interpreter
    from shared.home import Inventory

KEPT: Final = 4
"""Homes that a process remembers: the current one, and those that missions under way began with."""

_lock = threading.Lock()
_known: OrderedDict[str, Interpreter] = OrderedDict()


def interpreter(home: Inventory) -> Interpreter:
    """The interpreter of a home; the same one for two inventories that say the same. Any thread may use it.

    It may take a while, and is not to be asked for in an event loop.
    """
    from backend_loop.language.interpreter import Interpreter  # noqa: PLC0415  where nobody speaks it is not needed

    with _lock:
        found = _known.get(home.revision)
        if found is None:
            found = _known[home.revision] = Interpreter(home)
            while len(_known) > KEPT:
                _known.popitem(last=False)
        _known.move_to_end(home.revision)
        return found
