"""The peer of the accept rate: a bare ASGI route that gives the same answer, and does nothing that could refuse one.

It reads the whole body, parses it, makes an id and tells the time, in the shape and size of an ack. No validation, no
Host check, no trace, no log, no Redis; the foreground's settings of uvicorn, with uvicorn's own protocol.
"""

import os
import sys

import uvicorn
from pydantic_core import from_json
from starlette.types import Receive, Scope, Send

from frontend_loop.app import SERVER
from shared.clock import now_ms, rfc3339
from tests.benchmarks.stage import LOCAL


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 202 to every POST."""
    if scope["type"] != "http":
        return
    body: bytes = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    if scope["method"] != "POST":
        body = b'{"type":"test.noop"}'
    task_id = os.urandom(20).hex()
    ack = (
        f'{{"correlation_id":"{task_id}","task_id":"{task_id}","type":"{from_json(body)["type"]}","status":"PENDING",'
        f'"accepted_at":"{rfc3339(now_ms())}","retention_s":86400,'
        f'"links":{{"result":"/v1/results/{task_id}","ws":"/v1/ws"}}}}'
    ).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"location", b"/v1/results/" + task_id.encode()),
        (b"x-correlation-id", task_id.encode()),
        (b"content-length", str(len(ack)).encode()),
    ]
    await send({"type": "http.response.start", "status": 202, "headers": headers})
    await send({"type": "http.response.body", "body": ack})


if __name__ == "__main__":
    uvicorn.run(app, host=LOCAL, port=int(sys.argv[1]), lifespan="off", **SERVER | {"http": "httptools"})
