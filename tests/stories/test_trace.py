"""One command, one trace: the client's traceparent, accept, each state, push; and log lines that carry its id."""

import json
from pathlib import Path

import websockets

from tests.collector import collecting
from tests.stories.stack import running
from tests.waiting import eventually

CLIENT = "00-11111111111111111111111111111111-2222222222222222-01"


async def test_a_socket_s_command_is_one_trace_through_both_loops(redis_url: str, tmp_path: Path) -> None:
    with collecting() as collector:
        async with running(
            redis_url, tmp_path, DUALLOOP_OTLP_ENDPOINT=collector.url, OTEL_BSP_SCHEDULE_DELAY="100"
        ) as stack:
            async with websockets.connect(stack.ws, additional_headers={"traceparent": CLIENT}, proxy=None) as socket:
                await socket.send(json.dumps({"op": "submit", "ref": 1, "command": {"type": "test.five"}}))
                frames = [json.loads(await socket.recv()) for _ in range(8)]
            task_id = frames[0]["correlation_id"]
            assert [frame["op"] for frame in frames] == ["ack", *["event"] * 6, "result"]
            wanted = {"accept normal/test.five", "process normal/test.five", "push ws/test.five"}
            states = {"ONE", "TWO", "THREE", "FOUR", "FIVE"}
            await eventually(lambda: wanted | states <= {span.name for span in collector.spans}, within=60)
            log = [
                json.loads(line)
                for part in (*stack.foregrounds, *stack.workers)
                for line in part.log.read_text().splitlines()
            ]
    mine = {span.name: span for span in collector.spans if span.name in wanted | states}
    assert {span.trace_id for span in mine.values()} == {CLIENT[3:35]}
    accept, process, push = (mine[name] for name in sorted(wanted))
    assert accept.parent_id == CLIENT[36:52]
    assert process.parent_id == push.parent_id == accept.span_id
    assert {mine[name].parent_id for name in states} == {process.span_id}
    assert (accept.kind, process.kind, push.kind) == ("PRODUCER", "CONSUMER", "PRODUCER")
    assert accept.attributes["messaging.message.id"] == process.attributes["messaging.message.id"] == task_id
    assert (accept.service, process.service) == ("dualloop-foreground", "dualloop-background")
    lines = {line["event"]: line for line in log if line.get("correlation_id") == task_id}
    assert set(lines) == {"accept", "end"}
    assert lines["end"]["status"] == "SUCCEEDED"
    assert lines["end"]["type"] == "test.five"


async def test_the_trace_goes_on_where_the_client_names_none(redis_url: str, tmp_path: Path) -> None:
    with collecting() as collector:
        async with running(
            redis_url, tmp_path, DUALLOOP_OTLP_ENDPOINT=collector.url, OTEL_BSP_SCHEDULE_DELAY="100"
        ) as stack:
            async with websockets.connect(stack.ws, proxy=None) as socket:
                await socket.send(json.dumps({"op": "submit", "ref": 1, "command": {"type": "test.noop"}}))
                while json.loads(await socket.recv())["op"] != "result":
                    pass
            names = {"accept normal/test.noop", "process normal/test.noop", "WORKING", "push ws/test.noop"}
            await eventually(lambda: names <= {span.name for span in collector.spans}, within=60)
    assert len({span.trace_id for span in collector.spans if span.name in names}) == 1
