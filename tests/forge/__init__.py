"""Starts the product's processes from one that has imported it already.

A process of the product takes a second and more of processor time to import what it needs, and the tests start
hundreds of them. So each test process keeps one that has done the imports, the forge, and forks from it: what begins
there is a process like any other, with its own id, session, environment and end, and runs ``python -m MODULE`` from its
first line on.
"""

from tests.forge.client import Forked, forked
from tests.forge.pipes import Piped, piped

__all__ = ["Forked", "Piped", "forked", "piped"]
