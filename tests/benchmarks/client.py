"""A client that asks one thing at a time: what a person waits for, in seconds."""

import http.client
import json
import time
from typing import Any, Self

from tests.benchmarks.stage import LOCAL


class Client:
    """One kept connection to a foreground."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection(LOCAL, port, timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def accept(self, command: bytes) -> tuple[float, str]:
        """Submit; seconds to the 202, and the correlation_id."""
        begun = time.perf_counter()
        ack = self._ask("POST", "/v1/commands", command, 202)
        return time.perf_counter() - begun, ack["correlation_id"]

    def finish(self, command: bytes) -> float:
        """Submit and long-poll; seconds to the result."""
        begun = time.perf_counter()
        _, correlation_id = self.accept(command)
        self._ask("GET", f"/v1/results/{correlation_id}?wait=20", None, 200)
        return time.perf_counter() - begun

    def _ask(self, method: str, path: str, body: bytes | None, status: int) -> Any:
        self._connection.request(method, path, body, {"content-type": "application/json"})
        response = self._connection.getresponse()
        told = response.read()
        if response.status != status:
            raise RuntimeError(f"{method} {path} answered {response.status}: {told[:300]!r}")
        return json.loads(told)
