"""Frames of the socket: a client's, taken apart; the server's, put together. Events and results are never parsed."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import to_json

from frontend_loop.reading import invalid, read_json
from shared.errors import Problem

OPS: Final = ("submit", "watch", "unwatch", "cancel", "ping")
DRAINING: Final = b'{"op":"draining"}'
INSTANCE: Final = "/v1/ws"

_LONGEST_REF: Final = 200
_FARTHEST_SEQ: Final = 2**53

Ref = str | int | None


@dataclass(frozen=True, slots=True)
class Frame:
    """A client's frame: what to do, the client's own name for it, and the rest."""

    op: str
    ref: Ref
    fields: dict[str, Any]

    def mission(self) -> str:
        """The id that it is about: a root's ``correlation_id``, or the ``task_id`` of any mission.

        Raises:
            Problem: 422, none is given.
        """
        found = self.fields.get("task_id", self.fields.get("correlation_id"))
        if not isinstance(found, str):
            raise invalid([{"pointer": "/correlation_id", "detail": f"{self.op} needs the id of a mission, a text"}])
        return found

    def after_seq(self) -> int:
        """The events up to this one are known already; default: none are.

        Raises:
            Problem: 422.
        """
        value = self.fields.get("after_seq")
        if value is None:
            return 0
        if type(value) is not int or not 0 <= value <= _FARTHEST_SEQ:
            raise invalid(
                [{"pointer": "/after_seq", "detail": "the seq of the last event seen, a whole number from 0"}]
            )
        return value


class BadFrameError(Exception):
    """A frame that cannot be carried out, with the problem that says why and the `ref` it gave, if one was legible."""

    def __init__(self, problem: Problem, ref: Ref = None) -> None:
        """As told."""
        super().__init__(str(problem))
        self.problem, self.ref = problem, ref


def read_frame(text: str | None, max_depth: int, ops: Collection[str] = OPS) -> Frame:
    """A frame with one of these ops from a text message; None: the message was binary.

    Raises:
        BadFrameError: with what is wrong.
    """
    if text is None:
        raise BadFrameError(Problem("bad_frame", "frames are text: JSON objects with an op"))
    try:
        value = read_json(text.encode(), max_depth + 1)  # the frame is one level around the command
    except Problem as problem:
        raise BadFrameError(problem) from None
    if not isinstance(value, dict):
        raise BadFrameError(Problem("bad_frame", 'a frame is a JSON object: {"op": "…"}'))
    ref, op = value.get("ref"), value.get("op")
    if not (ref is None or type(ref) is int or (isinstance(ref, str) and len(ref) <= _LONGEST_REF)):
        raise BadFrameError(Problem("bad_frame", f"ref is a text of at most {_LONGEST_REF} characters, or an integer"))
    if not isinstance(op, str) or op not in ops:
        raise BadFrameError(Problem("bad_frame", f"op is one of {', '.join(ops)}"), ref)
    return Frame(op, ref, value)


def _object(op: str, ref: Ref) -> bytes:
    """A frame's beginning, up to the comma after its ref."""
    return b'{"op":"%b","ref":%b,' % (op.encode(), to_json(ref))


def ack(ref: Ref, document: bytes) -> bytes:
    """What was asked for has been done; `document` is a JSON object that is not empty."""
    return _object("ack", ref) + document[1:]


def pong(ref: Ref) -> bytes:
    """The answer to a ping."""
    return _object("pong", ref)[:-1] + b"}"


def error(ref: Ref, problem: Problem, instance: str = INSTANCE) -> bytes:
    """What was asked for has not been done."""
    return _object("error", ref) + b'"problem":' + problem.body(instance) + b"}"


def partial(ref: Ref, text: str) -> bytes:
    """What somebody seems to be saying."""
    return _object("partial", ref) + b'"text":' + to_json(text) + b"}"


def final(ref: Ref, heard: dict[str, Any]) -> bytes:
    """What somebody has said: the text of the command, and what was heard of it."""
    return _object("final", ref) + to_json(heard)[1:]


def event_head(correlation_id: str, task_id: str) -> bytes:
    """What stands before the events of a mission, each without its opening brace; a child's carry its own id too."""
    child = f'"task_id":"{task_id}",' if task_id != correlation_id else ""
    return f'{{"op":"event","correlation_id":"{correlation_id}",{child}'.encode()


def progress_head(correlation_id: str, task_id: str) -> bytes:
    """What stands before the progress of a mission, likewise."""
    return event_head(correlation_id, task_id).replace(b"event", b"progress", 1)


RESULT_HEAD: Final = b'{"op":"result",'
