"""One line per event, with the ids of what it is about and without secrets."""

import asyncio
import json
import logging
import time
import timeit
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import pytest
import structlog

from shared import logs
from shared.settings import Settings

REQUESTS = ("uvicorn.access", "httpx")
Configure = Callable[..., Callable[[], list[Any]]]


@pytest.fixture
def configure(capsys: pytest.CaptureFixture[str]) -> Iterator[Configure]:
    """Configure, and read back what was written since: parsed JSON, or plain lines of a terminal."""
    root, requests = logging.getLogger(), [logging.getLogger(name) for name in REQUESTS]
    handlers, level, levels = list(root.handlers), root.level, [one.level for one in requests]

    def start(log_format: str = "json", log_level: str = "info") -> Callable[[], list[Any]]:
        logs.configure(Settings(log_format=log_format, log_level=log_level), "background")

        def written() -> list[Any]:
            lines = capsys.readouterr().err.splitlines()
            return [json.loads(line) for line in lines] if log_format != "terminal" else lines

        return written

    yield start
    root.handlers = handlers
    root.setLevel(level)
    for one, before in zip(requests, levels, strict=True):
        one.setLevel(before)


def test_a_line_carries_the_ids_bound_around_it(configure: Configure) -> None:
    written = configure()
    log = logs.get("worker")
    with logs.bound(correlation_id="c1", task_id="t1", type="device.control"):
        with logs.bound(state="EXECUTING_COMMAND"):
            log.info("commit", rev=3)
        log.info("release", task_id="t2")
    log.info("claim")
    commit, release, claim = written()
    assert commit == {
        "at": commit["at"],
        "level": "info",
        "event": "commit",
        "logger": "worker",
        "service": "background",
        "correlation_id": "c1",
        "task_id": "t1",
        "type": "device.control",
        "state": "EXECUTING_COMMAND",
        "rev": 3,
    }
    assert commit["at"].endswith("Z")
    assert "state" not in release
    assert release["task_id"] == "t2", "what the line itself says wins"
    assert "correlation_id" not in claim


async def test_what_is_learned_within_a_block_is_on_its_later_lines(configure: Configure) -> None:
    written = configure()
    log = logs.get("worker")
    begun = asyncio.Event()

    async def child() -> None:
        await begun.wait()
        log.info("child")

    with logs.bound(task_id="t1") as lines:
        task = asyncio.create_task(child())
        log.info("before")
        lines.also(state="ACTING")
        log.info("within")
        begun.set()
        await task
    log.info("after")
    said = {line["event"]: (line.get("task_id"), line.get("state")) for line in written()}
    assert said == {
        "before": ("t1", None),
        "within": ("t1", "ACTING"),
        "child": ("t1", "ACTING"),
        "after": (None, None),
    }


def test_lines_of_libraries_leave_by_the_same_door(configure: Configure) -> None:
    written = configure()
    theirs = logging.getLogger("uvicorn.error")
    theirs.addHandler(logging.StreamHandler())  # as uvicorn's own configuration would
    written = configure()
    with logs.bound(correlation_id="c1"):
        theirs.info("Uvicorn running on %s", "http://127.0.0.1:8000")
        logging.getLogger("arq.worker").warning("%d jobs", 3)
    told = [(line["logger"], line["event"], line["correlation_id"]) for line in written()]
    assert told == [("uvicorn.error", "Uvicorn running on http://127.0.0.1:8000", "c1"), ("arq.worker", "3 jobs", "c1")]


@pytest.mark.parametrize("library", REQUESTS)
def test_a_library_s_line_per_request_is_for_debugging_only(configure: Configure, library: str) -> None:
    written = configure()
    logging.getLogger(library).info('"GET /livez" 200')
    assert written() == []
    logs.set_level("debug")
    logging.getLogger(library).info('"GET /livez" 200')
    assert len(written()) == 1


@pytest.mark.parametrize(
    "key",
    [
        "authorization",
        "Authorization",
        "redis_password",
        "access_token",
        "api_key",
        "x-api-key",
        "secret",
        "Set-Cookie",
    ],
)
def test_what_is_called_a_secret_is_not_written_however_deep(configure: Configure, key: str) -> None:
    written = configure()
    logs.get("x").info("accept", **{key: "hunter2"}, headers={key: "hunter2"}, items=[{"a": ({key: b"hunter2"},)}])
    [line] = written()
    assert "hunter2" not in json.dumps(line)
    assert line["headers"][key] == logs.REDACTED


@pytest.mark.parametrize(
    "text",
    [
        "redis://:hunter2@db:6379/0",
        "rediss://user:hunter2@db",
        "redis://user:p@hunter2@db",
        "unix:///run/redis.sock?password=hunter2&db=1",
        "GET /v1/ws?token=hunter2 HTTP/1.1",
        "Authorization: Bearer hunter2hunter2",
        "authorization: basic aHVudGVyMjpodW50ZXIy",
    ],
)
def test_secrets_inside_a_text_are_cut_out(configure: Configure, text: str) -> None:
    written = configure()
    logging.getLogger("redis").error("cannot connect to %s", text)
    logs.get("x").error("fail", url=text, nested={"error": OSError(text)})
    raw = json.dumps(written())
    assert "hunter2" not in raw
    assert "aHVudGVy" not in raw
    assert "***" in raw


@pytest.mark.parametrize("before", ["x" * 40, "url_", "2", "设为"], ids=["long", "joined", "digit", "Chinese"])
def test_whatever_an_address_is_written_behind(before: str) -> None:
    assert logs.redact(f"{before}redis://u:hunter2@db") == f"{before}redis://***@db"


def test_an_address_without_a_secret_stays_readable() -> None:
    assert logs.redact("unix:///tmp/s redis://db:6379/0 http://h/a?b=c mail@host") == (
        "unix:///tmp/s redis://db:6379/0 http://h/a?b=c mail@host"
    )


@pytest.mark.parametrize("log_format", ["json", "terminal"])
def test_a_traceback_shows_neither_secrets_nor_local_variables(configure: Configure, log_format: str) -> None:
    written = configure(log_format)

    def connect(password: str) -> None:
        raise OSError(f"no answer from redis://:{password}@db")

    local = "hunter2-as-a-local"
    try:
        connect(local)
    except OSError:
        logs.get("x").exception("fail")
        logging.getLogger("lib").exception("broke")
    raw = "\n".join(str(line) for line in written())
    assert raw.count("Traceback") == 2
    assert "redis://***@db" in raw
    assert local not in raw


def test_a_terminal_gets_readable_lines_and_nobody_can_write_a_second_one(configure: Configure) -> None:
    written = configure("terminal")
    with logs.bound(correlation_id="c1"):
        logs.get("door").info("accept", type="device.control", text="开灯\n2026 [info] forged \x1b[31m")
        logging.getLogger("lib").warning("GET /\nforged \x1b[31m\x9b31m")
    accept, foreign = written()
    assert "accept" in accept
    assert "correlation_id=c1" in accept
    assert "GET /\\x0aforged" in foreign
    assert not {"\x1b", "\x9b"} & set(accept + foreign)


def test_auto_is_json_when_nobody_watches(configure: Configure) -> None:
    written = configure("auto")
    logs.get("x").info("claim")
    assert written()[0]["event"] == "claim"


def test_anything_can_be_a_field(configure: Configure) -> None:
    written = configure()
    recursive: dict[str, Any] = {}
    recursive["self"] = recursive
    logs.get("x").info("claim", nan=float("nan"), path=logs, raw=b"\xff", lone="\ud800", deep=recursive, big=10**400)
    [line] = written()
    assert line["nan"] == "nan"
    assert line["raw"] == "\\xff"
    assert line["big"] == 10**400


def test_the_level_changes_while_it_runs(configure: Configure) -> None:
    written = configure(log_level="warning")
    log = logs.get("x")
    log.info("claim")
    log.debug("claim")
    assert written() == []
    logs.set_level("debug")
    log.debug("claim", n=3)
    assert written()[0]["n"] == 3
    with pytest.raises(ValueError, match="none of: debug info warning error"):
        logs.set_level("loud")


def test_a_line_of_every_mission_is_written_so_often_a_second_and_counted_beyond(configure: Configure) -> None:
    written = configure()
    log, many = logs.get("door"), 3 * logs.OFTEN
    for n in range(many):
        log.often("accept", n=n)
    said = written()
    assert [line["n"] for line in said[: logs.OFTEN]] == list(range(logs.OFTEN))
    assert len(said) < many
    logs._rations["door", "accept"]._until = 0.0  # the next second
    log.often("accept", n=many)
    assert written()[0]["unsaid"] + sum(line.get("unsaid", 0) for line in said) == many - len(said)
    logs.set_level("debug")
    for n in range(many):
        log.often("accept", n=n)
    assert len(written()) == many


def test_configuring_twice_writes_once(configure: Configure) -> None:
    configure()
    written = configure()
    logs.get("x").info("claim")
    assert len(written()) == 1


def test_a_bound_logger_keeps_its_fields(configure: Configure) -> None:
    written = configure()
    logs.get("x").bind(lane="urgent").info("claim", n=1)
    assert (written()[0]["lane"], written()) == ("urgent", [])


def test_a_level_that_is_off_costs_next_to_nothing(configure: Configure) -> None:
    configure()
    log = logs.get("x")
    plain = structlog.stdlib.BoundLogger(logging.getLogger("x"), logs._FRONT, {})

    def cost(of: Callable[..., Any]) -> float:
        return (
            min(timeit.repeat(lambda: of("claim", task_id="t1", n=3), number=5_000, repeat=5, timer=process_time))
            / 5_000
        )

    assert cost(log.debug) < 5e-6, "seconds; a generous bound for a busy machine, 0.4 us on a quiet one"
    assert cost(log.debug) < cost(plain.debug)


@pytest.mark.parametrize("text", ["a." * 15_000 + "@", "a-" * 15_000 + "@x", "a://" * 8_000 + "@"])
def test_what_somebody_made_long_is_looked_through_soon(text: str) -> None:
    began = time.process_time()
    logs.redact(text)
    assert time.process_time() - began < 0.5
