"""The doctor among real processes and real Redis servers, sound and unsound."""

import os
from pathlib import Path

import pytest
import redis

from dualloop.doctor import examine
from shared import keys
from shared.file_lock import try_lock
from shared.settings import Settings
from tests import ears
from tests.conftest import SERVERS, StartRedis
from tests.stories.stack import running
from tests.stories.terminal import Said, Terminal
from tests.waiting import eventually


def levels(said: Said) -> dict[str, str]:
    """The worst level of each name."""
    worst: dict[str, str] = {}
    for finding in said.json["findings"]:
        order = ("ok", "warn", "fail")
        worst[finding["name"]] = max(worst.get(finding["name"], "ok"), finding["level"], key=order.index)
    return worst


def about(said: Said, name: str) -> str:
    """Detail and remedy of the last finding of this name."""
    found = [one for one in said.json["findings"] if one["name"] == name]
    return f"{found[-1]['detail']} → {found[-1]['remedy']}"


def _left_by_one_that_had_its_port(folder: Path) -> None:
    (own,) = folder.glob("background-*.port")
    own.with_name("background-ffffffffffff.port").write_text(own.read_text())


@ears.wanted
async def test_a_sound_system_passes_and_each_part_that_goes_is_named(start_redis: StartRedis, tmp_path: Path) -> None:
    server = start_redis("--appendonly", "yes")
    async with running(server.url, tmp_path) as stack:
        terminal = Terminal(tmp_path, DUALLOOP_URL=stack.url, **{**stack.env, "DUALLOOP_LOG_LEVEL": "debug"})
        _left_by_one_that_had_its_port(Path(terminal.env["DUALLOOP_STATE_DIR"]))
        sound = await terminal.run("doctor", "--json")
        assert (sound.code, sound.err) == (0, ""), sound
        assert set(levels(sound).values()) == {"ok"}
        assert {
            "settings",
            "state folder",
            "redis",
            "clock",
            "workers",
            "catalogue",
            "foreground",
            "background",
        } <= set(levels(sound))
        assert [one["name"] for one in sound.json["findings"]].count("background") == 1
        assert sound.json["ok"] is True
        assert sound.json["settings"]["DUALLOOP_LOG_LEVEL"] == "debug"
        human = await terminal.run("doctor")
        assert human.code == 0
        assert human.out.endswith("\nAll is well.\n")
        assert "device.control@1" in human.out

        stack.workers[0].kill()

        async def lapsed() -> Said | None:
            said = await terminal.run("doctor", "--json")
            return said if levels(said)["workers"] == "fail" else None

        dead = await eventually(lapsed, within=90, what="its lease has lapsed")
        assert dead is not None
        assert dead.code == 1
        assert "no worker is alive" in about(dead, "workers")
        assert levels(dead)["background"] == "warn"
        assert "rm " in about(dead, "background")

        stack.foregrounds[0].kill()
        server.process.kill()
        server.process.wait()
        away = await terminal.run("doctor")
        assert away.code == 1
        assert away.out.count("\nfail") == 2
        assert "cannot be used" in away.out
        assert "nobody answers at" in away.out
        assert away.err.endswith("checks failed: redis, foreground.\n")


@pytest.mark.parametrize("name", SERVERS)
async def test_a_redis_that_would_lose_missions_is_told_of(start_redis: StartRedis, tmp_path: Path, name: str) -> None:
    server = start_redis("--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru", name=name)
    with server.client() as client:
        client.config_set("requirepass", "hunter2")
    url = server.url.replace("unix://", "unix://:hunter2@")
    said = await Terminal(tmp_path, DUALLOOP_REDIS_URL=url, DUALLOOP_PORT="9").run("doctor", "--json")
    assert said.code == 1
    assert "hunter2" not in said.out + said.err
    found = levels(said)
    assert (found["redis"], found["redis eviction"], found["redis persistence"]) == ("ok", "fail", "warn")
    assert "noeviction" in about(said, "redis eviction")
    assert found["fleet"] == "warn"
    with redis.Redis.from_url(url) as client:
        client.hset(keys.FLEET, mapping={"shards": 4, "mac_key": "x"})
        client.zadd(keys.CATALOGUE_SEEN, {"old.type@1": 1.0})
        client.sadd(keys.parked_types(3), "new.type@2")
        client.zadd(keys.parked(3, "new.type@2"), {"id": 1.0})
    found = levels(said := await Terminal(tmp_path, DUALLOOP_REDIS_URL=url, DUALLOOP_PORT="9").run("doctor", "--json"))
    assert found["fleet"] == "fail"
    assert "DUALLOOP_SHARDS=4" in about(said, "fleet")
    assert (found["workers"], found["catalogue"], found["missions"]) == ("fail", "warn", "warn")
    assert "no worker is alive on shard 0, 1, 2, 3" in about(said, "workers")
    assert "1 of new.type@2" in about(said, "missions")


async def test_without_anything_it_says_where_to_begin(tmp_path: Path) -> None:
    said = await Terminal(tmp_path, DUALLOOP_PORT="9").run("doctor", "--json")
    assert said.code == 1
    assert levels(said)["state folder"] == "ok"
    assert "dualloop up" in about(said, "redis")
    assert not (tmp_path / "state").exists()
    (tmp_path / "state").mkdir(mode=0o755)
    for url in ("http://127.0.0.1:9", "redis://127.0.0.1:9", "redis://127.0.0.1:x"):
        said = await Terminal(tmp_path, DUALLOOP_PORT="9", DUALLOOP_REDIS_URL=url).run("doctor", "--json")
        assert (said.code, levels(said)["redis"], levels(said)["state folder"]) == (1, "fail", "warn"), url
    assert "chmod 700" in about(said, "state folder")
    wrong = await Terminal(tmp_path, DUALLOOP_LEASE_S="-1").run("doctor")
    assert (wrong.code, wrong.err[:18]) == (1, "DUALLOOP_LEASE_S: ")


def test_a_redis_that_is_there_and_does_not_answer_is_not_told_as_none(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path, port=9)
    (tmp_path / "redis").mkdir()

    def told() -> str:
        (found,) = (one for one in examine(settings) if one.name == "redis")
        return f"{found.level}: {found.detail}"

    none = f"fail: DUALLOOP_REDIS_URL is not set, and no dualloop up runs on {tmp_path}"
    assert told() == none
    assert list((tmp_path / "redis").iterdir()) == [], "it changes nothing"
    lock = try_lock(tmp_path / "redis" / "server.lock")
    assert lock is not None
    assert told() == f"fail: the one that dualloop up runs on {tmp_path} does not answer"
    os.close(lock)
    assert told() == none


@ears.wanted
async def test_it_says_which_engine_hears_and_whether_it_listens(tmp_path: Path) -> None:
    embedded = await Terminal(tmp_path, DUALLOOP_PORT="9").run("doctor", "--json")
    assert (levels(embedded)["speech"], "English" in about(embedded, "speech")) == ("ok", True)
    for wrong, detail in (
        ({"DUALLOOP_WYOMING_URL": "tcp://127.0.0.1:9"}, "wyoming does not listen"),
        ({"DUALLOOP_SPEECH_ENGINE": "whisper"}, "DUALLOOP_WHISPER_DIR is not set"),
    ):
        said = await Terminal(tmp_path, DUALLOOP_PORT="9", **wrong).run("doctor", "--json")
        assert (levels(said)["speech"], detail in about(said, "speech")) == ("fail", True), said.out
