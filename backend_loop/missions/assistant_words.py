"""What the assistant says about the conversation itself, in the speaker's language; about devices `answers` does."""

from typing import Final, Literal

Word = Literal[
    "cancelled",
    "too_late",
    "nothing_to_cancel",
    "nothing_asked",
    "left_alone",
    "no_answer",
    "withdrawn",
    "not_understood",
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
}


def said(word: Word, language: str) -> str:
    """The sentence; in English where a language has none."""
    tongues = _WORDS[word]
    return tongues.get(language.split("-", maxsplit=1)[0], tongues["en"])
