"""An utterance taken apart: courtesies off, clauses one by one, names left whole. Pure."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from backend_loop.language.meaning import Control
from backend_loop.language.names import NameBook, Span, outermost
from backend_loop.language.text import CJK, plain
from backend_loop.language.tongues import Tongue

MOST_CLAUSES: Final = 8
LONGEST_RUN_ON: Final = 120
"""Characters that are said without a pause; trying where to cut takes time that grows with them."""

_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?%?")
_SPACE: Final = re.compile(r"\s+")
_BETWEEN_SIGNS: Final = re.compile(rf"(?<=[{CJK}]) +(?=[{CJK}])")


@dataclass(frozen=True)
class Clauses:
    """The clauses of an utterance; ``then``: they have an order."""

    texts: tuple[str, ...]
    then: bool = False


def outside(text: str, spans: Iterable[Span], change: Callable[[str], str]) -> str:
    """The text with everything but the names in it changed."""
    parts, at = list[str](), 0
    for span in outermost(spans):
        parts += [change(text[at : span.start]), span.text]
        at = span.end
    return "".join([*parts, change(text[at:])])


def bare(text: str, tongue: Tongue, book: NameBook) -> str:
    """The text without courtesies; one that is nothing else stays as it is."""
    text = outside(text, book.spans(text), lambda gap: tongue.anywhere.sub(" ", gap))
    begun = text.strip()
    for pattern, wish in (*tongue.request, (tongue.opening, ""), *tongue.request, (tongue.opening, "")):
        begun = pattern.sub(wish, begun)
    found = tongue.closing.search(begun)
    if found and not any(span.end > found.start() for span in book.spans(begun)):
        begun = begun[: found.start()]
    return _tidy(begun) or _tidy(text)


def parts(text: str, tongue: Tongue, book: NameBook) -> Clauses:
    """The clauses of a text that is no sentence as a whole."""
    begun = tongue.first.sub("", text)
    then, spans = begun != text, list(outermost(book.spans(begun)))
    texts, at = list[str](), 0
    for joint in tongue.joint.finditer(begun):
        if joint.end() == joint.start() or any(s.start < joint.end() and joint.start() < s.end for s in spans):
            continue
        texts.append(begun[at : joint.start()])
        then, at = then or joint["then"] is not None, joint.end()
    texts.append(begun[at:])
    kept = [bare(text, tongue, book) for text in texts if _tidy(text)]
    return Clauses(tuple(kept), then)


def corrected(text: str, tongue: Tongue, book: NameBook) -> tuple[str, str] | None:
    """What was said, and what was said instead of it in the same breath; None: nothing was taken back."""
    spans = list(outermost(book.spans(text)))
    cuts = [
        one
        for one in tongue.corrected.finditer(text)
        if not any(s.start < one.end() and one.start() < s.end for s in spans)
    ]
    if not cuts or not (first := _tidy(text[: cuts[-1].start()])):
        return None
    instead = bare(text[cuts[-1].end() :], tongue, book)
    return first, tongue.set_to.format(instead) if _NUMBER.fullmatch(instead) else instead


def exceptions(text: str, tongue: Tongue, book: NameBook) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Ways to read a text as something for all but some: what is for all, and who is left out."""
    for pattern in tongue.but:
        if found := pattern.match(text):
            rest = f"{found['rest']} {found.groupdict().get('wish') or ''}"
            yield _tidy(rest), parts(_tidy(found["but"]), tongue, book).texts


def apart(text: str, tongue: Tongue, book: NameBook, kinds: Iterable[int] = ()) -> Iterator[list[str]]:
    """Ways to take clauses apart that nothing stands between: at each verb, at one of them, at one name or kind."""
    if len(text) > LONGEST_RUN_ON:
        return
    spans = list(outermost(book.spans(text)))
    verbs = [found.start() for found in tongue.begin.finditer(text) if found.start() > 0]
    verbs = [at for at in verbs if not any(span.start < at < span.end for span in spans)][:MOST_CLAUSES]
    singles = [*verbs, *(span.start for span in spans if span.start > 0), *kinds][: 2 * MOST_CLAUSES]
    for cuts in [verbs, *([at] for at in singles)]:
        pieces = [text[begin:end] for begin, end in itertools.pairwise([0, *cuts, len(text)])]
        if cuts and all(map(_tidy, pieces)):
            yield [bare(piece, tongue, book) for piece in pieces]


def control(text: str, tongue: Tongue) -> Control | None:
    """Yes, no or cancel, if it is nothing else."""
    said = text.strip(" .,!?，。！？")
    return next((word for word, pattern in tongue.control.items() if pattern.match(said)), None)


def phrase(text: str, tongue: Tongue) -> str:
    """What stays of a phrase, however it is put: "we're home now" is "i am home"."""
    text = " ".join(text.replace(",", " ").replace("，", " ").split())
    for pattern, instead in tongue.said:
        text = pattern.sub(instead, text)
    return plain(text)


def unnamed(text: str, tongue: Tongue) -> str | None:
    """The name by which something is asked for in a sentence that names nothing known."""
    found = next((found for pattern in tongue.unknown if (found := pattern.match(text))), None)
    return tongue.counted.sub("", found["what"]).strip() or None if found else None


def _tidy(text: str) -> str:
    return _BETWEEN_SIGNS.sub("", _SPACE.sub(" ", text)).strip(" ,.;!?，。；！？、")
