"""What readings prove about a command: pure, so that every case can be tried.

A device's word that it obeyed proves nothing; a reading does, if it is newer than the act. Times are those of the
readings, which adapters give on our own clock.
"""

from enum import StrEnum

from backend_loop.devices.protocol import Command, Reading
from shared.actions import wanted

HAND = "hand"


class Decision(StrEnum):
    """What to do about a command, given what the device shows."""

    ALREADY_DONE = "already_done"
    ACT = "act"


class Verdict(StrEnum):
    """What a reading after the act proves."""

    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    UNCONFIRMED = "unconfirmed"


def decide(reading: Reading, command: Command, *, looked_at: int) -> Decision:
    """Nothing is left to do if the device shows all that the command wants.

    A reading older than our looking (``looked_at``, epoch milliseconds) is a memory of the bridge and settles nothing:
    acting once more does no harm, and believing it would.
    """
    if reading.observed_at < looked_at or _differing(reading, command):
        return Decision.ACT
    return Decision.ALREADY_DONE


def overridden(before: Reading, now: Reading, command: Command, *, asked_at: int) -> bool:
    """A person has since changed what the command is about, and wants something else.

    Since means: after the reading that was decided on (``before``), or after the command was given (``asked_at``,
    epoch milliseconds). A person's change to another value of the same device does not count.
    """
    return any(
        _by_hand(now, name) and (_moved(before, now, name) or now.changes[name].at > asked_at)
        for name in _differing(now, command)
    )


def judge(before: Reading, after: Reading, command: Command, *, acted_at: int) -> Verdict:
    """What ``after`` proves, given the last reading before the act and when the act was sent (epoch milliseconds).

    ``CONTRADICTED`` is final: a person's newer change left another value. ``UNCONFIRMED`` is only final when time is
    up: the device may need a moment (a blind moves), may have claimed success falsely, or the reading is too old.
    """
    if after.observed_at < acted_at:
        return Verdict.UNCONFIRMED
    differing = _differing(after, command)
    if not differing:  # one version cannot show two states: such a bridge is not to be believed
        torn = after.version == before.version and _differing(before, command)
        return Verdict.UNCONFIRMED if torn else Verdict.CONFIRMED
    if any(_by_hand(after, name) and _moved(before, after, name) for name in differing):
        return Verdict.CONTRADICTED
    return Verdict.UNCONFIRMED


def _differing(reading: Reading, command: Command) -> list[str]:
    values = wanted(command.action, command.value)
    return [name for name, value in values.items() if name not in reading.value or reading.value[name] != value]


def _by_hand(reading: Reading, name: str) -> bool:
    return name in reading.changes and reading.changes[name].by == HAND


def _moved(before: Reading, after: Reading, name: str) -> bool:
    first = before.changes.get(name)
    return first is None or after.changes[name].version != first.version
