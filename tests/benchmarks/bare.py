"""The peer of the accept rate: a bare ASGI route that reads the body, looks at nothing, answers like an ack.

On the foreground's settings of uvicorn, and uvicorn's own protocol. Hardly anything in Python answers a POST faster.
"""

import sys

import uvicorn
from starlette.types import Receive, Scope, Send

from frontend_loop.app import SERVER
from tests.benchmarks.stage import LOCAL

TASK_ID = b"040000D2520T3BQPQFG29MSY864T5XQZYQDSZSYF"
ACK = (
    b'{"correlation_id":"%b","task_id":"%b","type":"test.noop","status":"PENDING",'
    b'"accepted_at":"2026-11-29T16:00:00.000Z","retention_s":86400,'
    b'"links":{"result":"/v1/results/%b","events":"/v1/results/%b/events","ws":"/v1/ws"}}'
) % ((TASK_ID,) * 4)
HEADERS = [
    (b"content-type", b"application/json"),
    (b"location", b"/v1/results/" + TASK_ID),
    (b"x-correlation-id", TASK_ID),
    (b"content-length", str(len(ACK)).encode()),
]


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 202 to everything, after all of it was read."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 202, "headers": HEADERS})
    await send({"type": "http.response.body", "body": ACK})


if __name__ == "__main__":
    uvicorn.run(app, host=LOCAL, port=int(sys.argv[1]), lifespan="off", **SERVER | {"http": "httptools"})
