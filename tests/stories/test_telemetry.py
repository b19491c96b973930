"""One trace through both loops, told to a real collector; and what it costs, or breaks, when there is none."""

import asyncio
import logging
import os
import socket
import tempfile
import threading
import time
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import logs, telemetry, traceparent
from shared.loop import After, Answer, Loop
from shared.settings import Settings
from tests.collector import Collector, collecting
from tests.forge import forked
from tests.waiting import eventually, until

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CLIENT = f"00-{TRACE}-{SPAN}-01"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


@pytest.fixture(autouse=True)
def off_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    yield
    telemetry.shutdown(0.0)
    nobody_left()


def nobody_left() -> None:
    """Wait for the thread that a shutdown with a time limit leaves behind."""
    until(lambda: not [t for t in threading.enumerate() if t.name == "telemetry-shutdown"], what="the thread ends")


def process(what: str, service: str, header: str, **environment: str) -> tuple[bool, str]:
    """Run one process of the story; whether it traced, and the header that it hands on."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        argv = ("-m", "tests.stories.telemetry_process", what, service, header)
        code = forked(argv, env=os.environ | environment, cwd=ROOT, stdout=out, stderr=err).wait(60)
        out.seek(0)
        err.seek(0)
        assert (code, err.read()) == (0, b"")
        on, handed_on = out.read().decode().split()
    return on == "True", handed_on


@pytest.mark.parametrize("variable", ["DUALLOOP_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"])
def test_the_clients_trace_goes_through_accept_drive_states_and_push(collector: Collector, variable: str) -> None:
    endpoint = {variable: collector.url}
    _, envelope = process("accept", "foreground", CLIENT, **endpoint)
    _, outside = process("drive", "background", envelope, **endpoint)
    process("push", "foreground", envelope, **endpoint)

    request = collector.named("POST /v1/commands")
    accept, drive = collector.named("accept urgent/device.control"), collector.named("process urgent/device.control")
    resolving, acting, undo = (collector.named(name) for name in ("RESOLVING", "ACTING", "undo ACTING"))
    push = collector.named("push ws/device.control")
    ours = [request, accept, drive, resolving, acting, undo, push]
    assert {span.trace_id for span in ours} == {TRACE}
    assert [span.parent_id for span in ours] == [
        SPAN,
        request.span_id,
        accept.span_id,
        *3 * [drive.span_id],
        accept.span_id,
    ]
    assert (envelope, outside) == (accept.header, acting.header)
    assert [span.kind for span in ours] == ["SERVER", "PRODUCER", "CONSUMER", *3 * ["INTERNAL"], "PRODUCER"]
    assert [span.service for span in ours] == [*2 * ["foreground"], *4 * ["background"], "foreground"]


def test_spans_speak_the_conventions_for_messaging_and_tell_failures(collector: Collector) -> None:
    process("accept", "foreground", "none", DUALLOOP_OTLP_ENDPOINT=collector.url)
    process("drive", "background", CLIENT, DUALLOOP_OTLP_ENDPOINT=collector.url)
    accept, drive = collector.named("accept urgent/device.control"), collector.named("process urgent/device.control")
    assert accept.attributes == {
        "messaging.system": "redis",
        "messaging.operation.name": "accept",
        "messaging.operation.type": "send",
        "messaging.destination.name": "urgent/device.control",
        "messaging.message.id": "task-1",
        "messaging.message.conversation_id": "task-1",
        "dualloop.type": "device.control",
        "dualloop.transport": "http",
    }
    assert drive.attributes["messaging.operation.type"] == "process"
    assert collector.named("POST /v1/commands").attributes["http.response.status_code"] == 202
    acting, undo = collector.named("ACTING"), collector.named("undo ACTING")
    assert acting.attributes["dualloop.attempt"] == 2
    assert (acting.failed, acting.attributes["error.type"]) == (True, "device_refused")
    assert acting.sentence == "refused at redis://***@db"
    assert (undo.failed, undo.attributes["error.type"], undo.sentence) == (True, "OSError", "no route")
    assert not drive.failed
    assert [span.name for span in collector.spans].count("loop claim") == 2, "the idle iteration is no span"


def test_without_a_collector_the_clients_header_passes_unchanged_and_none_is_made_up(collector: Collector) -> None:
    assert process("accept", "foreground", CLIENT) == (False, CLIENT)
    on, envelope = process("accept", "foreground", "nonsense")
    assert not on
    assert traceparent.valid(envelope) == envelope
    assert process("drive", "background", envelope) == (False, envelope)
    standard = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SDK_DISABLED": "true"}
    assert process("accept", "foreground", CLIENT, **standard) == (False, CLIENT)
    assert collector.requests == 0


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-1",
        f" {CLIENT}",
        f"{CLIENT}\n",
        f"01-{TRACE}-{SPAN}-01-{'x' * 600}",
    ],
)
@pytest.mark.parametrize("on", [False, True])
def test_a_malformed_header_begins_a_new_trace(collector: Collector, header: str | None, on: bool) -> None:
    telemetry.configure(Settings(otlp_endpoint=collector.url if on else None), "foreground")
    trace = telemetry.incoming(header)
    with telemetry.accept_span(trace, mission_type="a", lane="bulk", task_id="t") as accepted:
        envelope = accepted.child_header()
    assert traceparent.valid(envelope) == envelope
    assert trace.trace_id == accepted.trace_id != TRACE
    assert int(envelope[-2:], 16) & 1 == on, "sampled: the lowest bit"


@given(st.one_of(st.text(), st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}.*", fullmatch=True)))
def test_whatever_comes_a_valid_header_goes_on(header: str) -> None:
    handed_on = telemetry.incoming(header).child_header()
    assert traceparent.valid(handed_on) == handed_on
    assert len(handed_on) == 55


def test_a_later_version_is_read_as_far_as_we_know_it() -> None:
    assert telemetry.incoming(f"01-{TRACE}-{SPAN}-ff-more").child_header() == CLIENT
    assert telemetry.incoming(f"01-{TRACE}-{SPAN}-fe").child_header() == f"00-{TRACE}-{SPAN}-00"


def test_a_client_that_does_not_sample_is_obeyed(collector: Collector) -> None:
    _, envelope = process("accept", "f", f"00-{TRACE}-{SPAN}-00", DUALLOOP_OTLP_ENDPOINT=collector.url)
    assert (envelope[3:35], envelope[-2:]) == (TRACE, "00")
    assert collector.spans == []


def test_log_lines_inside_a_span_carry_its_trace(collector: Collector, caplog: pytest.LogCaptureFixture) -> None:
    telemetry.configure(Settings(otlp_endpoint=collector.url), "background")
    with telemetry.mission_span(CLIENT, mission_type="a", lane="bulk", task_id="t"):
        logs.get("worker").warning("commit")
    logs.get("worker").warning("claim")
    commit, claim = (record.msg for record in caplog.records if record.name == "worker")
    assert isinstance(commit, dict), "structlog's record, before it is rendered"
    assert commit["trace_id"] == TRACE
    assert "trace_id" not in claim


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


async def test_a_collector_that_is_away_holds_up_no_loop_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    telemetry.configure(Settings(otlp_endpoint=f"http://127.0.0.1:{closed_port()}"), "background")
    longest, last = 0.0, time.monotonic()

    async def once() -> Answer:
        nonlocal longest, last
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
        for _ in range(5):
            with telemetry.mission_span(CLIENT, mission_type="a", lane="bulk", task_id="t"):
                pass
        return After(0)

    loop = Loop("claim", once, trigger="woken", interval_s=1)
    task = asyncio.create_task(loop.run())

    async def overflowed() -> bool:
        return any("Queue full" in str(record.msg) for record in caplog.records) and loop.state().iterations > 2_000

    await eventually(overflowed, within=60)
    loop.stop()
    await task
    assert loop.state().errors == 0
    assert longest < 6, "seconds between two iterations, on a busy machine; an exporter in their way tries for 7"
    told = [str(record.msg) for record in caplog.records]
    assert len(told) == len(set(told)) <= 3
    assert not any(record.exc_info for record in caplog.records)
    begun = time.monotonic()
    telemetry.shutdown(0.5)
    assert time.monotonic() - begun < 6


def test_the_same_trouble_is_said_once_in_a_while(collector: Collector, caplog: pytest.LogCaptureFixture) -> None:
    telemetry.configure(Settings(otlp_endpoint=collector.url), "background")
    for port in range(5):
        logging.getLogger("opentelemetry.exporter").error("No answer at %d", port)
        logging.getLogger("opentelemetry.sdk").error("No answer at %d", port)
    assert len(caplog.records) == 2, "one per place that it comes from"


def test_a_collector_that_hangs_delays_the_end_of_a_process_by_the_limit_only(collector: Collector) -> None:
    collector.answers.clear()
    telemetry.configure(Settings(otlp_endpoint=collector.url), "background")
    with telemetry.mission_span(CLIENT, mission_type="a", lane="bulk", task_id="t"):
        pass
    begun = time.monotonic()
    telemetry.shutdown(0.3)
    assert 0.25 < time.monotonic() - begun < 9
    assert collector.requests == 1
    collector.answers.set()
    nobody_left()


def test_a_helper_costs_next_to_nothing_while_tracing_is_off() -> None:
    def accept() -> None:
        trace = telemetry.incoming(CLIENT)
        with telemetry.accept_span(trace, mission_type="a", lane="bulk", task_id="t", correlation_id="t") as accepted:
            accepted.child_header()

    def drive() -> None:
        with (
            telemetry.mission_span(CLIENT, mission_type="a", lane="bulk", task_id="t") as mission,
            telemetry.state_span(mission, mission_type="a", state="ACTING", attempt=1),
        ):
            pass

    def cost(of: Callable[[], None]) -> float:
        return min(timeit.repeat(of, number=5_000, repeat=7, timer=time.process_time)) / 5_000

    assert cost(accept) < 6e-6, "seconds; 0.9 us on a quiet machine"
    assert cost(drive) < 6e-6, "seconds; 0.4 us on a quiet machine"
