"""The situations that other systems' users ran into: each has a test named after its number, ``test_b01_…``."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parent
NUMBER: Final = re.compile(r"_(b\d\d)(?=_)")

SITUATIONS: Final = {
    "b01": "a lost worker's missions go on elsewhere within two leases; a death is counted, and no attempt",
    "b02": "kill -9 at any instruction: it ends, or it runs again",
    "b03": "no false 202 while Redis goes and comes; what is sent again with its key is done once; nothing stays out",
    "b04": "a worker that lives and consumes nothing is not ready, connects again, and ends itself at last",
    "b05": "it connects again for ever, with growing pauses; what runs goes on, and its outcome is kept meanwhile",
    "b06": "a lost worker costs no try; who loses too many workers is a dead letter, worker_lost",
    "b07": "a move and its lease are one step; nobody takes what is not lapsed",
    "b08": "recovery comes again and again, and what breaks in it costs no other",
    "b10": "timers lie in Redis alone: nothing has to live for them to come",
    "b11": "what was accepted is found although everything died before its first step",
    "b12": "a permit belongs to a lease, and ends with it",
    "b13": "one worker's clean stop makes no other one look ill",
    "b15": "what is not due is left alone, and stands once among the timers",
    "b16": "a long handler of a living worker is never taken over",
    "b17": "a blocked event loop keeps its lease for a while; a late completion is refused, and said",
    "b18": "who blocks the event loop is named; such work may run in a process of its own",
    "b20": "age takes nothing over, only a lapsed owner",
    "b21": "who does not know a type leaves it alone; who was overtaken by an end stops, and writes nothing",
    "b22": "a handler knows its attempt and its fence, and its key stays the same however often it is tried",
    "b23": "nothing runs that was not claimed, whatever was seen before",
    "b24": "a cancel is durable wherever the mission stands, with no worker too",
    "b25": "a cancel arrives although its message is lost",
    "b27": "a cancel cuts at once, and says when the handler has really stopped",
    "b28": "a stop drains, hands back and exits 0; a second signal means now",
    "b37": "a schedule's instant is run once, whoever comes with it a second time, for days",
    "b38": "several who believe that they lead fire once: the id follows from the instant, and a later term refuses",
    "b39": "Redis' clock says when, and a run is under way until it is done, whatever the clocks of others",
    "b40": "changes of the clocks by the schedule's rule, in its zone; a broken schedule stops no other",
    "b42": "an instant that nobody was there for is made up for, as the schedule says",
    "b43": "priorities are checked, work as said, and starve nobody",
    "b44": "many timers that are due together delay nobody for long",
    "b45": "a worker takes no more than it can run, however much there is",
    "b46": "who failed together comes back apart, and retries have a budget",
    "b48": "so many probes over all workers, then a ramp",
    "b49": "who kills its process is put aside, and its neighbours live",
    "b50": "what cannot be read is kept as bytes, with the reason, and the worker goes on",
    "b52": "an unknown type or a future version waits for who knows it, then is a dead letter that says so",
    "b53": "what is too large is refused at the door, and a permanent error of a step",
}
"""Number and what must be true then."""


def _named() -> Iterator[tuple[str, str]]:
    """Number and function of each test that is named after a situation."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for number in NUMBER.findall(node.name):
                    yield number, f"{path.relative_to(TESTS)}::{node.name}"


SHOWN: Final = frozenset(number for number, _ in _named())


@pytest.mark.parametrize("number", SITUATIONS)
def test_a_situation_is_shown(number: str) -> None:
    assert number in SHOWN, f"no test is named test_{number}_…: {SITUATIONS[number]}"
