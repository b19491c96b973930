"""Which instants of a schedule are run now, and which one comes next. Pure."""

from dataclasses import dataclass
from typing import Final

from shared.schedules import Plan

MOST: Final = 100
"""Instants that are made up for at a time."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What is to be done about a schedule that is due.

    Args:
        run: the instant to run; None: none of those that have passed.
        following: the instant after it that is still to be run or looked at; None: there is none.
        passed: the oldest instant that is left out by this.
    """

    run: int | None
    following: int | None
    passed: int | None = None


def is_missed(name: str, plan: Plan, begun: int, now: int) -> bool:
    """Whether a run that has begun, and may not have been sent, comes too late by the misfire rule.

    Whoever began it has died, or Redis had no room. `once` makes up for the newest instant only.
    """
    if now - plan.due(name, begun) <= plan.late_s * 1000 or plan.misfire == "all":
        return False
    if plan.misfire == "skip":
        return True
    following = plan.times.after(begun)
    return following is not None and plan.due(name, following) <= now


def turn(name: str, plan: Plan, expected: int, now: int) -> Turn:
    """What to do at `now`, where `expected` is the next instant; one run at a time, the oldest first.

    An instant no later than `late_s` is run in any case. Of those that are later, the misfire rule says which.
    """
    found = plan.times.newest(expected, now, MOST)
    if expected not in found and len(found) < MOST:
        found.insert(0, expected)  # the zone's rules have changed since: it was promised
    past = [one for one in found if plan.due(name, one) <= now]
    good = [one for one in past if now - plan.due(name, one) <= plan.late_s * 1000]
    match plan.misfire:
        case "all":
            wanted = past
        case "once":
            wanted = good or past[-1:]
        case _:
            wanted = good
    if not wanted:
        ahead = [one for one in found if plan.due(name, one) > now]
        return Turn(None, ahead[0] if ahead else plan.times.after(now), expected)
    run = wanted[0]
    return Turn(run, plan.times.after(run), expected if expected < run else None)
