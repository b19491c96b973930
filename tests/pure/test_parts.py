"""Which processes one `up` runs, and what each is told."""

from pathlib import Path
from typing import Any

import pytest

from dualloop.parts import SERVER_PORTS, free_port, stages
from dualloop.stack import settled
from dualloop.supervisor import Part
from shared.settings import Settings


def parts(tmp_path: Path, **settings: Any) -> dict[str, Part]:
    """By name, in the order of stopping."""
    plan = settled(Settings(state_dir=tmp_path, redis_url="redis://somewhere", _env_file=None, **settings))
    return {part.name: part for stage in stages(plan) for part in stage}


def test_the_home_says_good_bye_by_a_broker_that_still_runs(tmp_path: Path) -> None:
    assert list(parts(tmp_path)) == ["foreground", "background", "home", "outside", "broker"]


def test_all_meet_on_the_broker_that_comes_along(tmp_path: Path) -> None:
    found = parts(tmp_path)
    (url,) = {part.env["DUALLOOP_MQTT_URL"] for part in found.values()}
    assert found["broker"].ready == url
    assert url == f"mqtt://127.0.0.1:{found['broker'].env['DUALLOOP_MQTT_PORT']}"
    assert str(found["home"].ready).endswith("/readyz"), "ready is who has announced its devices"
    assert (tmp_path / "home.json").exists(), "by whose names they are known"


@pytest.mark.parametrize(
    "named", [{"mqtt_url": "mqtt://user:secret@house"}, {"home_url": "http://house:1"}], ids=["broker", "bridge"]
)
def test_nothing_is_simulated_where_the_devices_are_elsewhere(tmp_path: Path, named: dict[str, str]) -> None:
    found = parts(tmp_path, **named)
    assert list(found) == ["foreground", "background", "outside"]
    told = {name: found["background"].env.get(f"DUALLOOP_{name.upper()}") for name in ("mqtt_url", "home_url")}
    assert told == {"mqtt_url": None, "home_url": None} | named
    assert not (tmp_path / "home.json").exists()


def test_the_graces_add_up_to_the_drain(tmp_path: Path) -> None:
    plan = settled(Settings(state_dir=tmp_path, redis_url="redis://x", drain_s=100, _env_file=None))
    assert sum(max(part.grace_s for part in stage) for stage in stages(plan)) == pytest.approx(100)


def test_who_has_little_to_do_at_the_end_gets_the_time_that_a_busy_machine_takes_for_it(tmp_path: Path) -> None:
    """With two seconds the outside services were killed on a machine where eight processes waited."""
    assert min(part.grace_s for part in parts(tmp_path).values()) >= 5


@pytest.mark.parametrize("drain_s", [0.5, 20, 600])
def test_nobody_drains_for_longer_than_was_said_nor_until_he_is_killed(tmp_path: Path, drain_s: float) -> None:
    found = parts(tmp_path, drain_s=drain_s).values()
    own = {part.name: float(part.env["DUALLOOP_DRAIN_S"]) for part in found}
    assert max(own.values()) <= drain_s
    assert all(own[part.name] <= part.grace_s - 1 for part in found)


def test_a_port_that_nobody_named_is_none_that_a_client_could_be_given() -> None:
    for _ in range(20):
        assert free_port("127.0.0.1") in SERVER_PORTS
    range_ = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if range_.exists():
        assert int(range_.read_text().split()[0]) not in SERVER_PORTS
