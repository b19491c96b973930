"""Send a command, watch a mission, and say why it is where it is."""

import contextlib
import functools
import shlex
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualloop.cli.answering import Desk, can_be_asked
from dualloop.cli.arguments import Id, json_object
from dualloop.cli.asking import ask
from dualloop.cli.following import Follower, Frame, following
from dualloop.cli.output import Json, between, clean, machine, say, section
from dualloop.cli.pace import line
from dualloop.errors import Refusal
from frontend_loop.naming import placed
from frontend_loop.progress import of
from frontend_loop.why import lasting
from shared.sessions import TYPE
from shared.status import Priority, Status

if TYPE_CHECKING:
    from dualloop.client import Ack, Client

commands = typer.Typer()

Audio = Annotated[Path | None, typer.Option(metavar="FILE", help="What you say, as a WAV, FLAC or OGG file.")]


@commands.command()
def send(  # noqa: PLR0913  the options of the command
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="What you want, in words.", show_default=False)
    ] = None,
    *,
    type_: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Mission type; see: dualloop types ls.")
    ] = None,
    audio: Audio = None,
    payload: Annotated[str, typer.Option(metavar="JSON", help="A JSON object; - reads it from standard input.")] = "{}",
    locale: Annotated[str | None, typer.Option(help="Language of the text. Default: as it looks.")] = None,
    area: Annotated[str | None, typer.Option(help="Where you are, such as kitchen.")] = None,
    session: Annotated[str | None, typer.Option(help="Ties what you say together: questions, and cancel that.")] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the result; exit code 1 unless SUCCEEDED, or if nothing was done.")
    ] = False,
    priority: Annotated[Priority | None, typer.Option(help="Default: the type's.", show_default=False)] = None,
    deadline: Annotated[float | None, typer.Option(metavar="SECONDS", help="Default: the type's.")] = None,
    target: Annotated[str | None, typer.Option(help="What is acted on. Default: by the type's rule.")] = None,
    json: Json = False,
) -> None:
    """Send a command: TEXT in words, an --audio file, or a --type with its --payload."""
    if [text, type_, audio].count(None) != 2:
        raise Refusal('Say what you want in words, such as dualloop send "turn on the hall light", or give a --type.')
    body, recording = json_object(payload, "payload"), None if audio is None else _recorded(audio)
    sent: list[Ack] = []

    async def work(client: "Client") -> dict[str, Any] | None:
        options: Any = {"priority": priority, "deadline_s": deadline, "area": area, "session": session}
        if recording is not None:
            sent.append(await client.speak(recording, locale=locale, **options))
        elif type_ is None:
            sent.append(await client.say(str(text), locale=locale, target=target, **options))
        else:
            sent.append(await client.submit(type_, body, target=target, **options))
        if not wait:
            return None
        if json:
            return await _answered(client.wait, await client.wait(sent[0].correlation_id))
        with following(f"waiting for {sent[0].type}", events=False) as follower:
            if type_ is None:
                return await _talk(client, sent[0].correlation_id, follower, locale=locale, session=session)
            hear = functools.partial(followed, client, follower=follower)
            return await _answered(hear, await hear(sent[0].correlation_id))

    result = ask(work, "It goes on: only the waiting has ended.")
    if result is not None:
        end(result, json=json)
    else:
        _accepted(sent[0], json=json)


def _accepted(ack: "Ack", *, json: bool) -> None:
    if json:
        machine(ack)
        return
    say(f"Accepted {ack.type} as {ack.correlation_id}", whole=True)
    say(f"See it run: dualloop watch {ack.correlation_id}", "dim", whole=True)


def _recorded(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise Refusal(f"{file} cannot be read: {error.strerror}.") from error


async def _talk(
    client: "Client", id_: str, follower: Follower, *, locale: str | None, session: str | None
) -> dict[str, Any]:
    """The result of what was said in words; what it asks meanwhile is answered here, where somebody can."""

    async def tell(text: str) -> None:
        if session is None:
            await client.event(id_, "ANSWERED", {"text": text})
        else:
            await client.say(text, locale=locale, session=session)

    screen = can_be_asked(follower)
    desk = None if screen is None else Desk(screen, tell)
    try:
        first = await followed(client, id_, Aloud(follower, way_to_answer(id_, session), desk))
    finally:
        if desk is not None:
            desk.close()
    return await _answered(functools.partial(followed, client, follower=Aloud(follower)), first)


class Aloud:
    """Prints what a mission says before its end; of its progress nothing, since it says itself what it does."""

    def __init__(self, follower: Follower, answer: str = "", desk: Desk | None = None) -> None:
        """In front of `follower`; what it asks is answered at the desk, or as `answer` says, which is told then."""
        self._follower, self._answer, self._desk = follower, answer, desk

    def take(self, frame: Frame) -> None:
        """See `Follower`."""
        if frame["op"] != "event":
            return
        data = frame["data"] or {}
        said = data.get("spoken")
        if self._desk is not None:
            self._desk.see(frame)
        if isinstance(said, str) and said:
            say(said)
        self._follower.take(frame)
        if data.get("question") and self._desk is not None:
            self._desk.ask(frame)
        elif data.get("question") and self._answer:
            say(self._answer, "dim", whole=True)


def way_to_answer(id_: str, session: str | None) -> str:
    """From another terminal, where nobody can type into this one."""
    if session is None:
        return f'Answer from another terminal: dualloop missions event {id_} ANSWERED --data \'{{"text": "…"}}\''
    return f'Answer from another terminal: dualloop send "…" --session {shlex.quote(session)}'


async def _answered(wait: Callable[[str], Awaitable[dict[str, Any]]], result: dict[str, Any]) -> dict[str, Any]:
    """The end of the command that an utterance was an answer to; its own, if it was none."""
    answers = (result["result"] or {}).get("answers")
    return await wait(answers) if result["type"] == TYPE and isinstance(answers, str) else result


@commands.command()
def watch(
    id_: Id,
    *,
    after: Annotated[int, typer.Option("--after", metavar="SEQ", help="Skip events up to it.")] = 0,
    json: Json = False,
) -> None:
    """Show what happens to a mission, as it happens, up to its result."""
    replayed = Replayed()

    async def work(client: "Client") -> dict[str, Any]:
        if json:
            return await _to_the_result(client, id_, after, lambda frame: machine(frame, indent=None))
        with following("waiting", events=True) as follower:

            def take(frame: Frame) -> None:
                replayed.take(frame)
                follower.take(frame)

            return await _to_the_result(client, id_, after, take)

    result = ask(work, f"It goes on. See the rest: dualloop watch {id_}")
    end(result, json=json, indent=None, replayed=replayed.at)


class Replayed:
    """When it was run again, the last time, as far as its events say so.

    Attributes:
        at: None: it was not.
    """

    at: str | None = None

    def take(self, frame: Frame) -> None:
        """See `Follower`."""
        if frame["op"] == "event" and isinstance(data := frame["data"], dict) and data.get("event") == "replayed":
            self.at = frame["at"]


@commands.command()
def why(id_: Id, *, json: Json = False) -> None:
    """Say in one sentence what a mission waits for, held by whom, until when."""
    mission = ask(lambda client: client.mission(id_))
    if json:
        machine({"task_id": mission["task_id"], "why": mission["why"]})
    else:
        say(mission["why"])


async def _to_the_result(client: "Client", id_: str, after: int, take: Callable[[Frame], None]) -> dict[str, Any]:
    """Its frames are taken as they come; the last one is returned."""
    async with contextlib.aclosing(client.watch(id_, after)) as frames:
        async for frame in frames:
            if frame["op"] == "result":
                return frame
            take(frame)
    raise AssertionError("a watch ends with a result")


async def followed(client: "Client", id_: str, follower: Follower) -> dict[str, Any]:
    """The result; where no socket is to be had, it comes without what is to be seen before it."""
    from dualloop.client_faults import ClientProblem  # noqa: PLC0415  other commands start without it

    try:
        return await _to_the_result(client, id_, 0, follower.take)
    except ClientProblem:
        return await client.wait(id_)


def end(result: Mapping[str, Any], *, json: bool, indent: int | None = 2, replayed: str | None = None) -> None:
    """Print a result document; of one that was `replayed`, the time since then: it may have lain dead for days.

    Raises:
        Refusal: the mission has not SUCCEEDED, or what was said in words came to nothing.
    """
    status, problem = result["status"], _problem(result)
    if json:
        machine({name: value for name, value in result.items() if name != "op"}, indent=indent)
    else:
        spoken = _spoken(result)
        if spoken is not None:
            say(spoken, "bold")
        took = f"after {between(result['created_at'], result['finished_at'])}"
        if replayed is not None:
            took = f"after {between(replayed, result['finished_at'])}, counted from its replay"
        say(f"{status} {took}", "green" if status == Status.SUCCEEDED and problem is None else "yellow")
        say(result["task_id"], "dim")
        if spoken is not None:
            if result["freshness"] is not None:
                say(_seen(result["freshness"]), "dim")
        else:
            if (progress := of(result["progress"])) is not None:
                say(line(progress), "dim")
            section("Result", result["result"])
            section("Freshness", result["freshness"])
    if status != Status.SUCCEEDED:
        raise Refusal(clean(_ending(result)))
    if problem is not None:
        raise Refusal(clean(f"Nothing was done: {problem}."))


def _problem(result: Mapping[str, Any]) -> str | None:
    """Why words that were answered have begun nothing: `not_understood`, say. The answer is true, and no success."""
    told = result["result"]
    problem = told.get("problem") if result["type"] == TYPE and isinstance(told, Mapping) else None
    return problem if isinstance(problem, str) else None


def _spoken(result: Mapping[str, Any]) -> str | None:
    """The answer of one that was said in words; None: it was not, or ended without one."""
    told = result["result"]
    if result["type"] != TYPE or told is None or "text" not in told:
        return None
    return told["text"] or f"Heard already, as {told.get('same_as')}."


def _seen(freshness: Mapping[str, Any]) -> str:
    ago = lasting(freshness["age_ms"])
    return f"seen {ago} before it was said" + (", and after the act" if freshness["verified"] else "")


def _ending(result: Mapping[str, Any]) -> str:
    if error := result["error"]:
        told = placed(error, error["message"].rstrip("."))
        return f"{result['type']} FAILED with {error['code']} in {error['state']}: {told}."
    return f"{result['type']} was {result['status']}: {result['reason']}."
