"""Text as it is compared: one case, one width, no signs that nobody says. Pure."""

import re
import unicodedata
from typing import Final

from backend_loop.language.characters import simplified

LONGEST: Final = 500
"""Characters of an utterance; nobody says more in one breath, and reading takes time that grows with it."""

CJK: Final = r"\u3400-\u4dbf\u4e00-\u9fff"
_UNSAID: Final = re.compile(r"[^\w\s'%.°℃,，。、；;!?！？&+-]|_")
_SPACE: Final = re.compile(r"\s+")
_BETWEEN_SIGNS: Final = re.compile(rf"(?<=[{CJK}]) +(?=[{CJK}])")
_JOINED: Final = re.compile(r"(?<=\w)-(?=\w)")
_AC: Final = re.compile(r"\ba[./ ]c\b\.?", re.IGNORECASE)


def fold(text: str, language: str = "") -> str:
    """The text in one case and one width, in Chinese one script, without brackets, emoji and control characters."""
    if language.split("-", maxsplit=1)[0] == "zh":
        text = simplified(text)
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("‘", "'")
    text = _JOINED.sub(" ", _AC.sub("ac", text))
    return _BETWEEN_SIGNS.sub("", _SPACE.sub(" ", _UNSAID.sub(" ", text))).strip()


def plain(text: str) -> str:
    """The same without any punctuation: as names and phrases are compared."""
    return _BETWEEN_SIGNS.sub(
        "", _SPACE.sub(" ", re.sub(r"[^\w%. ]|\.(?!\d)|_", " ", fold(text).replace("'", "")))
    ).strip()


def chinese(sign: str) -> bool:
    """It is written without spaces around it."""
    return re.match(f"[{CJK}]", sign) is not None
