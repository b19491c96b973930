"""How an English word is said that the engine's dictionary does not have: initials by letter, others by rule.

The rules are few, and meant for names: a made-up word is heard if it is said about as it is written. Who needs it
better gives the device a second name that is written as it sounds.
"""

from typing import Final


def _table(text: str) -> dict[str, str]:
    """Spellings and their phones, by stroke or line."""
    rows = (row.partition(" ") for row in text.replace("\n", "|").split("|"))
    return {spelling: phones for spelling, _, phones in rows}


_LETTERS: Final = _table("""\
a EY|b B IY|c S IY|d D IY|e IY|f EH F|g JH IY|h EY CH|i AY|j JH EY|k K EY|l EH L|m EH M|n EH N|o OW|p P IY|q K Y UW
r AA R|s EH S|t T IY|u Y UW|v V IY|w D AH B AH L Y UW|x EH K S|y W AY|z Z IY""")

_SPELLINGS: Final = _table("""\
tion SH AH N|sion ZH AH N|ight AY T|ough AH F|ture CH ER|tch CH|dge JH|sch SH|igh AY|eau OW|air EH R|ear IH R|eer IH R
oor AO R|our AW ER|ai EY|ay EY|au AO|aw AO|ea IY|ee IY|ei EY|ey IY|eu UW|ew UW|ie IY|oa OW|oe OW|oi OY|oo UW|ou AW
ow OW|oy OY|ue UW|ui UW|ar AA R|er ER|ir ER|or AO R|ur ER|ch CH|ck K|gh G|gn N|kn N|ng NG|ph F|qu K W|sh SH|th TH
wh W|wr R|ce S EH|ci S IH|cy S IY|ge JH EH|gi JH IH|xi SH IY|zh ZH|a AE|b B|c K|d D|e EH|f F|g G|h HH|i IH|j JH|k K
l L|m M|n N|o AA|p P|q K|r R|s S|t T|u AH|v V|w W|x K S|y IY|z Z""")

_LONGEST: Final = max(map(len, _SPELLINGS))
_LONG: Final = {"a": "EY", "e": "IY", "i": "AY", "o": "OW", "u": "UW"}


def by_letter(word: str) -> str:
    """Initials: ``AC`` is said as ``EY S IY``."""
    return " ".join(_LETTERS[letter] for letter in word.lower() if letter in _LETTERS)


def is_initials(word: str) -> bool:
    """Whether one says its letters: it has capitals only, or no vowel."""
    return word.isupper() or not set(word.lower()) & set("aeiouy")


def by_rule(word: str) -> str:
    """A guess, in the phones of CMU's dictionary."""
    word = word.lower().replace("'", "")
    silent = len(word) > 3 and word[-1] == "e" and word[-2] not in "aeiouy" and word[-3] in _LONG
    phones, at = list[str](), 0
    end = len(word) - silent
    while at < end:
        if silent and at == end - 2 and word[at] in _LONG:  # a magic e: tape, hive
            phones.append(_LONG[word[at]])
            at += 1
            continue
        piece = next(
            word[at : at + size] for size in range(_LONGEST, 0, -1) if at + size <= end and _known(word[at : at + size])
        )
        said = _SPELLINGS.get(piece, "")
        if said and phones[-1:] != [said]:  # a doubled letter is said once
            phones.append(said)
        at += len(piece)
    return " ".join(phones)


def _known(piece: str) -> bool:
    return piece in _SPELLINGS or len(piece) == 1
