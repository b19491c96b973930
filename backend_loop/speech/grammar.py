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
    "degrees": "((twenty | thirty) [<unit>] | <teen> | <unit>) [point five] [degrees]",
    "percent": "(<ten> [<unit>] | <teen> | <unit> | one hundred | a hundred) [percent]",
    "mode": "cool | cooling | heat | heating | dry | auto | fan",
    "full": "full [brightness] | half [brightness] | maximum",
    "please": "please | (can | could | would) you [please]",
    "at_last": "please | now | for me",
    "rooms": "[the] <area> [and [the] <area>]",
    "where": "(in | on | at) <rooms> | in here",
    "which": "[all [of]] [the | my] [<area>]",
    "those": "<which> <switched> [and [the] [<area>] <switched>] | [all [of]] [the | my] <switched> <where> "
    "| [the] <area> and [the] <area> <switched> | all [the] <switched> (but | except) <rooms>",
    "answer": "yes [please] | no [thanks] | yeah | okay | go ahead "
    "| [please] cancel [that | it] | never mind | stop that",
}
"""What every home has."""

_KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    "switched": {
        "onoff": "(turn | switch | put) (on | off) <those> | (turn | switch | put) <those> (on | off) "
        "| <those> (on | off) | (turn | switch) (on | off) everything [<where>] "
        "| (turn | switch) everything [<where>] (on | off) | (start | stop) [the] [<area>] <switched>",
        "state": "(is | are) [all] [the] ([<area>] <switched> | <switched> <where>) (on | off) "
        "| did (i | we) (leave [the] [<area>] <switched> on | turn off [the] [<area>] <switched>)",
    },
    "light": {
        "dim": "(dim | brighten) (<which> <light> | [the] <light> <where> | the <area>) [to <percent>] "
        "| (turn | bring) [the] [<area>] <light> (up | down) to <percent>",
        "brightness": "(set | make | change) [the] (<area> | [all [the]] [<area>] <light> | <light> <where>) "
        "[brightness] to (<percent> | <full>) | [<area>] <light> (at | to) <percent> "
        "| set [the] brightness [(of | in) [the] (<area> | [<area>] <light>)] to (<percent> | <full>)",
        "lit": "how bright is [the] [<area>] <light> | which lights are on",
    },
    "climate": {
        "heat": "(set | turn | change | raise | lower) [the] (temperature [<where>] | [<area>] <climate> "
        "| <climate> <where> | <area> [temperature]) [up | down] to <degrees> | make it <degrees> [<where>] "
        "| (turn | switch) on [the] ([<area>] <climate> | <climate> <where>) and set it to <degrees> "
        "| (set | put | switch) [the] [<area>] <climate> (to | on) <mode> [mode] | set it to <degrees>",
        "aim": "what is [the] [<area>] <climate> set to",
    },
    "cover": {
        "move": "(open | close | shut | raise | lower) (<which> <cover> | [all [of]] [the | my] <cover> <where>) "
        "| (open | set) [the] ([<area>] <cover> | <cover> <where>) to (<percent> | half) "
        "| open [the] [<area>] <cover> halfway",
        "moved": "(is | are) [the] [<area>] <cover> (open | closed)",
    },
    "lock": {
        "bolt": "(lock | unlock | open | close) (the door | [the] <lock>)",
        "bolted": "is (the door | [the] <lock>) (locked | unlocked | open | closed) "
        "| did (i | we) lock (the door | [the] <lock>)",
    },
    "media_player": {
        "play": "(play | pause | stop | resume | start) [the | some] music [<where> | on [the] <media_player>] "
        "| (play | pause | stop | resume) [the] <media_player> [<where>] | pause | is the music playing",
        "volume": "(set | turn) [the] [<area> | <media_player>] (volume | music) [<where>] [up | down] to <percent> "
        "| [<media_player>] volume <percent>",
    },
    "area": {
        "measure": f"[what is | what's | tell me] [the] (<area> ({' | '.join(_SENSED)}) "
        f"| ({' | '.join(_SENSED)}) <where>) | (what is | what's) the ({' | '.join(_SENSED)}) "
        "| how (warm | hot | cold | humid) is (it [<where>] | the <area>) [right now] | is it (warm | cold) <where>",
        "room": "[in] [the] <area>",
    },
    "phrase": {"say": "<phrase> [everyone | now]"},
    "scene": {"run": "(run | start | activate | turn on) [the] <scene> [scene | mode]"},
}
"""Sentences, by what a home must have for them."""

_BARE: Final = frozenset({"say", "room", "measure", "state", "lit", "aim", "moved", "bolted"})
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
    polite = (f"[<please>] ({asked}) [<at_last>]",) if asked else ()
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
