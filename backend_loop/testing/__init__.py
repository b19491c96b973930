"""The kit."""

from backend_loop.testing.bench import Bench
from backend_loop.testing.door import RefusedError
from backend_loop.testing.ends import Ends, cancelled, failed, never, succeeded
from backend_loop.testing.exported import ExportError
from backend_loop.testing.faults import Answers, Call, down, garbage, ignored, lost, meanwhile, refused, slow
from backend_loop.testing.home import Home
from backend_loop.testing.points import Kill
from backend_loop.testing.replaying import Replayed
from backend_loop.testing.script import Script, UnscriptedError
from backend_loop.testing.trial import EndedError, Trial
from backend_loop.testing.world import NeverEndsError

__all__ = [
    "Answers",
    "Bench",
    "Call",
    "EndedError",
    "Ends",
    "ExportError",
    "Home",
    "Kill",
    "NeverEndsError",
    "RefusedError",
    "Replayed",
    "Script",
    "Trial",
    "UnscriptedError",
    "cancelled",
    "down",
    "failed",
    "garbage",
    "ignored",
    "lost",
    "meanwhile",
    "never",
    "refused",
    "slow",
    "succeeded",
]
