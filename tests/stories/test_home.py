"""The simulated home as a process: what it keeps, how it misbehaves, and how it ends."""

import concurrent.futures
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM

import httpx
import pytest

from tests.home import Home, running_home
from tests.waiting import until

LAMP = "light.living_room"


@pytest.fixture
def pool() -> Iterator[concurrent.futures.ThreadPoolExecutor]:
    with concurrent.futures.ThreadPoolExecutor() as executor:
        yield executor


def test_a_home_killed_at_once_after_an_answer_has_forgotten_nothing(tmp_path: Path) -> None:
    with running_home(tmp_path) as home:
        home.faults(LAMP, latency_ms=1)
        assert home.act(LAMP, "turn_on", key="a", fence=4).is_success
        before, url = home.look(LAMP), home.url
        home.end(SIGKILL)
    with running_home(tmp_path) as home:
        after = home.look(LAMP)
        assert home.url == url, "a restarted home is found where it was"
        for name in ("value", "version", "changes", "faults"):
            assert after[name] == before[name]
        assert home.act(LAMP, "turn_on", key="a", fence=4).is_success, "the key is still known"
        assert [line["key"] for line in home.acts(LAMP)] == ["a"]
        assert home.act(LAMP, "turn_off", key="b", fence=3).status_code == 409, "and so is the fence"


@pytest.mark.parametrize("signum", [SIGTERM, SIGINT])
def test_it_ends_with_0_at_a_signal_though_a_request_is_held(
    tmp_path: Path, pool: concurrent.futures.ThreadPoolExecutor, signum: int
) -> None:
    with running_home(tmp_path) as home:
        home.hold(LAMP, "act")
        held = pool.submit(home.act, LAMP, "turn_on")
        home.when_held(LAMP)
        home.process.send_signal(signum)
        assert home.process.wait(timeout=60) == 0
        with contextlib.suppress(httpx.TransportError):
            assert held.result(timeout=60).status_code == 504, "what came of it is unknown"
        assert not (tmp_path / "home.url").exists()


def test_a_second_home_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with running_home(tmp_path) as home, pytest.raises(AssertionError, match="exited with 1"), running_home(tmp_path):
        home.look(LAMP)


def test_a_home_whose_last_port_is_taken_takes_another(tmp_path: Path) -> None:
    with running_home(tmp_path) as home:
        port = int(home.url.rsplit(":", 1)[1])
        assert home.end() == 0
    with socket.create_server(("127.0.0.1", port)), running_home(tmp_path) as home:
        assert not home.url.endswith(f":{port}")
        assert home.look(LAMP)["reachable"]


def test_every_reading_has_a_version_and_the_time_it_was_read(home: Home) -> None:
    first = home.http.get(f"/devices/{LAMP}").json()
    again = home.http.get(f"/devices/{LAMP}").json()
    assert again["version"] == first["version"]
    assert again["observed_at"] >= first["observed_at"]
    assert int(home.hand(LAMP, power="on")["version"]) > int(first["version"])
    assert home.http.get(f"/devices/{LAMP}").json()["changed_by"] == "hand"


def test_the_same_key_acts_once_whatever_happened_since(home: Home) -> None:
    for _ in range(2):
        assert home.act(LAMP, "turn_on", key="once").json() == {"entity": LAMP, "key": "once", "done": True}
        home.hand(LAMP, power="off")
    assert home.look(LAMP)["value"]["power"] == "off"
    assert [line["key"] for line in home.acts(LAMP)].count("once") == 1


def test_a_key_of_another_order_is_refused(home: Home) -> None:
    home.act(LAMP, "turn_on", key="mine")
    assert home.act(LAMP, "turn_off", key="mine").status_code == 422
    assert home.act("light.hall", "turn_on", key="mine").status_code == 422


def test_an_older_fence_is_refused_and_a_repeat_with_a_later_one_raises_it(home: Home) -> None:
    assert home.act("light.hall", "turn_on", key="f1", fence=10).is_success
    assert home.act("light.hall", "turn_on", key="f1", fence=12).is_success
    assert home.act("light.hall", "turn_off", key="f2", fence=11).status_code == 409
    assert home.look("light.hall")["value"]["power"] == "on"


def test_offline_refuse_and_lie(home: Home) -> None:
    home.faults(LAMP, offline=True)
    assert home.http.get(f"/devices/{LAMP}").status_code == 503
    assert home.act(LAMP, "turn_on", key="offline").status_code == 503
    home.faults(LAMP, refuse=True)
    assert home.act(LAMP, "turn_on", key="refuse").status_code == 422
    home.faults(LAMP, lie=True)
    assert home.act(LAMP, "turn_on", key="lie").is_success
    assert home.look(LAMP)["value"]["power"] == "off"
    assert not {"offline", "refuse", "lie"} & {line["key"] for line in home.acts(LAMP)}


def test_a_lost_answer_had_its_effect(home: Home) -> None:
    home.faults(LAMP, lose_answer=True)
    assert home.act(LAMP, "turn_on", key="lost").status_code == 504
    assert home.look(LAMP)["value"]["power"] == "on"


def test_a_stale_bridge_tells_the_age_of_what_it_shows(home: Home) -> None:
    home.faults(LAMP, observe_stale=True)
    home.hand(LAMP, power="on")
    reading = until(lambda: (now := home.http.get(f"/devices/{LAMP}").json())["age_ms"] > 0 and now)
    assert reading["value"]["power"] == "off"
    assert home.look(LAMP)["value"]["power"] == "on", "a person sees the lamp itself"


def test_a_silent_device_answers_only_when_the_fault_is_over(
    home: Home, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    home.faults(LAMP, silent=True)
    with pytest.raises(httpx.ReadTimeout):
        home.http.get(f"/devices/{LAMP}", timeout=0.2)
    home.hold(LAMP, "act")
    asked = pool.submit(home.act, LAMP, "turn_on", key="silent")
    home.when_held(LAMP)  # it is there, however slow the machine is: else it would meet no silence
    home.release(LAMP)
    with pytest.raises(concurrent.futures.TimeoutError):
        asked.result(timeout=0.2)
    home.faults(LAMP)
    assert asked.result(timeout=60).status_code == 504
    assert home.look(LAMP)["value"]["power"] == "off"


@pytest.mark.parametrize(("point", "power"), [("act", "off"), ("acted", "on")])
def test_a_request_is_held_exactly_where_it_was_asked(
    home: Home, pool: concurrent.futures.ThreadPoolExecutor, point: str, power: str
) -> None:
    home.hold(LAMP, point)
    acting = pool.submit(home.act, LAMP, "turn_on", key=point)
    assert home.when_held(LAMP) == [point]
    assert home.look(LAMP)["value"]["power"] == power
    assert home.http.get(f"/devices/{LAMP}").is_success, "only the next request is held"
    home.release(LAMP)
    assert acting.result(timeout=60).is_success
    assert home.look(LAMP)["value"]["power"] == "on"


@pytest.mark.parametrize(("point", "shown"), [("observe", "on"), ("observed", "off")])
def test_a_reading_is_held_before_or_after_it_is_taken(
    home: Home, pool: concurrent.futures.ThreadPoolExecutor, point: str, shown: str
) -> None:
    home.hold(LAMP, point)
    reading = pool.submit(home.http.get, f"/devices/{LAMP}")
    home.when_held(LAMP)
    home.hand(LAMP, power="on")
    home.release(LAMP)
    assert reading.result(timeout=60).json()["value"]["power"] == shown


def test_latencies_pass_before_and_after_the_effect(home: Home, pool: concurrent.futures.ThreadPoolExecutor) -> None:
    home.faults(LAMP, act_latency_ms=600_000)
    late, waits = {"action": "turn_on", "key": "late", "fence": 1}, httpx.Timeout(60, read=1)
    pool.submit(home.http.post, f"/devices/{LAMP}/act", json=late, timeout=waits)
    until(lambda: home.look(LAMP)["value"]["power"] == "on", what="the effect comes before its answer")
    home.faults(LAMP, latency_ms=50)
    assert home.act(LAMP, "turn_off", key="slow").elapsed.total_seconds() >= 0.05


def test_a_hand_and_faults_at_once_are_both_done_or_refused(home: Home) -> None:
    answer = home.http.post(f"/devices/{LAMP}", json={"hand": {"power": "on"}, "faults": {"offline": True}})
    assert (answer.json()["value"]["power"], answer.json()["reachable"]) == ("on", False)
    refused = home.http.post(f"/devices/{LAMP}", json={"hand": {"power": "half"}, "faults": {}})
    assert refused.status_code == 422
    assert not home.look(LAMP)["reachable"]


@pytest.mark.parametrize("path", ["", "/hand", "/journal", "/hold"])
def test_an_unknown_device_is_404(home: Home, path: str) -> None:
    assert home.http.get(f"/devices/light.nowhere{path}").status_code == 404


def test_a_foreign_host_header_is_not_served(home: Home) -> None:
    """DNS rebinding: a page of another site must not switch the lights."""
    assert home.http.get("/devices", headers={"host": "evil.example"}).status_code == 400
