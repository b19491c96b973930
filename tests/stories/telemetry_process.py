"""One process of the traced story: ``accept``, ``drive`` or ``push`` with the header that reached it."""

import asyncio
import contextlib
import sys
import warnings

from shared import telemetry
from shared.loop import After, Answer, Done, Idle, Loop
from shared.settings import Settings

TYPE, TASK = "device.control", "task-1"


def accept(header: str) -> str:
    """A foreground takes a request and puts an envelope into a lane."""
    trace = telemetry.incoming(header)
    with telemetry.serve_span(trace, "POST /v1/commands", {"http.request.method": "POST"}) as request:
        with telemetry.accept_span(
            request, mission_type=TYPE, lane="urgent", task_id=TASK, correlation_id=TASK, transport="http"
        ) as accepted:
            envelope = accepted.child_header()
        request.set("http.response.status_code", 202)
    return envelope


def drive(header: str) -> str:
    """A background process drives the mission through its states; outside calls carry the last one's header."""
    outside = ""
    with telemetry.mission_span(header, mission_type=TYPE, lane="urgent", task_id=TASK) as mission:
        with telemetry.state_span(mission, mission_type=TYPE, state="RESOLVING", attempt=1):
            pass
        with telemetry.state_span(mission, mission_type=TYPE, state="ACTING", attempt=2) as state:
            outside = state.child_header()
            state.fail("device_refused", "refused at redis://:hunter2@db")
        with (
            contextlib.suppress(OSError),
            telemetry.state_span(mission, mission_type=TYPE, state="ACTING", attempt=1, undo=True),
        ):
            raise OSError("no route")
    asyncio.run(iterate())
    return outside


async def iterate() -> None:
    """A loop that idles once, works once, and is done."""
    answers: list[Answer] = [Idle(), After(0), Done()]

    async def once() -> Answer:
        loop.wake()
        return answers.pop(0)

    loop = Loop("claim", once, trigger="woken", interval_s=1)
    await loop.run()


def push(header: str) -> str:
    """Any foreground tells a watcher."""
    with telemetry.push_span(header, mission_type=TYPE, transport="ws", task_id=TASK) as pushed:
        return pushed.child_header()


if __name__ == "__main__":
    warnings.simplefilter("error")
    what, service, given = sys.argv[1:]
    on = telemetry.configure(Settings(), service)
    handed_on = {"accept": accept, "drive": drive, "push": push}[what](given)
    sys.stdout.write(f"{on} {handed_on}")
    telemetry.shutdown(timeout_s=5)
