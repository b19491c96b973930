"""A Redis server on its own folder, to be killed -9, started again on its data, frozen and thawed."""

import contextlib
import signal
import subprocess
from typing import cast

import redis

from dualloop.lifeline import ends_with_parent
from tests.conftest import RedisServer
from tests.waiting import until


class Restartable:
    """Takes over a server of ``start_redis``."""

    def __init__(self, server: RedisServer) -> None:
        self.url, self._process = server.url, server.process
        self._argv = cast("list[str]", server.process.args)

    def client(self) -> redis.Redis:
        """For the test's own questions; close it."""
        return redis.Redis.from_url(self.url)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def start(self) -> None:
        """On the data that is there; returns when it answers."""
        self._process = subprocess.Popen(
            self._argv,
            stdout=subprocess.DEVNULL,
            preexec_fn=ends_with_parent(),  # noqa: PLW1509  tests run in the main thread
        )
        until(self._answers)

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        with contextlib.suppress(redis.RedisError), self.client() as client:
            return bool(client.ping())
        return False
