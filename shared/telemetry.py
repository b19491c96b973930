"""One trace through both loops: the client's ``traceparent``, accept, each drive and state, the push of the news.

While tracing is off no span is made and a helper costs well under a microsecond, but the envelope's ``traceparent``
exists all the same: the client's own, unchanged, or a fresh one marked as not sampled, so that calls to the outside
can be tied together.
Names and attributes follow OpenTelemetry's semantic conventions for messaging; ours begin with ``dualloop.``.
"""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from opentelemetry import context as otel_context
from opentelemetry import trace as otel
from opentelemetry.trace import SpanKind

from shared import logs, telemetry_export
from shared import traceparent as header
from shared.settings import Settings

if TYPE_CHECKING:
    from contextvars import Token

Attributes = Mapping[str, str | float | None]

_tracer: otel.Tracer | None = None  # None: off


def configure(settings: Settings, service: str) -> bool:
    """Export spans by OTLP/HTTP if the settings or OpenTelemetry's standard variables name a collector.

    Returns:
        Whether tracing is on.
    """
    global _tracer  # noqa: PLW0603  one process, one destination of its spans
    shutdown(0.0)
    _tracer = telemetry_export.start(settings.otlp_endpoint, service)
    return _tracer is not None


def active() -> bool:
    """Whether spans are recorded: what costs a question to Redis is left out while they are not."""
    return _tracer is not None


def shutdown(timeout_s: float = 2.0) -> None:
    """Send what is left, for so long at most, and be off. Blocks: call it where nothing else has to run."""
    global _tracer  # noqa: PLW0603  see configure
    _tracer = None
    telemetry_export.stop(timeout_s)


class Trace:
    """Where in a trace something happens, and the context manager of a span that is not recorded."""

    __slots__ = ("_given", "_header")

    def __init__(self, given: str | None = None) -> None:
        """Take a ``traceparent`` as it came; it is looked at when it is needed."""
        self._given = given
        self._header: str | None = None

    def child_header(self) -> str:
        """The ``traceparent`` for whatever happens next: envelope, outgoing call, message."""
        if self._header is None:
            self._header = header.valid(self._given) or header.fresh(sampled=_tracer is not None)
        return self._header

    def begins(self, child: "Trace") -> None:
        """Where no trace came from outside it begins with this child, for whoever asks here too."""
        self._header = self._header or header.valid(self._given) or child.child_header()

    def around(self) -> otel.Span:
        """What a child span hangs from; INVALID_SPAN: from nothing, it is the root."""
        named = self._header or header.valid(self._given)
        if named is None:
            return otel.INVALID_SPAN
        trace_id, span_id, flags = header.parts(named)
        return otel.NonRecordingSpan(
            otel.SpanContext(trace_id, span_id, is_remote=True, trace_flags=otel.TraceFlags(flags))
        )

    @property
    def trace_id(self) -> str:
        """32 hex digits, the same in every process that the command passes."""
        return self.child_header()[3:35]

    def set(self, name: str, value: str | float) -> None:
        """Add an attribute (``http.response.status_code``, ``dualloop.outcome``) to the span, if one is recorded."""

    def fail(self, error: str, sentence: str) -> None:
        """Mark the span as failed, for handlers that answer with values instead of raising.

        Args:
            error: a word of a closed list, such as ``error.code`` or the name of an exception.
            sentence: what happened.
        """

    def drop(self) -> None:
        """Do not export the span: nothing happened in it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return None


class _Span(Trace):
    """A recorded span, begun on entering."""

    __slots__ = ("_attributes", "_dropped", "_kind", "_name", "_parent", "_span", "_token", "_tracer")

    def __init__(
        self,
        tracer: otel.Tracer,
        parent: Trace,
        name: str,
        kind: SpanKind,
        attributes: Mapping[str, str | float | None],
    ) -> None:
        super().__init__()
        self._tracer, self._parent, self._name, self._kind = tracer, parent, name, kind
        self._attributes = {key: value for key, value in attributes.items() if value is not None}
        self._span: otel.Span = otel.INVALID_SPAN
        self._token: Token[otel_context.Context] | None = None
        self._dropped = False

    def set(self, name: str, value: str | float) -> None:
        self._span.set_attribute(name, value)

    def fail(self, error: str, sentence: str) -> None:
        self._span.set_attribute("error.type", error)
        self._span.set_status(otel.StatusCode.ERROR, logs.redact(sentence))

    def drop(self) -> None:
        self._dropped = True

    def around(self) -> otel.Span:
        return self._span

    def __enter__(self) -> Self:
        context = otel.set_span_in_context(self._parent.around(), otel_context.Context())
        self._span = self._tracer.start_span(self._name, context, self._kind, self._attributes)
        here = self._span.get_span_context()
        self._header = header.of(here.trace_id, here.span_id, here.trace_flags)
        self._parent.begins(self)
        self._token = otel_context.attach(otel.set_span_in_context(self._span))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._token is not None:
            otel_context.detach(self._token)
        if isinstance(error, asyncio.CancelledError):
            self.set("dualloop.cancelled", True)
        elif isinstance(error, Exception):
            self.fail(type(error).__name__, str(error))
        if not self._dropped:
            self._span.end()  # a span that never ends is never exported


def incoming(traceparent: str | None) -> Trace:
    """The trace that a request belongs to; a malformed header is as none: a new trace begins."""
    return Trace(traceparent)


def serve_span(trace: Trace, name: str, attributes: Attributes | None = None) -> Trace:
    """SERVER span of a request, named by method and route: ``POST /v1/commands``."""
    if _tracer is None:
        return trace
    return _Span(_tracer, trace, name, SpanKind.SERVER, attributes or {})


def accept_span(  # noqa: PLR0913  the fields of the span
    trace: Trace,
    *,
    mission_type: str,
    lane: str,
    task_id: str,
    correlation_id: str | None = None,
    transport: str | None = None,
) -> Trace:
    """PRODUCER span around the accept script; its ``child_header()`` is the envelope's ``traceparent``."""
    if _tracer is None:
        return trace
    attributes = _messaging("accept", "send", mission_type, lane, task_id, correlation_id)
    attributes["dualloop.transport"] = transport
    return _Span(_tracer, trace, f"accept {lane}/{mission_type}", SpanKind.PRODUCER, attributes)


def mission_span(
    traceparent: str | None, *, mission_type: str, lane: str, task_id: str, correlation_id: str | None = None
) -> Trace:
    """CONSUMER span of one drive of a mission, from claim to release, wait or end: child of the accept."""
    if _tracer is None:
        return Trace(traceparent)
    attributes = _messaging("process", "process", mission_type, lane, task_id, correlation_id)
    return _Span(_tracer, Trace(traceparent), f"process {lane}/{mission_type}", SpanKind.CONSUMER, attributes)


def state_span(trace: Trace, *, mission_type: str, state: str, attempt: int, undo: bool = False) -> Trace:
    """INTERNAL span of one attempt at a state, or at its undo: child of the drive."""
    if _tracer is None:
        return trace
    attributes: Attributes = {
        "dualloop.type": mission_type,
        "dualloop.state": state,
        "dualloop.attempt": attempt,
        "dualloop.undo": undo or None,
    }
    return _Span(_tracer, trace, f"undo {state}" if undo else state, SpanKind.INTERNAL, attributes)


def push_span(
    traceparent: str | None, *, mission_type: str, transport: str, task_id: str, correlation_id: str | None = None
) -> Trace:
    """PRODUCER span of telling a watcher (``ws sse poll webhook mqtt``): child of the accept, like the drives."""
    if _tracer is None:
        return Trace(traceparent)
    attributes = _messaging("push", "send", mission_type, transport, task_id, correlation_id)
    return _Span(_tracer, Trace(traceparent), f"push {transport}/{mission_type}", SpanKind.PRODUCER, attributes)


def loop_span(name: str, iteration: int) -> Trace:
    """INTERNAL span of a loop's iteration, a trace of its own; to be dropped where nothing was done."""
    if _tracer is None:
        return Trace()
    attributes: Attributes = {"dualloop.loop": name, "dualloop.iteration": iteration}
    return _Span(_tracer, Trace(), f"loop {name}", SpanKind.INTERNAL, attributes)


def _messaging(  # noqa: PLR0913, PLR0917  the fields of the convention
    name: str, operation: str, mission_type: str, where: str, task_id: str, correlation_id: str | None
) -> dict[str, str | None]:
    return {
        "messaging.system": "redis",
        "messaging.operation.name": name,
        "messaging.operation.type": operation,
        "messaging.destination.name": f"{where}/{mission_type}",
        "messaging.message.id": task_id,
        "messaging.message.conversation_id": correlation_id,
        "dualloop.type": mission_type,
    }
