"""What was heard, matched against what can be meant in this home: names that sound alike are put right.

Engines that know all words write what they hear with the words that are commonest: 我是 for 卧室, "bread room" for
"bedroom". So each part that this home does not know is compared, by its sound, with what it does know. What is known is
never changed; what was changed is said, and how sure that is.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from backend_loop.speech.chinese import Chinese
from backend_loop.speech.engine import spoken
from backend_loop.speech.english import English
from backend_loop.speech.tongue import Tongue
from shared.home import Area, Entry, Inventory, Scene

_KEPT: Final = 0.5
"""Cost of a piece that is left as it is, unknown."""

_TOUCHED: Final = 0.2
"""Cost of a change, besides what sounds different."""

_FAR: Final = 0.25
"""Of its sounds a change may differ in no more."""

_LONGEST: Final = 300
"""Characters of a command; what is longer is a story."""

_RIVAL: Final = 0.05
"""What is farther by less sounds as near."""

_SURE, _UNSURE = 0.95, 0.5
"""How sure a change is that sounds the same, alone and with a rival."""

_TONGUES: Final[Mapping[str, Tongue]] = {"zh": Chinese(), "en": English()}


class Change(NamedTuple):
    """One place that was put right."""

    heard: str
    meant: str
    sure: float
    """From 0 to 1; less where something else of this home sounds as near."""


class Repaired(NamedTuple):
    """What is meant, probably."""

    text: str
    """As it was heard, where nothing was changed."""
    changes: tuple[Change, ...] = ()

    @property
    def confidence(self) -> float:
        """That of all changes together; 1 where there are none."""
        sure = 1.0
        for change in self.changes:
            sure *= change.sure
        return round(sure, 3)


class _Way(NamedTuple):
    cost: float
    pieces: tuple[str, ...]
    changes: tuple[Change, ...]


def repair(heard: str, language: str, home: Inventory) -> Repaired:
    """Put right what was heard. Languages that nobody taught this are left as they are.

    Args:
        heard: a transcript.
        language: of the speaker, such as ``en`` or ``zh-CN``.
        home: its names, and the words of commands, are what can be meant.
    """
    if (said := spoken(language)) not in _TONGUES or len(heard) > _LONGEST:
        return Repaired(heard)
    return _repairer(said, home.revision, _Names(home)).repair(heard)


class _Names:
    """An inventory's, for a cache that goes by its revision."""

    def __init__(self, home: Inventory) -> None:
        self._home = home

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Names)

    def __hash__(self) -> int:
        return 0

    def of(self, language: str) -> Iterable[str]:
        """All names and phrases."""
        parts: list[Area | Entry | Scene] = [*self._home.areas, *self._home.devices, *self._home.scenes]
        for part in parts:
            yield from part.names.get(language, ())
        for scene in self._home.scenes:
            yield from scene.phrases.get(language, ())


@lru_cache(maxsize=16)
def _repairer(language: str, _revision: str, names: _Names) -> "_Repairer":
    return _Repairer(_TONGUES[language], names)


class _Repairer:
    """The words of one home in one language."""

    def __init__(self, tongue: Tongue, names: _Names) -> None:
        self._tongue = tongue
        meant = {tuple(tongue.pieces(name)) for name in (*names.of(tongue.language), *tongue.commands)}
        known = {_folded(pieces) for pieces in meant}
        known |= {other for pieces in known for other in tongue.variants(pieces)}
        self._others = frozenset(tuple(tongue.pieces(word)) for word in tongue.others)
        self._known = frozenset(known | self._others)
        self._longest = max(map(len, self._known), default=1)
        self._sounds = [(pieces, tongue.sound(pieces)) for pieces in sorted(meant) if pieces]
        self._closed = {"".join(pieces): pieces for pieces in meant}

    def repair(self, heard: str) -> Repaired:
        pieces = self._tongue.pieces(heard)
        ways = [_Way(0.0, (), ())]
        for end in range(1, len(pieces) + 1):
            ways.append(min(self._ways(pieces, ways, end), key=lambda way: way.cost))
        best = ways[-1]
        return Repaired(self._tongue.joined(best.pieces), best.changes) if best.changes else Repaired(heard)

    def _ways(self, pieces: Sequence[str], ways: Sequence[_Way], end: int) -> Iterable[_Way]:
        """All ways to have dealt with the first so many pieces."""
        last, before = pieces[end - 1], ways[end - 1]
        kept = _KEPT if self._tongue.is_word(last) else 0.0
        yield _Way(before.cost + kept, (*before.pieces, last), before.changes)
        for start in range(max(0, end - self._longest - 1), end):
            part, before = tuple(pieces[start:end]), ways[start]
            if _folded(part) in self._known:
                doubt = self._tongue.doubt("".join(part))
                yield _Way(before.cost + doubt, (*before.pieces, *part), before.changes)
            elif len(meant := self._closed.get("".join(part), ())) != len(part) and meant:  # two words of one: bed room
                change = Change(self._tongue.joined(part), self._tongue.joined(meant), _SURE)
                yield _Way(before.cost - _KEPT, (*before.pieces, *meant), (*before.changes, change))
            elif (found := self._nearest(part)) is not None:
                meant, far, sure = found
                change = Change(self._tongue.joined(part), self._tongue.joined(meant), sure)
                yield _Way(before.cost + _TOUCHED + far, (*before.pieces, *meant), (*before.changes, change))

    def _nearest(self, part: tuple[str, ...]) -> tuple[tuple[str, ...], float, float] | None:
        """What sounds most like it, how far that is, and how sure it is."""
        if not all(map(self._tongue.is_word, part)):
            return None
        alone = [_folded((piece,)) for piece in part if not self._tongue.doubt(piece)]
        if any(one in self._others for one in alone) or (alone and all(one in self._known for one in alone)):
            return None
        sound = self._tongue.sound(part)
        near = sorted(
            (far, meant)
            for meant, other in self._sounds
            if (far := self._tongue.distance(sound, other)) <= _FAR and self._tongue.enough(meant, far)
        )
        if not near:
            return None
        far, meant = near[0]
        rival = any(other - far < _RIVAL for other, _ in near[1:])
        return meant, far, round((1 - far) * (_UNSURE if rival else _SURE), 3)


def _folded(pieces: Sequence[str]) -> tuple[str, ...]:
    return tuple(piece.casefold() for piece in pieces)
