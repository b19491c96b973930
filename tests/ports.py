"""Ports for the servers that tests start."""

import itertools
import os
import random

from dualloop.errors import Refusal
from dualloop.parts import free_port

LOCAL = "127.0.0.1"
_PORTS = range(10_000, 15_000)  # none that the product takes by itself: whoever is about to listen may not do so yet
_SHARES = 16
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _SHARES
_own = _PORTS[_worker::_SHARES]  # nobody else's, of those that run beside this one
_start = random.Random().randrange(len(_own))  # of a seed of its own: two test runs may meet
_next = itertools.cycle([*_own[_start:], *_own[:_start]])


def unused_port() -> int:
    """One that nobody listens on, and that is not given twice soon."""
    while True:
        try:
            return free_port(LOCAL, next(_next))
        except Refusal:
            continue
