"""A collector of traces: a real OTLP/HTTP receiver on a free port of this process."""

import contextlib
import gzip
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


@dataclass(frozen=True)
class Received:
    """A span as it came over the wire, ids as hex."""

    service: str
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    failed: bool
    sentence: str

    @property
    def header(self) -> str:
        """The ``traceparent`` that names it."""
        return f"00-{self.trace_id}-{self.span_id}-01"


@dataclass
class Collector:
    """What has come so far; ``answers`` may be cleared to make it hang."""

    url: str = ""
    spans: list[Received] = field(default_factory=list)
    requests: int = 0
    status: int = 200
    answers: threading.Event = field(default_factory=threading.Event)

    def named(self, name: str) -> Received:
        """The one span of this name."""
        [span] = [span for span in self.spans if span.name == name]
        return span

    def take(self, body: bytes) -> None:
        """Read one request of an exporter."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = _plain(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                self.spans += [_received(service, span) for span in scope.spans]


@contextlib.contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that runs until the end of the block."""
    collector = Collector()
    collector.answers.set()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.requests += 1
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.answers.wait()
            if collector.status == 200 and self.path == "/v1/traces":
                collector.take(gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body)
            with contextlib.suppress(OSError):  # the exporter has lost its patience
                self.send_response(collector.status)
                self.send_header("content-type", "application/x-protobuf")
                self.end_headers()
                self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the overridden method's name for it
            """Be quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.answers.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _received(service: str, span: Span) -> Received:
    return Received(
        service=service,
        name=span.name,
        kind=Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        attributes=_plain(span.attributes),
        failed=span.status.code == Status.STATUS_CODE_ERROR,
        sentence=span.status.message,
    )


def _plain(attributes: Any) -> dict[str, Any]:
    def value(of: AnyValue) -> Any:
        return getattr(of, of.WhichOneof("value") or "string_value")

    pairs: list[KeyValue] = list(attributes)
    return {pair.key: value(pair.value) for pair in pairs}
