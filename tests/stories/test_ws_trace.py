"""A result that is told to a socket which only watches belongs to the trace of the command, too."""

from pathlib import Path

import httpx

from tests.collector import collecting
from tests.stories.stack import running
from tests.stories.talk import talking
from tests.waiting import eventually

CLIENT = "00-33333333333333333333333333333333-4444444444444444-01"


async def test_a_watch_goes_on_with_the_trace_of_the_command(redis_url: str, tmp_path: Path) -> None:
    with collecting() as collector:
        async with running(
            redis_url, tmp_path, DUALLOOP_OTLP_ENDPOINT=collector.url, OTEL_BSP_SCHEDULE_DELAY="100"
        ) as stack:
            async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
                answer = await http.post(
                    f"{stack.url}/v1/commands", json={"type": "test.noop"}, headers={"traceparent": CLIENT}
                )
            correlation_id = answer.json()["correlation_id"]
            async with talking(stack.ws) as talk:
                await talk.say("watch", correlation_id=correlation_id)
                await talk.result(correlation_id)
                talk.check(correlation_id)
            await eventually(lambda: "push ws/test.noop" in {span.name for span in collector.spans}, within=60)
    push = next(span for span in collector.spans if span.name == "push ws/test.noop")
    assert push.trace_id == CLIENT[3:35]
