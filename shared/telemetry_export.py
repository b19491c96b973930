"""The way of spans to a collector: OTLP/HTTP from a thread of its own, which never holds up or breaks a loop."""

import contextlib
import importlib.metadata
import logging
import os
import threading
import time
import uuid
from typing import TYPE_CHECKING

from opentelemetry import trace as otel

from shared import logs

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

SAY_AGAIN_S = 60.0  # how often the same trouble with the collector is logged
_STANDARD = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

_running: "tuple[TracerProvider, SpanExporter] | None" = None


def start(endpoint: str | None, service: str) -> otel.Tracer | None:
    """Begin to export to this base URL, else to the one in OpenTelemetry's own variables; None if there is none.

    Sampling, batching, headers and further resource attributes are OpenTelemetry's variables' business.
    """
    global _running  # noqa: PLW0603  one process, one destination of its spans
    off = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if off or os.environ.get("OTEL_TRACES_EXPORTER") == "none":
        return None
    if not endpoint and not any(os.environ.get(name) for name in _STANDARD):
        return None
    # Imported where tracing is on: 0.2 s that a process without it need not spend.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    _quieten()
    about = {"service.name": service, "service.namespace": "dualloop", "service.instance.id": str(uuid.uuid4())}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        about["service.version"] = importlib.metadata.version("dualloop")
    exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces") if endpoint else OTLPSpanExporter()
    provider = TracerProvider(resource=Resource.create(about), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    if isinstance(otel.get_tracer_provider(), otel.ProxyTracerProvider):
        otel.set_tracer_provider(provider)  # so that the spans of users' own libraries join in
    _running = provider, exporter
    return provider.get_tracer("dualloop")


def stop(timeout_s: float) -> None:
    """Send what is left and end, within the time: a collector that hangs is left alone."""
    global _running
    running, _running = _running, None
    if running is None:
        return
    provider, exporter = running
    # The SDK's own shutdown waits up to 30 s and takes no limit.
    ending = threading.Thread(target=provider.shutdown, name="telemetry-shutdown", daemon=True)
    ending.start()
    ending.join(timeout_s)
    if ending.is_alive():
        exporter.shutdown()  # no further tries: the rest is dropped


class _Sparing(logging.Handler):
    """OpenTelemetry's own lines, each once in a while and plain: a collector that is away is no news every second."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._said: dict[tuple[str, str], float] = {}  # bounded by the texts in OpenTelemetry's sources
        self._log = logs.get("telemetry")

    def emit(self, record: logging.LogRecord) -> None:
        now = time.monotonic()
        what = (record.name, str(record.msg))
        if now - self._said.get(what, -SAY_AGAIN_S) >= SAY_AGAIN_S:
            self._said[what] = now
            self._log.warning("export", error=record.getMessage(), library=record.name)


def _quieten() -> None:
    theirs = logging.getLogger("opentelemetry")
    theirs.handlers = [_Sparing()]
    theirs.propagate = False
