"""What a sentence means in one home. No I/O once a language's grammar is loaded: by its first sentence, or `warm`."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Final

from backend_loop.language import wishes
from backend_loop.language.amounts import amount, put
from backend_loop.language.clauses import (
    MOST_CLAUSES,
    Clauses,
    apart,
    bare,
    control,
    corrected,
    exceptions,
    outside,
    parts,
    phrase,
)
from backend_loop.language.echo import echoed
from backend_loop.language.frame import Frame, Verb, go_together, together
from backend_loop.language.grammar import Grammar, grammar
from backend_loop.language.meaning import Meaning, Wish
from backend_loop.language.names import NameBook, book
from backend_loop.language.numbers import digits
from backend_loop.language.reference import NOBODY, Around, referred
from backend_loop.language.spelling import respelled
from backend_loop.language.text import LONGEST, chinese, fold
from backend_loop.language.things import Puzzle, Things
from backend_loop.language.tongues import TONGUES, Tongue
from backend_loop.language.unread import reason, unread
from shared.home import Inventory

_PAUSE: Final = re.compile(r"\s*[,，、]+\s*")
READ: Final = 256
"""Clauses whose reading is kept: what is taken apart in several ways has the same piece in many of them."""

_UNREAD: Final = ("not_understood", "no_such_device")
_ASKED: Final = ("which_area", "ambiguous", "how_much")


class Interpreter:
    """Reads sentences in one home, in any language."""

    def __init__(self, inventory: Inventory) -> None:
        """An inventory never changes; for another one make another interpreter."""
        self._home = inventory
        self._readers = dict[str, _Reader]()

    def warm(self, languages: Iterable[str] = ()) -> None:
        """Load what the first sentence would else wait for."""
        for language in languages or self._home.languages:
            self._reader(language).interpret("?", Around())

    def interpret(self, text: str, language: str, *, area: str | None = None, last: Sequence[Wish] = ()) -> Meaning:
        """What this means; takes about 10 ms, and whatever was said it answers.

        Args:
            text: what was heard.
            language: a tag like ``en``, ``zh-CN``; one that has no sentences understands nothing.
            area: id of the area where it was said.
            last: what the command before it was about, if that was only just: what "it" may mean.
        """
        around = Around(area, last=tuple(last))
        meaning = self._reader(language).interpret(text, around)
        if meaning.problem in _UNREAD and (right := self._reader(language).respelled(meaning, around)) is not None:
            meaning = right
        if meaning.problem == "not_understood" and (other := self._looks_like(text, language)) is not None:
            elsewise = self._reader(other).interpret(text, around)
            return meaning if elsewise.problem == "not_understood" and elsewise.reason is None else elsewise
        return meaning

    def _looks_like(self, text: str, language: str) -> str | None:
        """The other language of this home in whose signs it is written, whatever language was told."""
        family = "zh" if any(chinese(sign) for sign in text[:LONGEST]) else "en"
        if language.split("-", maxsplit=1)[0] == family:
            return None
        return next((other for other in self._home.languages if other.split("-")[0] == family), None)

    def fill(self, meaning: Meaning, area_or_entity_text: str) -> Meaning:
        """What was meant, now that the question which one has an answer.

        An answer that is a sentence of its own counts as that; one that is nothing leaves the question open.
        """
        return self._reader(meaning.language).fill(meaning, area_or_entity_text)

    def _reader(self, language: str) -> "_Reader":
        if (reader := self._readers.get(language)) is None:
            reader = self._readers[language] = _Reader(self._home, language)
        return reader


class _Reader:
    """One home in one language."""

    def __init__(self, home: Inventory, language: str) -> None:
        self._language = language
        self._grammar: Grammar = grammar(language)
        self._tongue: Tongue = TONGUES.get(language.split("-", maxsplit=1)[0], TONGUES["en"])
        self._book: NameBook = book(home, language, self._grammar.kinds)
        self._things = Things(home, self._book, language)
        self._scenes = {scene.id: scene for scene in home.scenes}
        self._known = lru_cache(maxsize=READ)(lambda text, stock: self._grammar.read(text, self._book, stock=stock))
        self._phrases = {phrase(said, self._tongue): scene for said, scene in self._book.phrases.items()}

    def interpret(self, heard: str, around: Around) -> Meaning:
        said = Meaning(heard=heard, language=self._language, area=around.area)
        if len(heard) > LONGEST:
            return said.model_copy(update={"heard": heard[:LONGEST], "problem": "not_understood"})
        whole = self._digits(fold(heard, self._language))
        text = bare(whole, self._tongue, self._book)
        if word := control(text, self._tongue) or control(whole, self._tongue):
            return said.model_copy(update=_controlled(word, text))
        if self._phrase(whole) is not None:  # one that begins as courtesies do
            text = whole
        text = self._as_asked(whole, text)
        said = said.model_copy(update={"understood": text})
        around = replace(around, again=self._tongue.again.search(whole) is not None)
        try:
            found, ordered = self._read(whole, text, around)
        except Puzzle as puzzle:
            return said.model_copy(
                update={
                    "problem": puzzle.problem,
                    "candidates": puzzle.candidates,
                    "unknown": puzzle.unknown,
                    "reason": reason(puzzle, text, self._tongue, known=self._knows(text)),
                    "limits": puzzle.limits,
                    "names": wishes.names([], puzzle.candidates, self._things),
                    "confidence": 0.0 if puzzle.problem == "not_understood" else 1.0,
                }
            )
        return said.model_copy(
            update={
                "wishes": found,
                "ordered": ordered,
                "intents": list(dict.fromkeys(wishes.intent(wish) for wish in found)),
                "confidence": 1.0,
                "names": wishes.names(found, [], self._things),
                "confirm": any(wishes.dangerous(wish, self._things) for wish in found),
            }
        )

    def _knows(self, text: str) -> bool:
        return bool(self._book.spans(text)) or self._grammar.names_kind(text)

    def respelled(self, meaning: Meaning, around: Around) -> Meaning | None:
        """What it means once its spelling is put right; None: that does not help."""
        text = respelled(self._digits(fold(meaning.heard[:LONGEST], self._language)), self._words)
        read = None if text is None else self.interpret(text, around)
        if read is None or read.problem in _UNREAD or read.control is not None:
            return None
        return read.model_copy(update={"heard": meaning.heard, "repaired": True})

    @cached_property
    def _words(self) -> frozenset[str]:
        """All that can be said here."""
        named = (*self._book.devices, *self._book.areas, *self._book.scenes)
        return self._grammar.words | {word for name in named for word in name.split(" ")}

    def _as_asked(self, whole: str, text: str) -> str:
        """The question that a few words with a question mark are; with a courtesy they are a command all the same."""
        said = whole.rstrip(" ?？")
        if not whole.rstrip().endswith(("?", "？")) or not said.endswith(text):
            return text
        question = self._tongue.asked.format(text)
        frame = self._alone(question, stock=False)
        return question if frame is not None and frame.verb == Verb.LOOK else text

    def fill(self, meaning: Meaning, answer: str) -> Meaning:
        text = bare(self._digits(fold(answer[:LONGEST], self._language)), self._tongue, self._book)
        named = self._tongue.article.sub("", text)
        if meaning.problem == "no_such_device" and meaning.unknown:
            alone = self._alone(named)
            if alone is not None and alone.verb == Verb.BARE and meaning.unknown in meaning.understood:
                return self.interpret(meaning.understood.replace(meaning.unknown, named, 1), Around(meaning.area))
        elif meaning.problem == "how_much":
            return self._so_much(meaning, answer, text)
        elif meaning.problem is not None and (chosen := self._chosen(meaning, text)):
            return self.interpret(meaning.heard, Around(meaning.area, chosen))
        anew = self.interpret(answer, Around(meaning.area))
        return meaning if anew.problem == "not_understood" else anew

    def _so_much(self, meaning: Meaning, answer: str, text: str) -> Meaning:
        """The amount alone, or a sentence that says it of the same device."""
        if (much := amount(text, self._tongue)) is not None:
            return self.interpret(meaning.heard, Around(meaning.area, frozenset(meaning.candidates), much))
        anew = self.interpret(answer, Around(meaning.area))
        told = {wish.entity for wish in anew.wishes if wish.mission == "device.control"}
        return anew if told and told <= set(meaning.candidates) else meaning

    def _chosen(self, meaning: Meaning, text: str) -> frozenset[str]:
        """Of the candidates the ones that an answer names."""
        candidates = frozenset(meaning.candidates)
        if self._tongue.all.match(text):
            return candidates
        alone = self._named_alone(text) if text else None
        read = [alone] if alone else [self._named_alone(part) for part in parts(text, self._tongue, self._book).texts]
        if any(frame is None or frame.verb != Verb.BARE for frame in read):
            return NOBODY
        return candidates & frozenset().union(*(self._named(frame, candidates) for frame in read if frame is not None))

    def _named(self, frame: Frame, candidates: frozenset[str]) -> frozenset[str]:
        """The areas and entities that an answer may mean: "the kitchen" is all in it, a lamp is also its room."""
        if frame.every and frame.area is None:
            return candidates
        if frame.kind is not None and frame.area is None:
            return frozenset(self._things.of_kind(frame.kind))
        entries = self._things.entries
        entities = self._book.devices.get(frame.name or "", NOBODY)
        areas = {frame.area} | {entries[entity].area for entity in entities}
        within = {one for one in candidates if one in entries and entries[one].area == frame.area is not None}
        return entities | within | {area for area in areas if area is not None}

    def _digits(self, text: str) -> str:
        return outside(text, self._book.spans(text), lambda gap: digits(gap, self._language))

    def _read(self, whole: str, text: str, around: Around) -> tuple[list[Wish], bool]:
        return self._echoed(whole, text, around) or self._corrected(text, around) or self._wishes(text, around)

    def _echoed(self, whole: str, text: str, around: Around) -> tuple[list[Wish], bool] | None:
        """What is told to somebody else, too: "the bedroom as well"; None: it is a sentence like any other."""
        said = list(self._tongue.too.finditer(whole))
        strongly = any(one["weak"] is None for one in said)
        told = self._told(self._tongue.too.sub("", text), around, strongly=strongly) if said else None
        if told and self._tongue.wonders.search(whole) and any(wish.mission != "device.query" for wish in told[0]):
            raise Puzzle("not_understood")  # whether it is so, or is to be so
        return told

    def _told(self, who: str, around: Around, *, strongly: bool) -> tuple[list[Wish], bool] | None:
        """What somebody is told of whom nothing else is said than who it is."""
        if not around.last or self._tongue.later.search(who):
            return None
        read = [self._named_alone(part) for part in parts(who, self._tongue, self._book).texts]
        frames = [frame for frame in read if frame is not None]
        told = echoed(frames, around, self._things, strongly=strongly) if len(frames) == len(read) else []
        if not told:
            return None
        try:
            found = [wish for frame in told for wish in self._of(frame, Around(around.area))]
        except Puzzle as puzzle:
            raise Puzzle("not_understood" if puzzle.problem in _ASKED else puzzle.problem, puzzle.candidates) from None
        return found, _again(found)

    def _corrected(self, text: str, around: Around) -> tuple[list[Wish], bool] | None:
        """What is said instead of what was said before it: "… to 24, no, 25"; None: nothing was taken back."""
        said = corrected(text, self._tongue, self._book)
        if said is None or self._tongue.later.search(text):
            return None
        try:
            before, _ = self._wishes(said[0], around)
        except Puzzle as puzzle:
            if puzzle.problem not in _ASKED:
                return None
            before = []
        if control(said[1], self._tongue):
            raise Puzzle("not_understood")  # "no, stop" stops no music
        around = replace(around, last=tuple(before), again=True)
        return self._told(said[1], around, strongly=False) or self._wishes(said[1], around)

    def _wishes(self, text: str, around: Around) -> tuple[list[Wish], bool]:
        whole = self._alone(text, stock=False)
        clauses = Clauses((text,))
        if whole is not None and whole.verb != Verb.BARE:
            frames: Sequence[Frame] = [whole]
        elif any(pattern.match(text) for pattern in self._tongue.but) and not self._tongue.contrary.search(text):
            frames = [self._all_but(text)]
        else:
            clauses = parts(text, self._tongue, self._book)
            try:
                frames = self._frames(clauses)
            except Puzzle:
                if (said := self._paused(text)) is None:
                    raise
                frames = said
        if any(frame.verb == Verb.BARE or (frame.stopped and frame.kind in ("cover", "lock")) for frame in frames):
            raise Puzzle("not_understood")  # to be asked which is of no use where it can be told nothing
        if any(frame.borrowed for frame in frames):  # "turn it off, the hall light"
            around = replace(around, last=())
        around = replace(around, felt=any(map(self._tongue.aside.match, clauses.texts)))
        found = list[Wish]()
        for frame in frames:
            found += self._of(frame, around)
        if not found:
            raise Puzzle("not_understood")
        distinct = list({(str(wish.payload), wish.asks): wish for wish in found}.values())
        return distinct, len(distinct) > 1 and (clauses.then or _again(distinct))

    def _frames(self, clauses: Clauses) -> list[Frame]:
        if len(clauses.texts) > MOST_CLAUSES:
            raise Puzzle("not_understood")
        texts = [text for text in clauses.texts if not self._tongue.aside.match(text)]
        read = [frame for clause in texts for frame in self._run_on(clause)]
        frames = together(read)
        if frames is None:
            raise Puzzle("not_understood")
        return frames

    def _paused(self, text: str) -> list[Frame] | None:
        """One clause in which the speaker stopped for a moment: "study light, on"."""
        joined = _PAUSE.sub("" if chinese(text[:1]) else " ", text)
        frame = self._alone(joined, stock=False) if joined != text else None
        return [frame] if frame is not None and frame.verb != Verb.BARE else self._loose(text)

    def _all_but(self, text: str) -> Frame:
        """What is for all but some; who is left out must be as clear as what is wanted."""
        for said, left_out in exceptions(text, self._tongue, self._book):
            rest, but = self._alone(said), [self._named_alone(one) for one in left_out]
            named = tuple(frame for frame in but if frame is not None and frame.verb == Verb.BARE)
            if rest is not None and rest.kind == "others" and named:
                blinds = rest.verb in (Verb.OPEN, Verb.CLOSE)
                rest = replace(rest, kind=named[0].kind or named[0].own_kind or ("cover" if blinds else "light"))
            if rest is not None and rest.verb != Verb.BARE and len(named) == len(but):
                return replace(rest, every=True, but=named)
        raise Puzzle("not_understood")

    def _run_on(self, text: str) -> list[Frame]:
        """One clause, or several that nothing stands between: a recogniser hears no comma."""
        if (frame := self._alone(text)) is not None:
            return [frame]
        for pieces in apart(text, self._tongue, self._book, self._grammar.kinds_at(text)):
            read = [self._alone(piece, stock=False) for piece in pieces if not self._tongue.aside.match(piece)]
            frames = [frame for frame in read if frame is not None]
            if len(frames) == len(read) and go_together(frames):
                return frames
        if (loose := self._loose(text)) is not None:
            return loose
        raise unread(text, self._tongue, self._things)

    def _loose(self, text: str) -> list[Frame] | None:
        """What its words say in whatever order, unless it is put off."""
        return None if self._tongue.later.search(text) else self._grammar.loose.read(text, self._book)

    def _alone(self, text: str, *, stock: bool = True) -> Frame | None:
        """One clause by itself: a scene's phrase, or a sentence of the grammar."""
        if (scene := self._phrase(text)) is not None:
            return Frame(Verb.SCENE, scene=scene)
        frame = self._known(text, stock)
        if frame is not None and frame.it is not None and frame.verb != Verb.LOOK and self._tongue.told_of.match(text):
            return None  # 他关了: somebody has done so
        return frame

    def _named_alone(self, text: str) -> Frame | None:
        """Somebody by name: "the bedroom one", whose last word was taken for a number, too."""
        frame = self._alone(text)
        if (frame is None or frame.verb != Verb.BARE) and text.endswith(" 1"):
            return self._alone(text.removesuffix(" 1"))
        return frame

    def _phrase(self, text: str) -> str | None:
        """The scene that a sentence of its own runs."""
        return self._book.phrases.get(text) or self._phrases.get(phrase(text, self._tongue))

    def _of(self, frame: Frame, around: Around) -> list[Wish]:
        if frame.verb == Verb.SCENE:
            return [wishes.scene(self._scenes[frame.scene])] if frame.scene else []
        frame, entities = referred(frame, around, self._things)
        if not entities and not frame.thing and frame.area is None and not self._says_enough(frame):
            raise Puzzle("not_understood")
        entities = entities or self._things.meant(frame, around.area, around.chosen)
        if frame.verb == Verb.LOOK:
            return wishes.looks(frame, entities, self._things)
        try:
            return wishes.acts(frame, entities)
        except Puzzle as puzzle:
            if puzzle.reason != "relative":
                raise
            if around.much is None:
                raise Puzzle("how_much", entities) from None
            return wishes.acts(put(frame, around.much), entities)

    def _says_enough(self, frame: Frame) -> bool:
        """What is wanted tells of which kind the device is."""
        return bool(frame.aspect or frame.degrees or frame.mode or frame.number is not None) or frame.verb in (
            Verb.PLAY,
            Verb.PAUSE,
            Verb.LOCK,
            Verb.UNLOCK,
        )


def _controlled(word: str, text: str) -> dict[str, object]:
    intents = ["HassNevermind"] if word == "cancel" else []
    return {"control": word, "understood": text, "confidence": 1.0, "intents": intents}


def _again(found: Sequence[Wish]) -> bool:
    """One device twice: the second waits for the first."""
    entities = [wish.entity for wish in found if wish.entity is not None and wish.mission == "device.control"]
    return len(set(entities)) < len(entities)
