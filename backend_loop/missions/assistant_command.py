"""`assistant.command`: what was said in words, done, and answered in the speaker's language by what was seen after it.

One utterance is one or more missions, side by side, or one after the other where it says so. What is not clear, or is
dangerous, is asked back: the mission waits, its question lies in the session, and the next utterance of the session
answers it, takes its place or takes it back. So an utterance is a command of its own, or a word to another one; then it
ends at once and says to which. Within a session they are understood in the order in which they came, since their target
is the session; while a command is carried out, or asks, it does not hold it.

What is asked of the session, and said to other missions, is done again by a worker that takes over, and counts once.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

from backend_loop.language import answers
from backend_loop.language.interpreters import interpreter
from backend_loop.language.meaning import Meaning, Wish
from backend_loop.mission import Mission, state
from backend_loop.missions import assistant_talk as talk
from backend_loop.missions.assistant_hearing import Recording, Speech, heard_as, to_be_asked, unheard, unspoken
from backend_loop.missions.assistant_words import Word, no_such_area, said
from backend_loop.missions.speech_transcribe import TYPE as HEARING
from backend_loop.outcomes import Fail, Go, Outcome, Stop, WaitFor, WaitForChildren
from backend_loop.sessions import ANSWERED, Question, Session
from backend_loop.toolbox import ChildMission, Toolbox
from shared.clock import now_ms, parse_rfc3339, rfc3339
from shared.sessions import TYPE
from shared.status import Priority, Reason

ASK_S: Final = 30.0
"""How long a question is open."""

HEAR_S: Final = 2.0
"""How much later an answer may arrive that was given in time."""

MOST_ASKED: Final = 3
"""How often one command asks back."""

LONGEST: Final = 1_000
"""Characters of an utterance."""

HEARING_S: Final = 30.0
CHILD_S: Final = 60.0
END_S: Final = 1.0
"""What children leave of this mission's deadline, so that it ends with a sentence."""


def _text_or_audio(schema: dict[str, Any]) -> None:
    schema["oneOf"] = [{"required": ["text"]}, {"required": ["audio"]}]


class AssistantCommand(Mission):
    """Understand what was said, do it, and answer in a sentence that is true when it is given."""

    type = TYPE
    priority = Priority.URGENT
    deadline_s = 180.0
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "RECEIVED": {"text": "INTERPRETING", "audio": "TRANSCRIBING"},
        "TRANSCRIBING": {"transcribed": "INTERPRETING", "told": "SUCCEEDED"},
        "INTERPRETING": {"understood": "EXECUTING", "asks": "ASKING", "told": "SUCCEEDED"},
        "ASKING": {ANSWERED: "INTERPRETING", "timed_out": "INTERPRETING"},
        "EXECUTING": {"executed": "ANSWERING"},
        "ANSWERING": {"answered": "SUCCEEDED"},
    }

    class Payload(BaseModel):
        """The utterance."""

        model_config = ConfigDict(extra="allow", json_schema_extra=_text_or_audio)

        text: Annotated[str, Field(min_length=1, max_length=LONGEST, pattern=r"\S")] = Field(
            "", description="what was said or typed", examples=["打开客厅空调，调到26度"]
        )
        audio: Recording | None = Field(None, description="what was said; send it to /v1/voice, which writes this")
        speech: Speech | None = Field(None, description="what was heard of the text; the socket /v1/voice says it")
        locale: str | None = Field(
            None,
            max_length=35,
            pattern=r"^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$",
            description="language of the speaker, BCP 47; default: that of the session, else as the text looks",
        )

        @model_validator(mode="after")
        def _one_of_them(self) -> "AssistantCommand.Payload":
            if (self.text == "") == (self.audio is None):
                raise ValueError("say text, or audio")
            return self

    class Context(BaseModel):
        """What was understood so far, and what is asked; `asked` counts how often. `wanted_at`: since the answer."""

        language: str = "en"
        speech: Speech | None = None
        meaning: Meaning | None = None
        question: talk.Kind | None = None
        asked: int = 0
        wanted_at: str | None = None

    @state("RECEIVED")
    async def receive(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Text is ready to be understood; a recording has to be listened to before."""
        if (speech := tools.payload.speech) is not None and tools.payload.audio is None:
            tools.context.speech = speech.model_copy(update={"text": tools.payload.text})
        return Go("text" if tools.payload.audio is None else "audio")

    @state("TRANSCRIBING", timeout_s=10, holds=True)
    async def transcribe(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Have the recording listened to, in the language of the speaker."""
        audio, end = tools.payload.audio, next((one for one in tools.children if one.type == HEARING), None)
        assert audio is not None, "RECEIVED has seen it"  # noqa: S101  the table says so
        if end is not None and end.ended:
            return await _settled(tools, _transcribed(tools, end))
        await _meet(tools)
        await _did(tools, tools.task_id)  # as far as is known: who says "cancel that" while it is listened to means it
        wanted = {"recording": tools.task_id, "rate": audio.rate, "language": tools.context.language}
        tools.spawn(HEARING, wanted, name="hearing", deadline_s=min(HEARING_S, max(0.5, tools.remaining_s() - END_S)))
        return WaitForChildren("all", on_failure="continue")

    @state("INTERPRETING", timeout_s=10)
    async def interpret(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """A command of its own, a word to another one, or the answer to the question that this one has asked."""
        if tools.context.question is not None:
            return await _answered(tools, tools.context.question)
        return await _settled(tools, await _understood(tools))

    @state("ASKING", acting=True, timeout_s=10)
    async def ask(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Open the question in the session, and wait for its next utterance, or for whoever tells the event."""
        meaning, session = _meaning(tools), tools.envelope.session
        within_s = min(ASK_S, max(0.0, tools.remaining_s() - HEAR_S - END_S))
        if session:
            asked = {"kind": tools.context.question, "meaning": meaning.model_dump(mode="json")}
            await tools.sessions.ask(tools.envelope.tenant, session, tools.key, asked, within_s)
        tools.progress(0, message=answers.question(meaning, tools.context.language))
        return WaitFor("ANSWERED", within_s + HEAR_S)

    @state("EXECUTING", acting=True, timeout_s=10)
    async def execute(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Begin what is to begin now; go on once nothing is left."""
        meaning = _meaning(tools)
        ends = _ends(tools, meaning)
        begin = talk.due(meaning, ends)
        if len(ends) > 1:
            tools.progress(sum(end is not None for end in ends), len(ends))
        if not begin:
            return Go("executed")
        for n in begin:
            wish, more = meaning.wishes[n], {}
            if wish.mission == "device.control":
                more = {"asked_at": tools.context.wanted_at or tools.envelope.created_at}
            within_s = min(CHILD_S, max(0.5, tools.remaining_s() - END_S))
            tools.spawn(wish.mission, {**wish.payload, **more}, name=_name(n), deadline_s=within_s)
        return WaitForChildren("all", on_failure="continue")

    @state("ANSWERING")
    async def answer(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Say what became of it, by what was seen."""
        meaning = _meaning(tools)
        ends = _ends(tools, meaning)
        text = answers.answer(meaning, ends, tools.context.language)
        return talk.ended(meaning, ends, _result(tools, text, devices=talk.rows(meaning, ends)), now_ms())


Tools = Toolbox[AssistantCommand.Payload, AssistantCommand.Context]


def _text(tools: Tools) -> str:
    """What was said, in words."""
    speech = tools.context.speech
    return tools.payload.text if speech is None else speech.text


def _transcribed(tools: Tools, end: ChildMission) -> Outcome:
    """What follows from what was heard."""
    if not end.succeeded:
        word, code, more = unheard(end)
        why = str((end.error or {}).get("message") or end.reason or "the recording was not listened to")
        return Fail(why, code, _result(tools, said(word, tools.context.language), **more))
    speech = Speech.model_validate(end.result)
    tools.context.speech = speech.model_copy(update={"text": speech.text[:LONGEST]})
    if not speech.text.strip():
        word = unspoken(speech)
        return _word(tools, word, problem=word)
    return Go("transcribed", data={"heard": speech.heard, "text": speech.text, "confidence": speech.confidence})


def _meaning(tools: Tools) -> Meaning:
    meaning = tools.context.meaning
    assert meaning is not None, "INTERPRETING has understood it"  # noqa: S101  the table says so
    return meaning


def _name(n: int) -> str:
    return f"wish {n + 1}"


def _ends(tools: Tools, meaning: Meaning) -> list[ChildMission | None]:
    children = {child.name: child for child in tools.children}
    return [children.get(_name(n)) for n in range(len(meaning.wishes))]


async def _meet(tools: Tools) -> Session:
    """The session, if there is one; the language is settled by it."""
    envelope, session = tools.envelope, Session()
    if envelope.session:
        session = await tools.sessions.meet(
            envelope.tenant,
            envelope.session,
            tools.task_id,
            area=envelope.area if talk.area_of(envelope.area, tools.home) else None,
            language=tools.payload.locale,
        )
    locale = tools.payload.locale or session.language
    if locale is None and tools.payload.audio is not None:
        locale = next(iter(tools.home.languages), None)  # what was said does not show it before it was heard
    tools.context.language = talk.language_of(locale, tools.payload.text, tools.home.languages)
    return session


async def _read(tools: Tools, text: str, area: str | None, last: Sequence[Wish] = ()) -> Meaning:
    """What a text means; in a thread, since a large home takes tens of milliseconds, and the first sentence more."""
    home, language = tools.home, tools.context.language
    return await asyncio.to_thread(lambda: interpreter(home).interpret(text, language, area=area, last=last))


async def _understood(tools: Tools) -> Outcome:
    """What follows from an utterance that answers no question of its own."""
    session = await _meet(tools)
    area = talk.area_of(tools.envelope.area or session.area, tools.home)
    last = talk.spoken_of(session.last, parse_rfc3339(tools.envelope.created_at), tools.home)
    read = await _read(tools, _text(tools), area, last)
    meaning = heard_as(tools.context.speech, read)
    if session.question is not None and meaning.control != "cancel":
        told = await _to_question(tools, session.question, meaning)
        if told is not None:
            return told
    if meaning.control == "cancel":
        return await _cancel(tools, session)
    if meaning.control is not None:
        return _word(tools, "nothing_asked")
    if (same := await _heard_elsewhere(tools)) is not None:
        if talk.is_command(meaning):  # the next "cancel that" means this one, whichever microphone hears it
            await _did(tools, same, await _wherever(tools))
        return _same(tools, same)
    return await _begin(tools, meaning)


async def _wherever(tools: Tools) -> Meaning:
    """What an utterance means to each microphone that hears it; what it leaves out may be another thing to each."""
    read = await _read(tools, _text(tools), None)
    return read if all(wish.mission == "device.control" for wish in read.wishes) else Meaning()


async def _settled(tools: Tools, outcome: Outcome) -> Outcome:
    """The outcome; a recording that holds no command was taken for one until now."""
    ends = isinstance(outcome, Fail) or (isinstance(outcome, Go) and outcome.event == "told")
    if ends and tools.payload.audio is not None and (session := tools.envelope.session):
        await tools.sessions.undid(tools.envelope.tenant, session, tools.task_id)
    return outcome


async def _fill(tools: Tools, meaning: Meaning, text: str) -> Meaning:
    home = tools.home
    return await asyncio.to_thread(lambda: interpreter(home).fill(meaning, text))


async def _begin(tools: Tools, meaning: Meaning) -> Outcome:
    """What follows from a command: what was asked for is done, asked back, or not known."""
    context = tools.context
    context.meaning, context.question = meaning, None
    kind = talk.ASKED_BACK.get(meaning.problem)
    if not talk.is_command(meaning):
        return _told(tools, answers.question(meaning, context.language), **talk.unclear(meaning))
    if kind == "which_area" and (named := tools.envelope.area) and talk.area_of(named, tools.home) is None:
        there = {"problem": "no_such_area", "candidates": [area.id for area in tools.home.areas]}
        return _told(tools, no_such_area(named, tools.home, context.language), **there)
    await _did(tools, tools.task_id, meaning)
    if kind is not None or to_be_asked(context.speech, meaning):
        return _ask(tools, kind or "confirm")
    return _go(tools, meaning)


async def _did(tools: Tools, task_id: str, meaning: Meaning | None = None) -> None:
    """The session's last command, and what it is about, unless that is not known yet."""
    if session := tools.envelope.session:
        at_ms = parse_rfc3339(tools.context.wanted_at or tools.envelope.created_at)
        it = None if meaning is None else talk.about(meaning, at_ms)
        await tools.sessions.did(tools.envelope.tenant, session, task_id, it)


def _go(tools: Tools, meaning: Meaning) -> Go:
    """It is clear what to do: say so at once."""
    tools.context.question = None
    return Go("understood", data={"spoken": answers.ack(meaning, tools.context.language)})


def _ask(tools: Tools, kind: talk.Kind) -> Go | Stop:
    context, meaning = tools.context, _meaning(tools)
    context.question, context.asked = kind, context.asked + 1
    spoken = answers.question(meaning, context.language)
    if context.asked > MOST_ASKED:
        return Stop(Reason.EXPIRED, _result(tools, said("no_answer", context.language), **talk.unclear(meaning)))
    return Go("asks", data={"spoken": spoken, "question": kind, "candidates": meaning.candidates})


async def _answered(tools: Tools, kind: talk.Kind) -> Outcome:
    """What follows from the answer to the question of this command, or from none."""
    context, meaning, received = tools.context, _meaning(tools), tools.received
    if not isinstance(received, Mapping):
        return Stop(Reason.EXPIRED, _result(tools, said("no_answer", context.language), **talk.unclear(meaning)))
    if received.get("withdrawn"):
        return Stop(Reason.SUPERSEDED, _result(tools, said("withdrawn", context.language), **talk.unclear(meaning)))
    text = received.get("text")
    if not isinstance(text, str) or len(text) > LONGEST:
        return _ask(tools, kind)  # an event of somebody's own
    context.wanted_at = rfc3339(now_ms())  # a hand before that is older than the wish
    word = (await _read(tools, text, meaning.area)).control
    if word in {"no", "cancel"}:
        return Stop(Reason.REQUESTED, _result(tools, said("left_alone", context.language)))
    if kind == "confirm":
        return _go(tools, meaning) if word == "yes" else _ask(tools, kind)
    filled = await _fill(tools, meaning, text)
    return await _begin(tools, filled) if filled.helps(kind) else _ask(tools, kind)


async def _to_question(tools: Tools, question: Question, meaning: Meaning) -> Outcome | None:
    """What an utterance is to the open question of its session; None: a command of its own, like any other."""
    kind, asked = question.asked["kind"], Meaning.model_validate(question.asked["meaning"])
    filled = None if kind == "confirm" else await _fill(tools, asked, _text(tools))
    bearing, speech = talk.bears(kind, meaning, filled), tools.context.speech
    doubtful = meaning.control == "yes" and speech is not None and speech.unsure
    if bearing == "leaves" or doubtful:
        again = answers.question(asked, tools.context.language)
        text = f"{said('not_understood', tools.context.language)} {again}"
        return _told(tools, text, problem="not_understood", asked_by=question.task_id)
    tenant, session = tools.envelope.tenant, str(tools.envelope.session)
    if not await tools.sessions.take(tenant, session, question.name, tools.task_id):
        return None
    if bearing == "withdraws":
        await tools.sessions.withdraw(question.name, tools.task_id)
        return None
    if not await tools.sessions.answer(question.name, tools.task_id, {"text": _text(tools)}):
        return None  # it has ended meanwhile
    await _heard_elsewhere(tools)  # whoever else has heard this answer has heard no command
    if meaning.control == "no":
        return _word(tools, "left_alone", answers=question.task_id)
    return _told(tools, answers.ack(filled or asked, tools.context.language), answers=question.task_id)


async def _cancel(tools: Tools, session: Session) -> Outcome:
    """Cancel the last command of the session, and no other."""
    last = talk.before(session.commands, tools.task_id)
    if last is None:
        return _word(tools, "nothing_to_cancel")
    if (same := await _heard_elsewhere(tools, last)) is not None:
        return _same(tools, same)
    done = await tools.sessions.cancel(last, tools.task_id)
    return _word(tools, "cancelled", cancelled=last) if done else _word(tools, "too_late")


async def _heard_elsewhere(tools: Tools, of: str = "") -> str | None:
    """The command that this one is the same as: two satellites have heard one utterance.

    `of`: the command that it is about; of two who say "cancel that" each means his own.
    """
    envelope = tools.envelope
    if not envelope.session:
        return None
    at_ms = parse_rfc3339(envelope.created_at)
    first = await tools.sessions.hear(envelope.tenant, f"{_text(tools)} {of}", envelope.session, tools.task_id, at_ms)
    return None if first == tools.task_id else first


def _told(tools: Tools, text: str, **more: Any) -> Go:
    """The end of an utterance that has begun nothing itself."""
    return Go("told", _result(tools, text, **more))


def _word(tools: Tools, word: Word, **more: Any) -> Go:
    return _told(tools, said(word, tools.context.language), **more)


def _same(tools: Tools, first: str) -> Go:
    """Nothing is said by who was not the first to hear it."""
    return Go("told", {**_result(tools, ""), "spoken": None, "same_as": first})


def _result(tools: Tools, text: str, **more: Any) -> dict[str, Any]:
    meaning, speech = tools.context.meaning, tools.context.speech
    told = None if meaning is None else meaning.model_dump(mode="json", exclude={"heard", "problem", "candidates"})
    heard: dict[str, Any] = {"heard": tools.payload.text}
    if tools.payload.audio is not None or speech is not None:
        heard = {"heard": speech and speech.heard, "speech": speech and speech.model_dump(mode="json")}
    return {"text": text, "spoken": text, **heard, "meaning": told, "devices": [], **more}
