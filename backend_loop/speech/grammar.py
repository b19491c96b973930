"""The English sentences that a home can be told, as a grammar for the embedded engine: made from its own names.

A recogniser that knows all words hears anything; one that knows what can be said here hears that. The price: it hears
nothing else, and takes what is said for the nearest thing that it knows. So its answers carry how well they fit.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

from backend_loop.speech.numerals import words_of
from backend_loop.speech.sentences import Expression, ends, parsed
from shared.home import Inventory

LANGUAGE: Final = "en"

_SWITCHED: Final = ("light", "switch", "climate", "fan", "media_player", "humidifier", "vacuum", "input_boolean")
_SENSED: Final = ("temperature", "humidity")

_FIXED: Final[Mapping[str, str]] = {
    "unit": "one | two | three | four | five | six | seven | eight | nine",
    "ten": "twenty | thirty | forty | fifty | sixty | seventy | eighty | ninety",
    "teen": "ten | eleven | twelve | thirteen | fourteen | fifteen | sixteen | seventeen | eighteen | nineteen",
    "number": "<ten> [<unit>] | <teen> | <unit> | zero | one hundred | a hundred",
    "degrees": "<number> [point five] [degrees]",
    "percent": "<number> [percent]",
    "mode": "cool | cooling | heat | heating | dry | auto | fan",
    "full": "full [brightness] | half [brightness] | maximum",
    "please": "please | can you [please] | could you [please] | would you [please]",
    "where": "(in | on | at) [the] <area> | in here",
    "which": "[all] [of] [the | my] [<area>]",
    "those": "<which> <switched> [<where>] [and [the] <switched> [<where>]]",
    "answer": "yes [please] | no | yeah | okay | do it | cancel [that | it] | never mind | stop that | forget it",
}
"""What every home has."""

_KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    "switched": {
        "onoff": "(turn | switch | put) (on | off) <those> | (turn | switch | put) <those> (on | off) "
        "| <those> (on | off) | (turn | switch) (on | off) everything [<where>] "
        "| (turn | switch) everything [<where>] (on | off) "
        "| (start | stop) [the] [<area>] <switched>",
        "state": "(is | are) [the] [<area>] <switched> [<where>] (on | off)",
    },
    "light": {
        "dim": "(dim | brighten | turn (up | down)) <which> (<light> | <area>) [<where>] [to <percent>] "
        "| turn <which> <light> (up | down) to <percent>",
        "brightness": "(set | make | change) <which> (<area> | <light>) [brightness] [<where>] to (<percent> | <full>) "
        "| set [the] brightness [(of | in) [the] (<area> | [<area>] <light>)] to (<percent> | <full>)",
    },
    "climate": {
        "heat": "(set | turn | change) [the] (temperature | [<area>] <climate> | <area> [temperature]) [<where>] "
        "[up | down] to <degrees> | make it <degrees> [<where>] "
        "| (turn | switch) on [the] [<area>] <climate> [<where>] and set it to <degrees> "
        "| (set | put | switch) [the] [<area>] <climate> (to | on) <mode> [mode]",
    },
    "cover": {
        "move": "(open | close | shut | raise | lower) <which> <cover> [<where>] "
        "| (open | set) [the] [<area>] <cover> [<where>] to (<percent> | half) | open [the] [<area>] <cover> halfway "
        "| (is | are) [the] [<area>] <cover> (open | closed)",
    },
    "lock": {
        "bolt": "(lock | unlock | open | close) [the] <lock> | is [the] <lock> (locked | unlocked | open | closed)"
    },
    "media_player": {
        "play": "(play | pause | stop | resume | start) [the | some] music [<where>] [on [the] <media_player>] "
        "| (play | pause | stop | resume) [the] <media_player> [<where>]",
        "volume": "(set | turn) [the] [<area>] [<media_player>] (volume | music) [<where>] [up | down] to <percent> "
        "| volume <percent> | turn [the] (volume | music) (up | down) | turn (up | down) [the] (volume | music)",
    },
    "area": {
        "measure": f"(what is | what's) [the] ({' | '.join(_SENSED)}) [<where>] "
        "| how (warm | hot | cold | humid) is (it | the <area>) [<where>]",
        "room": "[in] [the] <area>",
    },
    "phrase": {"say": "<phrase>"},
    "scene": {"run": "(run | start | activate | turn on) [the] <scene> [scene]"},
}
"""Sentences, by what a home must have for them."""

_BARE: Final = frozenset({"say", "room", "measure", "state"})
"""Those that nobody says please to: each word more is one more to be mistaken for."""


class Grammar:
    """What can be said in one home.

    Args:
        home: its names are taken in; those that English letters do not write are left out.
    """

    def __init__(self, home: Inventory) -> None:
        """Made anew for each revision of the inventory."""
        self.rules = dict(_rules(home))

    @cached_property
    def jsgf(self) -> str:
        """As pocketsphinx reads it."""
        lines = (f"{'public ' if name == 'told' else ''}<{name}> = {body};" for name, body in self.rules.items())
        return "\n".join(("#JSGF V1.0;", "grammar home;", *lines, ""))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Each word that can be heard, in order."""
        return tuple(sorted({word for body in self.rules.values() for word in re.findall(r"(?<![<\w'])[\w']+", body)}))

    @cached_property
    def telling(self) -> tuple[str, ...]:
        """Words of names and numbers: a sentence with a wrong one of these is another sentence."""
        bodies = (self.rules[rule] for rule in (*_KINDS, "unit", "ten", "teen"))
        words = {word for body in bodies for word in re.findall(r"[\w']+", body) if len(word) > 2 or word.isupper()}
        return tuple(sorted(words & set(self.words)))

    def accepts(self, sentence: str) -> bool:
        """Whether this is a whole sentence: what was heard may be the beginning of one only."""
        words = sentence.split()
        return len(words) in ends("told", self._parsed, words)

    @cached_property
    def _parsed(self) -> Mapping[str, Expression]:
        return {name: parsed(body) for name, body in self.rules.items()}


def spoken_form(name: str) -> str | None:
    """A name as one says it, word by word: digits as words, initials in capitals; None: English cannot say it.

    >>> spoken_form("AC 2")
    'AC two'
    """
    pieces = re.findall(r"[A-Za-z]+(?:'[A-Za-z]+)?|\d+|[^\s\w]|\w", name.replace("’", "'").replace("_", " "))
    words = list[str]()
    for piece in pieces:
        if piece.isascii() and piece.isdigit():
            said = words_of(piece)
            if said is None:
                return None
            words.append(said)
        elif piece.isascii() and piece[0].isalpha():
            words.append(piece if piece.isupper() and len(piece) > 1 else piece.lower())
        elif piece.isalnum():
            return None
    return " ".join(words) or None


def _rules(home: Inventory) -> Iterable[tuple[str, str]]:
    names = {kind: _alternatives(said) for kind, said in _named(home).items()}
    sentences = {rule: body for kind, rules in _KINDS.items() if names[kind] for rule, body in rules.items()}
    yield from _FIXED.items()
    yield from ((kind, body or "<VOID>") for kind, body in names.items())
    yield from sentences.items()
    asked = " | ".join(f"<{rule}>" for rule in sentences if rule not in _BARE)
    polite = (f"[<please>] ({asked}) [please]",) if asked else ()
    yield "told", " | ".join((*polite, *(f"<{rule}>" for rule in sentences if rule in _BARE), "<answer>"))


def _named(home: Inventory) -> dict[str, set[str]]:
    """What is said of each kind."""
    named: dict[str, set[str]] = {kind: set() for kind in _KINDS}
    named["area"].update(*(area.names.get(LANGUAGE, ()) for area in home.areas))
    for entry in home.devices:
        domain, said = entry.entity.partition(".")[0], entry.names.get(LANGUAGE, ())
        if domain in named:
            named[domain].update(said)
        if domain in _SWITCHED:
            named["switched"].update(said)
    for scene in home.scenes:
        named["scene"].update(scene.names.get(LANGUAGE, ()))
        named["phrase"].update(scene.phrases.get(LANGUAGE, ()))
    return named


def _alternatives(names: Iterable[str]) -> str:
    return " | ".join(sorted({said for name in names if (said := spoken_form(name))}))
