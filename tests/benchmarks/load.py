"""As many POSTs as a server answers, on 64 connections: by wrk where it is installed, else by a process of our own."""

import asyncio
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import uvloop

from tests.benchmarks.stage import LOCAL, Stage

CONNECTIONS: Final = 64
PATH: Final = "/v1/commands"
BODY: Final = (
    '{"type":"test.noop","payload":{"entity":"light.living_room","action":"set_brightness","value":80},'
    '"priority":"normal"}'
)
_WRK: Final = f"""
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{BODY}'
"""
_REQUEST: Final = (
    f"POST {PATH} HTTP/1.1\r\nHost: {LOCAL}\r\n"
    f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}"
).encode()


def load(stage: Stage, port: int, seconds: int) -> tuple[float, int]:
    """Accepts per second, and how many in all.

    Raises:
        RuntimeError: an answer was not 202.
    """
    if (wrk := shutil.which("wrk")) is None:
        return _own(port, seconds)
    script = stage.folder / "post.lua"
    script.write_text(_WRK)
    told = _run(
        wrk, "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(script), f"http://{LOCAL}:{port}{PATH}", wait=seconds
    )
    rate, many = re.search(r"Requests/sec:\s+([\d.]+)", told), re.search(r"(\d+) requests in", told)
    if rate is None or many is None or "Non-2xx" in told or "Socket errors" in told:
        raise RuntimeError(f"wrk says:\n{told}")
    return float(rate[1]), int(many[1])


def _own(port: int, seconds: int) -> tuple[float, int]:
    many, took = _run(sys.executable, "-m", "tests.benchmarks.load", str(port), str(seconds), wait=seconds).split()
    return int(many) / float(took), int(many)


def _run(*argv: str, wait: int) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=wait + 30, check=False, cwd=Path.cwd())
    if done.returncode:
        raise RuntimeError(f"{argv[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class _Connection(asyncio.Protocol):
    """Sends again as soon as the answer is there; its length is that of the first one."""

    def __init__(self, until: float) -> None:
        self._until, self._length, self._got = until, 0, b""
        self.answered = 0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.WriteTransport = transport  # type: ignore[assignment]  # a TCP transport writes
        self._transport.write(_REQUEST)

    def data_received(self, data: bytes) -> None:
        self._got += data
        if not self._length and b"\r\n\r\n" in self._got:
            head, _, _ = self._got.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            self._length = len(head) + 4 + int(length[1] if length else 0)
        if not self._length or len(self._got) < self._length:
            return
        if not self._got.startswith(b"HTTP/1.1 202"):
            self.done.set_exception(RuntimeError(self._got[:300].decode(errors="replace")))
            return
        self._got, self.answered = b"", self.answered + 1
        if time.perf_counter() < self._until:
            self._transport.write(_REQUEST)
        else:
            self._transport.close()
            self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(f"the connection was lost: {exc}"))


async def _press(port: int, seconds: float) -> str:
    loop, begun = asyncio.get_running_loop(), time.perf_counter()
    made = [
        (await loop.create_connection(lambda: _Connection(begun + seconds), LOCAL, port))[1] for _ in range(CONNECTIONS)
    ]
    await asyncio.gather(*(one.done for one in made))
    return f"{sum(one.answered for one in made)} {time.perf_counter() - begun}"


if __name__ == "__main__":
    sys.stdout.write(uvloop.run(_press(int(sys.argv[1]), float(sys.argv[2]))))
