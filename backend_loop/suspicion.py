"""Which mission is run alone, and which one is convicted of killing its workers (P8). Pure.

*Deaths* are workers lost since the mission last got on: with a handler's answer, or a checkpoint with something new.
Alone they would never tell of one that gets a little further each time before it kills. So there is a *toll* too: each
lost worker adds ten, up to sixty, each checkpoint with something new pays one back, and only a handler's answer clears
it. A long batch on machines that come and go pays, since it makes more than ten checkpoints between two of them; one
that kills about as often as it gets on does not. The scripts `claim` and `commit` count both.
"""

from typing import Final, NamedTuple

DEATHS: Final = 2
"""From so many deaths on a mission is run alone."""

TOLL: Final = 30
"""From such a toll on likewise."""

CONVICTED: Final = 50
"""With such a toll the death of its own process convicts it, whatever that process had got done before."""


class Losses(NamedTuple):
    """What workers a mission has cost."""

    deaths: int
    toll: int = 0


def is_suspect(losses: Losses) -> bool:
    """Whether a mission is to run alone."""
    return losses.deaths >= DEATHS or losses.toll >= TOLL


def is_convicted(before: Losses, after: Losses) -> bool:
    """Whether one has brought about the death of the process that it was alone in.

    Args:
        before: when it was claimed for that.
        after: once that process has died.
    """
    return after == before or after.toll >= CONVICTED
