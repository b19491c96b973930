"""What the assistant says about the conversation itself, in the speaker's language; about devices `answers` does."""

from collections.abc import Mapping
from typing import Final, Literal

from backend_loop.language import naming
from backend_loop.language.wording import wording
from shared.home import Inventory

Word = Literal[
    "cancelled",
    "too_late",
    "nothing_to_cancel",
    "nothing_asked",
    "left_alone",
    "no_answer",
    "withdrawn",
    "not_understood",
    "nothing_heard",
    "recording_not_heard",
    "language_not_heard",
    "cannot_hear_now",
]

_WORDS: Final[dict[Word, dict[str, str]]] = {
    "cancelled": {"en": "OK, cancelled.", "zh": "好的，已取消。"},
    "too_late": {"en": "That is done already.", "zh": "已经做完了，来不及取消。"},
    "nothing_to_cancel": {"en": "There is nothing to cancel.", "zh": "没有可以取消的命令。"},
    "nothing_asked": {"en": "I have not asked anything.", "zh": "我没有在问您问题。"},
    "left_alone": {"en": "OK, I leave it.", "zh": "好的，那就不做了。"},
    "no_answer": {"en": "I heard no answer, so I leave it.", "zh": "没有听到回答，那就不做了。"},
    "withdrawn": {"en": "OK, something else then.", "zh": "好的，那就先不管这个了。"},
    "not_understood": {"en": "Sorry, I did not understand that.", "zh": "对不起，我没有听懂。"},
    "nothing_heard": {"en": "I did not hear anything.", "zh": "我没有听到您说话。"},
    "recording_not_heard": {"en": "I cannot listen to that recording.", "zh": "这段录音我没法听。"},
    "language_not_heard": {"en": "I cannot hear that language here.", "zh": "我在这里听不懂中文。"},
    "cannot_hear_now": {"en": "I cannot hear just now. Please say it again.", "zh": "我现在听不了，请再说一次。"},
}

_NO_SUCH_AREA: Final = {
    "en": "There is no area {named} here. There are: {them}.",
    "zh": "这里没有{named}这个区域。有：{them}。",
}


def said(word: Word, language: str) -> str:
    """The sentence; in English where a language has none."""
    return _tongue(_WORDS[word], language)


def no_such_area(named: str, home: Inventory, language: str) -> str:
    """That the area where it was said is none of the home's, which has others."""
    spoken = [next(iter(area.names.get(language, ())), area.id) for area in home.areas]
    return _tongue(_NO_SUCH_AREA, language).format(named=named, them=naming.listed(spoken, wording(language)))


def _tongue(tongues: Mapping[str, str], language: str) -> str:
    return tongues.get(language.split("-", maxsplit=1)[0], tongues["en"])
