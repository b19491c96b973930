"""Logs: one line per event, named by the verbs of the protocol (``accept claim commit release ...``).

structlog in front, the standard ``logging`` behind, so that uvicorn, arq and every library leave by the same door:
readable on a terminal, JSON elsewhere, always with the ids of the mission it is about, never with a secret.
"""

import contextlib
import json
import logging
import math
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar, Token
from functools import lru_cache
from typing import Any, Self, cast
from urllib.parse import urlsplit

import structlog
from opentelemetry import trace
from pydantic_core import PydanticSerializationError, to_json

from shared.clock import now_ms, rfc3339
from shared.ration import Ration
from shared.settings import Settings

Line = MutableMapping[str, Any]

REDACTED = "[redacted]"
UNREADABLE = "(a URL that cannot be read)"
OFTEN = 100
"""Lines a second of an event that comes once per mission."""

_SECRET_KEY = re.compile(r"(^|[_\-.])(authorization|password|passwd|secret|token|api[_-]?key|cookie)$", re.IGNORECASE)
_SECRET_TEXT = (  # each with a character that must be there, since most texts are ids and a search is not free
    ("@", re.compile(r"([a-z][a-z0-9+.\-]{0,30}://)[^\s/?#]*@", re.IGNORECASE), r"\1***@"),
    ("=", re.compile(r"([?&](?:password|token|access_token|api[_-]?key|secret)=)[^&\s\"']+", re.IGNORECASE), r"\1***"),
    (" ", re.compile(r"\b(bearer|basic) +[\w.~+/=\-]{8,}", re.IGNORECASE), r"\1 ***"),
)
_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]*", re.IGNORECASE)
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_ASKS_FOR_MORE = frozenset({"exc_info", "stack_info", "stacklevel", "extra"})
_DEPTH = 6  # of nested values looked into; deeper ones are written as they are told by ``str``, redacted as text

_bound: ContextVar[Mapping[str, Any]] = ContextVar("dualloop_log", default={})  # noqa: B039  the default is never changed


class bound:  # noqa: N801  read as a verb: with logs.bound(task_id=...)
    """Within the block every line carries these fields (``correlation_id task_id type state``).

    Own and not structlog's ``bound_contextvars``: it is entered for every mission, and one variable holding all fields
    costs 0.7 us, one variable per field 4 us.
    """

    __slots__ = ("_fields", "_token")

    def __init__(self, **fields: Any) -> None:
        self._fields = fields
        self._token: Token[Mapping[str, Any]] | None = None

    def __enter__(self) -> Self:
        self._fields = {**_bound.get(), **self._fields}
        self._token = _bound.set(self._fields)
        return self

    def also(self, **fields: Any) -> None:
        """From here to the end of the block lines carry these fields too, in tasks that were begun in it as well."""
        self._fields.update(fields)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _bound.reset(self._token)


class Logger(structlog.stdlib.BoundLogger):
    """structlog's logger; its two chatty levels cost next to nothing while they are off, and a plain line a third."""

    def debug(self, event: str | None = None, *args: Any, **fields: Any) -> Any:
        """Write a line that only somebody who looks for it wants."""
        if self._logger.isEnabledFor(logging.DEBUG):
            return super().debug(event, *args, **fields)
        return None

    def info(self, event: str | None = None, *args: Any, **fields: Any) -> Any:
        """Write a line of the ordinary course of things; there is one per command."""
        if not self._logger.isEnabledFor(logging.INFO):
            return None
        if args or not _ASKS_FOR_MORE.isdisjoint(fields):
            return super().info(event, *args, **fields)
        # what _FRONT does, without its turns through structlog and a second record
        line: Line = {"event": event, **self._context, **fields, "logger": self._logger.name, "level": "info"}
        self._logger.handle(
            _Plain(self._logger.name, logging.INFO, "", 0, _at(None, "", _ids(None, "", line)), (), None)
        )
        return None

    def often(self, event: str, **fields: Any) -> None:
        """Write a line that comes once per mission: the first `OFTEN` in a second, and all of them at level debug.

        The others are counted, and the next line says how many as ``unsaid``: what happened stands in Redis and in
        the traces, and a busy process would else spend a fifth of its time on a megabyte of lines a second.
        """
        if not self._logger.isEnabledFor(logging.INFO):
            return
        unsaid = _rations[self._logger.name, event].take()
        if unsaid is None and not self._logger.isEnabledFor(logging.DEBUG):
            return
        self.info(event, **(fields | {"unsaid": unsaid} if unsaid else fields))


_rations: defaultdict[tuple[str, str], Ration] = defaultdict(lambda: Ration(OFTEN))


class _Plain(logging.LogRecord):
    """A record whose message is the line as it goes to the last processors."""


def get(name: str) -> Logger:
    """The logger of this name; may be asked for before ``configure``, and follows it."""
    return Logger(logging.getLogger(name), _FRONT, {})


def configure(settings: Settings, service: str) -> None:
    """Send every logger's lines to stderr in the format and from the level of the settings; may be called again."""
    terminal = settings.log_format == "terminal" or (settings.log_format == "auto" and sys.stderr.isatty())
    handler = _Handler(sys.stderr)
    handler.setFormatter(
        _Formatter(
            foreign_pre_chain=_FRONT[1:-1],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _service(service),
                structlog.processors.format_exc_info,
                _redact,
                _terminal(colors=sys.stderr.isatty()) if terminal else _json,
            ],
        )
    )
    root = logging.getLogger()
    for old in [h for h in root.handlers if isinstance(h, _Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "arq", "arq.worker", "arq.jobs"):
        theirs = logging.getLogger(name)
        theirs.handlers.clear()
        theirs.propagate = True
    set_level(settings.log_level)


def set_level(level: str) -> None:
    """Write lines from this level on: ``debug info warning error``. Takes effect at once, also for libraries.

    Raises:
        ValueError: no such level.
    """
    known = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
    if level.lower() not in known:
        raise ValueError(f"log level {level!r} is none of: {' '.join(known)}")
    logging.getLogger().setLevel(known[level.lower()])
    # A line per request is our own ``accept``, or the state's that made it; a second one is for whoever debugs.
    for name in ("uvicorn.access", "httpx"):
        logging.getLogger(name).setLevel(logging.INFO if level.lower() == "debug" else logging.WARNING)


def redact(text: str) -> str:
    """The text without passwords in URLs, keys in query strings and bearer tokens."""
    for needle, pattern, instead in _SECRET_TEXT:
        if needle in text:
            text = pattern.sub(instead, text)
    return text


def redact_url(url: str) -> str:
    """A URL that may be shown; of one that was written wrongly only what surely holds no password."""
    scheme, colon, rest = url.partition("://")
    with contextlib.suppress(ValueError):  # a password may stand where the port should
        urlsplit(url).port  # noqa: B018  it is looked at by that
        if colon and _SCHEME.fullmatch(scheme):
            # a password with a "/" in it looks like a path: whatever stands before the last "@" may belong to it
            *secret, shown = rest.rsplit("@", 1)
            return redact(f"{scheme}://{'***@' if secret else ''}{shown}")
    return UNREADABLE


class _Formatter(structlog.stdlib.ProcessorFormatter):
    """structlog's, which a plain record need not be copied for."""

    def format(self, record: logging.LogRecord) -> str:
        if type(record) is not _Plain:
            return super().format(record)
        line: Any = dict(cast("Line", record.msg))
        for process in self.processors[1:]:  # the first one removes what structlog would have added
            line = process(None, "info", line)
        return cast("str", line)


class _Handler(logging.StreamHandler[Any]):
    """Ours, to be told from others' handlers when ``configure`` is called again."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, with what cannot be encoded (lone surrogates) written as escapes."""
        return super().format(record).encode(errors="backslashreplace").decode()


def _ids(_: Any, __: str, line: Line) -> Line:
    for key, value in _bound.get().items():
        line.setdefault(key, value)
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        line.setdefault("trace_id", f"{context.trace_id:032x}")
    return line


def _at(_: Any, __: str, line: Line) -> Line:
    line["at"] = rfc3339(now_ms())
    return line


def _service(service: str) -> structlog.typing.Processor:
    def add(_: Any, __: str, line: Line) -> Line:
        line.setdefault("service", service)
        return line

    return add


def _redact(_: Any, __: str, line: Line) -> Line:
    return cast("Line", _clean(line, _DEPTH))


@lru_cache(1024)
def _is_secret(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None


def _clean(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return redact(value)
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if depth and isinstance(value, Mapping):
        return {str(key): REDACTED if _is_secret(str(key)) else _clean(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, list | tuple | set | frozenset):
        return [_clean(item, depth - 1) for item in value]
    if isinstance(value, bytes):
        return redact(value.decode(errors="backslashreplace"))
    return redact(str(value))


def _json(_: Any, __: str, line: Line) -> str:
    first = {key: line.pop(key) for key in ("at", "level", "event") if key in line}
    line = {**first, **line}
    try:
        return to_json(line).decode()
    except PydanticSerializationError:  # a lone surrogate; the handler escapes it
        return json.dumps(line, ensure_ascii=False)


def _terminal(*, colors: bool) -> structlog.typing.Processor:
    render = structlog.dev.ConsoleRenderer(
        colors=colors,
        timestamp_key="at",
        pad_event_to=12,
        exception_formatter=structlog.dev.plain_traceback,  # the rich one shows local variables: secrets
    )

    def one_line(logger: Any, name: str, line: Line) -> str:
        line["event"] = str(line.get("event", "")).translate(_CONTROLS)  # the fields' values are escaped already
        return render(logger, name, line)

    return one_line


_FRONT: list[structlog.typing.Processor] = [
    structlog.stdlib.filter_by_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    _ids,
    _at,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
]
