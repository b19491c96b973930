"""What made a line of a log: the mission itself, or something from outside, which a replay has to give it. Pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from backend_loop.testing.exported import Event
from shared.clock import parse_rfc3339
from shared.status import ErrorCode, Reason, Status

Verb = Literal[
    "event", "cancel", "pause", "resume", "skip", "complete", "deadline", "supersede", "child", "kill", "replay"
]

UNSEEN: Final = frozenset({"no_permit", "priority"})
"""Events of the lines that a bench has not: there are no permits and no lanes in it."""

NOTES: Final = frozenset({"paused", "resumed", "child", "reclaimed"})
"""Events of lines that lead nowhere: what is waited for before, is so behind them."""

CUTS: Final = frozenset({"cancel", "skip", "complete", "deadline", "kill"})
"""What a handler that runs is cut by."""

OTHERWISE: Final = frozenset({"in_ms", "task_id", "at"})
"""Data of an event that differs from run to run, or with each line that is written above it."""


class Cause(NamedTuple):
    """What came from outside, and the entry that said it."""

    verb: Verb
    entry: Mapping[str, Any]

    @property
    def cuts(self) -> bool:
        """Whether a handler that runs is cut by it."""
        return self.verb in CUTS


def seen(log: Sequence[Event]) -> list[Event]:
    """The lines that a bench has too."""
    return [line for line in log if _data(line).get("event") not in UNSEEN]


def compared(line: Event) -> tuple[str, str, Any]:
    """What is to be the same in a replay."""
    data = {name: value for name, value in _data(line).items() if name not in OTHERWISE}
    return str(line.status), line.state, data or None


def cause(line: Event, before: Event | None, events: Collection[str], result: Mapping[str, Any]) -> Cause | None:
    """What made this line; None: the mission itself.

    Args:
        line: of the log.
        before: the line before it, if there is one.
        events: outside events that the type declares.
        result: of the mission's result document, for what an operator completed it with.
    """
    data = _data(line)
    said = {name: data[name] for name in ("by", "note") if name in data}
    if (found := _said(line, before, data, said, result)) is not None:
        return found
    if (word := data.get("event")) in events and "data" in data:
        return Cause("event", {"event": word, "data": data["data"]})
    undoing = before is not None and before.status is Status.COMPENSATING
    if undoing or not (line.status.terminal or word == "undo"):
        return None
    return Cause("deadline", {}) if data.get("code") == ErrorCode.DEADLINE else _ended(data, said)


def _said(
    line: Event,
    before: Event | None,
    data: Mapping[str, Any],
    said: Mapping[str, Any],
    result: Mapping[str, Any],
) -> Cause | None:
    """What its own word says."""
    found: Cause | None = None
    match data.get("event"):
        case "paused" | "resumed" as word:
            found = Cause("pause" if word == "paused" else "resume", said)
        case "skipped" if "code" not in data:
            found = Cause("skip", {"state": before.state if before is not None else line.state, **said})
        case "completed":
            found = Cause("complete", {"result": dict(result), **said})
        case "child":
            found = Cause("child", data)
        case "reclaimed":
            found = Cause("kill", {})
        case "replayed":
            found = Cause("replay", data)
    return found


def _ended(data: Mapping[str, Any], said: Mapping[str, Any]) -> Cause | None:
    """A cancel, by its reason; a handler that answers Stop gives its own."""
    match data.get("reason"):
        case Reason.REQUESTED | Reason.DISCONNECTED:
            return Cause("cancel", {"reason": data["reason"], **said})
        case Reason.SUPERSEDED:
            return Cause("supersede", {})
        case Reason.EXPIRED:
            return Cause("deadline", {})
    return None


def early(lines: Sequence[Event], place: int, happened: str) -> bool:
    """Whether an event came before it was waited for: it was remembered, and taken at once."""
    for before in reversed(lines[:place]):
        data = _data(before)
        if data.get("event") == "wait" and data.get("for") == happened:
            return False
        if data.get("event") not in NOTES:
            return True
    return True


def ran_again(before: Event, line: Event) -> bool:
    """Whether a handler that waited for its next try ran once more, before this line came."""
    pause = _data(before).get("in_ms")
    waited = parse_rfc3339(line.at) - parse_rfc3339(before.at)
    return isinstance(pause, int) and _data(before).get("event") == "retry" and waited >= pause


def told(line: Event) -> str:
    """For a sentence."""
    status, state, data = compared(line)
    shown = "" if data is None else f" {data}"
    return status + ("" if state == status else f" in {state}") + shown


def differing(theirs: Sequence[Event], ours: Sequence[Event], *, whole: bool) -> str | None:
    """The first transition that differs, in a sentence; `whole`: the file's mission has ended."""
    for one, other in zip(theirs, ours, strict=False):
        if compared(one) != compared(other):
            return f"line {one.seq}: the file has {told(one)}; this run has {told(other)}"
    if len(ours) < len(theirs):
        last = f"after {told(ours[-1])}" if ours else "before its first line"
        return f"line {theirs[len(ours)].seq}: the file has {told(theirs[len(ours)])}; this run stops {last}"
    if whole and len(ours) > len(theirs):
        return f"after line {theirs[-1].seq}, where the file ends, this run goes on: {told(ours[len(theirs)])}"
    return None


def ends(theirs: Mapping[str, Any] | None, ours: Mapping[str, Any] | None) -> str | None:
    """Where two ends differ in what they say, in a sentence."""
    if theirs is None or ours is None:
        return None
    for name in ("status", "result", "error", "reason"):
        if _settled(theirs.get(name)) != _settled(ours.get(name)):
            return f"the {name} of the file is {theirs.get(name)!r}; that of this run is {ours.get(name)!r}"
    return None


def _settled(said: Any) -> Any:
    """Without the line that an error came from."""
    return {name: value for name, value in said.items() if name != "at"} if isinstance(said, Mapping) else said


def _data(line: Event) -> Mapping[str, Any]:
    return line.data if isinstance(line.data, Mapping) else {}
