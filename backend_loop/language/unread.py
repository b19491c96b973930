"""What a sentence that says nothing here may have asked for all the same, and why that is not done. Pure."""

from typing import Final

from backend_loop.language.clauses import unnamed
from backend_loop.language.meaning import Reason
from backend_loop.language.text import chinese
from backend_loop.language.things import Puzzle, Things
from backend_loop.language.tongues import Tongue

LONGEST_NAME: Final = (4, 8)
"""Words, or signs of Chinese, that something unknown may be called by; what is longer is something else."""


def unread(text: str, tongue: Tongue, things: Things) -> Puzzle:
    """Something is asked for by a name that nothing has here, or nothing is understood."""
    what = unnamed(text, tongue)
    if what is not None and (there := tongue.there.search(what)) and things.book.spans(there[0]):
        what = what[: there.start()]
    if tongue.later.search(text) or tongue.told_of.match(text) or (what is not None and tongue.denied.search(what)):
        return Puzzle("not_understood")
    if what is None or any(sign.isdigit() for sign in what) or things.book.spans(what):
        return Puzzle("not_understood")
    if len(what.split()) > LONGEST_NAME[0] or (chinese(what[0]) and len(what) > LONGEST_NAME[1]):
        return Puzzle("not_understood")
    return Puzzle("no_such_device", things.near(what), what)


def reason(puzzle: Puzzle, text: str, tongue: Tongue, *, known: bool) -> Reason | None:
    """Why nothing is done where that is known: what is put off is not, whatever else it says.

    Args:
        puzzle: what was found of it.
        text: what was said.
        tongue: of its language.
        known: it names something of this home, or a kind of device.
    """
    if puzzle.problem != "not_understood":
        return None
    if puzzle.reason is not None:
        return puzzle.reason
    if puzzle.limits is not None:
        return "out_of_range"
    if not known and not unnamed(text, tongue):
        return None
    if tongue.later.search(text):
        return "later"
    return "relative" if tongue.relative.search(text) else None
