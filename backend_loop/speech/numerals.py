"""English numbers from 0 to 100, in words and in digits."""

from typing import Final

_UNITS: Final = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS: Final = [
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS: Final = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def words_of(digits: str) -> str | None:
    """The number as one says it; None: it is none from 0 to 100."""
    number = int(digits) if len(digits) <= 3 else 101
    if number > 100:
        return None
    if number == 100:
        return "one hundred"
    small = [*_UNITS, *_TEENS]
    if number < len(small):
        return small[number]
    tens, unit = divmod(number, 10)
    return _TENS[tens - 2] + (f" {_UNITS[unit]}" if unit else "")


def written(sentence: str) -> str:
    """The sentence with its numbers in digits, as one writes it.

    >>> written("set the AC to twenty six point five degrees")
    'set the AC to 26.5 degrees'
    """
    words, out = sentence.split(), list[str]()
    at = 0
    while at < len(words):
        number, after = _number(words, at)
        if number is None:
            out.append(words[at])
            at += 1
            continue
        if words[after : after + 1] == ["point"] and words[after + 1 : after + 2] and words[after + 1] in _UNITS:
            out.append(f"{number}.{_UNITS.index(words[after + 1])}")
            after += 2
        else:
            out.append(str(number))
        at = after
    return " ".join(out)


def _number(words: list[str], at: int) -> tuple[int | None, int]:
    """The number that begins here, and where it ends."""
    word, following = words[at], words[at + 1 : at + 2]
    if word in {"one", "a"} and following == ["hundred"]:
        return 100, at + 2
    if word in _TENS:
        tens = 10 * (_TENS.index(word) + 2)
        if following and following[0] in _UNITS[1:]:
            return tens + _UNITS.index(following[0]), at + 2
        return tens, at + 1
    if word in _TEENS:
        return 10 + _TEENS.index(word), at + 1
    return (_UNITS.index(word), at + 1) if word in _UNITS else (None, at)
