"""What was typed in haste, put right by the words that can be said: "turnon", "bed room", "kitchne". Pure.

Only words that nobody says here are touched, and only where there is one way to do it: "clock" is no lock.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

SHORTEST: Final = 5
"""Letters of a word that may have lost, doubled or swapped one: shorter ones are too like each other."""


def respelled(text: str, words: AbstractSet[str]) -> str | None:
    """The text with its strange words put right; None: there is none, or it cannot be told what was meant."""
    said, at, given, changed = text.split(" "), 0, list[str](), False
    while at < len(said):
        word = said[at]
        if not (word.isascii() and word.isalpha()) or word in words:
            after = said[at + 1] if at + 1 < len(said) else ""
            if after and word in words and word + after in words:
                given.append(word + after)  # "hall way"
                at, changed = at + 2, True
                continue
            given.append(word)
            at += 1
            continue
        if at + 1 < len(said) and word + said[at + 1] in words:  # "bed room"
            given.append(word + said[at + 1])
            at, changed = at + 2, True
            continue
        if (right := _parted(word, words) or _misspelt(word, words)) is not None:
            changed = True
        given.append(right or word)
        at += 1
    return " ".join(given) if changed else None


def _parted(word: str, words: AbstractSet[str]) -> str | None:
    """Two or three words between which a space is missing."""
    ways = list(_cuts(word, words, 3))
    best = [way for way in ways if len(way) == min(map(len, ways))]
    return " ".join(best[0]) if len(best) == 1 else None


def _cuts(word: str, words: AbstractSet[str], most: int) -> Iterator[Sequence[str]]:
    if word in words and len(word) > 1:
        yield [word]
    elif most > 1:
        for end in range(2, len(word) - 1):
            if word[:end] in words:
                yield from ([word[:end], *rest] for rest in _cuts(word[end:], words, most - 1))


def _misspelt(word: str, words: AbstractSet[str]) -> str | None:
    """The one word of which a letter was swapped with the next, left out or doubled; the first is always right."""
    swapped = {word[:n] + word[n + 1] + word[n] + word[n + 2 :] for n in range(1, len(word) - 1)}
    doubled = {word[:n] + word[n + 1 :] for n in range(1, len(word)) if word[n] == word[n - 1]}
    near = {one for one in (swapped | doubled) & words if len(one) >= SHORTEST - 1}
    near |= {
        one for one in words if len(one) == len(word) + 1 > SHORTEST and one[0] == word[0] and _without_one(one, word)
    }
    return near.pop() if len(near) == 1 else None


def _without_one(whole: str, word: str) -> bool:
    return any(whole[:n] + whole[n + 1 :] == word for n in range(1, len(whole)))
