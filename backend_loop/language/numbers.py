"""Numbers as people say them, made digits: twenty six → 26, 百分之五十 → 50%, 二十四度半 → 24.5度. Pure."""

import re
from typing import Final

_TO_TEN: Final = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS: Final = (
    "ten",
    "eleven",
    "twelve",
    *(f"{stem}teen" for stem in ("thir", "four", "fif", "six", "seven", "eigh", "nine")),
)
_ONES: Final = (*_TO_TEN, *_TEENS)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORTH: Final = {word: n for n, word in enumerate(_ONES)} | {word: 20 + 10 * n for n, word in enumerate(_TENS)}
_WORD: Final = "|".join(sorted(_WORTH, key=len, reverse=True))
_ENGLISH: Final = re.compile(
    rf"\b(?:(?:a|one)[ -])?(hundred)\b|(?<!the )(?<!this )(?<!that )\b({_WORD})(?:[ -]({'|'.join(_ONES[1:10])}))?\b",
    re.IGNORECASE,
)
_A_DEGREE: Final = re.compile(r"\ba(?= degrees?\b)", re.IGNORECASE)
_POINT: Final = re.compile(rf"(\d+) point ((?:(?:{'|'.join(_ONES[:10])}|\d)\b ?)+)", re.IGNORECASE)
_HALF: Final = re.compile(r"(\d+) and a half\b", re.IGNORECASE)
_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?) ?(?:percent|per cent|pct|%)", re.IGNORECASE)

_DIGITS: Final = {"〇": 0, "两": 2} | {sign: n for n, sign in enumerate("零一二三四五六七八九")}
_DIGIT: Final = "[零〇一二两三四五六七八九]"
_NUMERAL: Final = "[零〇一二两三四五六七八九十百]"
_ASKED: Final = r"(?<=[到至成为在是量于])"
_COUNTED: Final = r"(?=\s*(?:度|摄氏度|℃|档|成|%|分|秒|小时))"
_CHINESE: Final = re.compile(
    rf"百分之(?P<percent>{_NUMERAL}+|\d+(?:\.\d+)?)"
    rf"|(?P<tens>(?:{_DIGIT}*十|{_DIGIT}+百){_NUMERAL}*)(?P<point>点[零〇一二两三四五六七八九]+)?"
    rf"|(?:{_ASKED}(?P<asked>{_NUMERAL}+)(?![半下点些起直])|(?P<counted>{_NUMERAL}+){_COUNTED})"
)
_PART: Final = re.compile(rf"({_DIGIT})分之({_DIGIT})")
_DEGREE_HALF: Final = re.compile(r"(\d+)度半")
_TENTHS: Final = re.compile(r"(?<!\d)([1-9])成(?=$|[亮音的,，])")


def digits(text: str, language: str) -> str:
    """The text with its numbers as digits; of other languages than English and Chinese as it is."""
    family = language.split("-", maxsplit=1)[0]
    if family == "en":
        return _english(text)
    return _chinese(text) if family == "zh" else text


def number(text: str) -> float | int:
    """The number that digits are, whole where it is."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _english(text: str) -> str:
    text = _ENGLISH.sub(lambda found: str(_value(found)), text)
    text = _A_DEGREE.sub("1", text)
    text = _POINT.sub(lambda found: f"{found[1]}.{_spelled(found[2])}" + (" " if found[2].endswith(" ") else ""), text)
    text = _HALF.sub(r"\1.5", text)
    return _PERCENT.sub(r"\1%", text)


def _value(found: re.Match[str]) -> int:
    if found[1]:
        return 100
    tens, ones = _WORTH[found[2].lower()], found[3]
    if ones is None:
        return tens
    return tens + _WORTH[ones.lower()] if tens >= 20 else tens * 100 + _WORTH[ones.lower()]


def _spelled(words: str) -> str:
    return "".join(str(_WORTH.get(word.lower(), word)) for word in words.split())


def _chinese(text: str) -> str:
    text = _PART.sub(_part, text)
    text = _CHINESE.sub(_digits, text)
    text = _DEGREE_HALF.sub(r"\1.5度", text)
    return _TENTHS.sub(r"\g<1>0%", text)


def _part(found: re.Match[str]) -> str:
    """三分之一 as percent, where it is a part of a whole."""
    whole, part = _numeral(found[1]), _numeral(found[2])
    return f"{round(100 * part / whole)}%" if 0 < part <= whole else found[0]


def _digits(found: re.Match[str]) -> str:
    if percent := found["percent"]:
        return f"{percent if percent[0].isdigit() else _numeral(percent)}%"
    whole = _numeral(found["tens"] or found["asked"] or found["counted"])
    if point := found["point"]:
        return f"{whole}.{''.join(str(_DIGITS[sign]) for sign in point[1:])}"
    return str(whole)


def _numeral(signs: str) -> int:
    """The number that Chinese signs are: 二十六 is 26, 一百 100, 五〇 50."""
    if not set(signs) & {"十", "百"}:
        return int("".join(str(_DIGITS[sign]) for sign in signs[:6]))
    total, last = 0, None
    for sign in signs[:8]:
        if sign in _DIGITS:
            last = _DIGITS[sign]
        else:
            total += (1 if last is None else last) * (10 if sign == "十" else 100)
            last = None
    return total + (last or 0)
