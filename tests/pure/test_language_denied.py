"""What is denied, put off, asked why or bound to something else is never done now, whatever it is."""

import itertools
from collections.abc import Iterator

import pytest

from tests.pure.meant import interpreter, rows

BEFORE = {
    "en": (
        "don't |never |do not |if it rains |tomorrow |at seven |in five minutes |when I leave |why did you |"
        "who asked you to |stop asking me to |should I |can't you |I forgot to |please don't |you should not |"
        "after sunset |unless I say so "
    ),
    "zh": (
        "不要|别|千万别|先别|如果下雨就|明天|七点|五分钟后|等我回来再|为什么|谁|是不是要|要不要|我忘了|不用|没有|别再|晚上|"
        "刚才没"
    ),
}
AFTER = {
    "en": (
        " tomorrow| at seven| in five minutes| later| when I leave| if it rains| unless I'm home| at noon| every day|"
        " for ten minutes| until midnight| or not| instead of me| not now| but not yet"
    ),
    "zh": "是不行的|的时候告诉我|十分钟|之前告诉我|会怎么样|太麻烦",
}
SILENCED = {"别请播放音乐", "先别请播放音乐", "别放音乐吧", "先别放音乐吧"}
"""To play no music is to pause it."""


def denied(language: str) -> Iterator[tuple[str | None, str]]:
    for name in ("held_out", "second", "third", "fourth"):
        for area, text, want in rows(f"{name}.{language}.tsv"):
            if want.startswith(("!", "look", "cancel", "yes", "no")):
                continue
            yield from ((area, word + text) for word in BEFORE[language].split("|"))
            yield from ((area, text.rstrip("!") + word) for word in AFTER[language].split("|"))


def done(language: str, *, each: int) -> list[str]:
    """What of it is done, of each so many'th sentence."""
    sentences = list(itertools.islice(denied(language), 0, None, each))
    assert len(sentences) > 5_000 / each, "of them there are some"
    return [
        text
        for area, text in sentences
        if any(wish.mission != "device.query" for wish in interpreter().interpret(text, language, area=area).wishes)
    ]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_not_wanted_now_is_not_done(language: str) -> None:
    assert set(done(language, each=97)) <= SILENCED


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_none_of_18_000_sentences_that_are_not_wanted_now_is_done(language: str) -> None:
    assert set(done(language, each=1)) <= SILENCED
