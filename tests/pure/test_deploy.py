"""The deploy files, as far as they can be checked without a Docker engine."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from ruamel.yaml import YAML

from backend_loop.database import path_of
from shared.mqtt import MqttUrl
from shared.settings import Settings
from tests import compose

ROOT = compose.FILE.parent
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
BROKER = ROOT / "deploy" / "mosquitto.conf"
SERVICES = compose.services()


def run(*command: str | Path) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def listener() -> int:
    """The port of the broker in its container."""
    found = re.search(r"^listener (\d+)$", BROKER.read_text(), re.MULTILINE)
    assert found
    return int(found[1])


def is_compose(file: Path) -> None:
    run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", file)


def test_the_compose_file_keeps_to_the_specification() -> None:
    is_compose(compose.FILE)


def test_the_override_that_the_readme_shows_does_too(tmp_path: Path) -> None:
    shown = re.search(r"```yaml\n# docker-compose.override.yml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert shown
    (tmp_path / "override.yml").write_text(shown[1])
    is_compose(tmp_path / "override.yml")


def test_the_dockerfile_is_sound() -> None:
    run(Path(sys.executable).parent / "hadolint", ROOT / "deploy" / "Dockerfile")


def test_who_is_waited_for_exists_and_can_be_healthy() -> None:
    for service in SERVICES.values():
        for other, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}
            assert "healthcheck" in SERVICES[other]


def test_every_volume_is_declared() -> None:
    declared = YAML(typ="safe").load(compose.FILE.read_text())["volumes"]
    used = {volume.partition(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())}
    assert used == set(declared)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_may_do_little_and_comes_back(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["restart"] == "unless-stopped"
    assert service["init"] is True
    assert service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}
    assert service["logging"]["options"]["max-size"]


def test_only_the_foreground_is_published_and_on_loopback_alone() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"foreground": [f"127.0.0.1:8000:{compose.settings(SERVICES['foreground']).port}"]}


def test_nothing_secret_stands_in_it() -> None:
    names = {name for service in SERVICES.values() for name in compose.environment(service)}
    assert [name for name in names if re.search("PASS|SECRET|TOKEN|CREDENTIAL|KEY", name)] == []


@pytest.mark.parametrize("name", compose.OURS)
def test_its_variables_are_settings(name: str) -> None:
    known = {f"{compose.PREFIX}{field.upper()}" for field in Settings.model_fields}
    assert set(SERVICES[name]["environment"]) <= known
    assert all(isinstance(value, str | None) for value in SERVICES[name]["environment"].values())


def test_what_the_readme_has_said_to_up_can_be_said_to_it_too() -> None:
    """All but `DUALLOOP_MISSIONS`, whose files have to be mounted."""
    lines = [line for line in (ROOT / "README.md").read_text().splitlines() if " make up" in line]
    said = {name for line in lines for name in re.findall(r"(DUALLOOP_[A-Z_]+)=", line.partition(" make up")[0])}
    given = compose.FILE.read_text()
    taken = {name for name in said if re.search(rf"\${{{name}:-|^ +{name}:( #.*)?$", given, re.MULTILINE)}
    assert "DUALLOOP_MODEL_NAME" in taken
    assert said - taken == {"DUALLOOP_MISSIONS"}


def test_the_addresses_lead_to_a_service_that_serves_that_name() -> None:
    front, worker, home, outside = (compose.settings(SERVICES[name]) for name in compose.OURS)
    assert home.mqtt_url == worker.mqtt_url
    assert outside.url == front.url
    for one in (front, worker):
        at = urlsplit(one.home_url or "")
        assert (at.hostname, at.port) == ("home", home.home_port)
        assert at.hostname in home.allowed_hosts
        at = urlsplit(one.outside_url or "")
        assert (at.hostname, at.port) == ("outside", outside.outside_port)
        assert at.hostname in outside.allowed_hosts
        assert urlsplit(one.redis_url or "").hostname == "valkey"
        broker = MqttUrl.parse(one.mqtt_url.get_secret_value() if one.mqtt_url else "")
        assert (broker.host, broker.port) == ("mosquitto", listener())
        (told,) = one.url
        assert (urlsplit(told).hostname, urlsplit(told).port) == ("foreground", front.port)
    assert {"localhost", "127.0.0.1", "foreground"} <= set(front.allowed_hosts)
    listening = {front.host, home.home_host, outside.outside_host}
    assert listening == {"0.0.0.0"}  # noqa: S104  within the containers; what is published is above


def test_whatever_hosts_are_named_the_containers_reach_the_foreground() -> None:
    """Else the bank's word that an order was paid would be refused, and `exec … dualloop` as well."""
    named = YAML(typ="safe").load(compose.FILE.read_text())["services"]["foreground"]["environment"]
    assert re.sub(r"\$\{.*?\}", "home.example", named["DUALLOOP_ALLOWED_HOSTS"]) == "home.example,foreground"


def test_health_is_asked_where_it_is_told() -> None:
    front, worker, home, outside = (compose.settings(SERVICES[name]) for name in compose.OURS)
    assert front.port == worker.health_port == home.home_port == outside.outside_port == 8000
    for name in compose.OURS:
        assert '"127.0.0.1", 8000' in SERVICES[name]["healthcheck"]["test"][3]


def test_a_worker_can_be_lost_and_none_is_killed_while_it_drains() -> None:
    assert SERVICES["background"]["deploy"]["replicas"] >= 2
    for name in ("foreground", "background"):
        drain_s = compose.settings(SERVICES[name]).drain_s
        assert compose.seconds(SERVICES[name]["stop_grace_period"]) >= drain_s + 5


def test_redis_keeps_what_was_accepted() -> None:
    command = SERVICES["valkey"]["command"]
    options = dict(zip(command[1::2], command[2::2], strict=True))
    assert options["--appendonly"] == "yes"
    assert options["--appendfsync"] == "everysec"
    assert options["--maxmemory-policy"] == "noeviction"
    assert "valkey:/data" in SERVICES["valkey"]["volumes"]


def test_what_workers_write_is_what_the_foreground_gives_out() -> None:
    front, worker = (SERVICES[name] for name in ("foreground", "background"))
    folder = str(compose.settings(worker).files_dir)
    assert str(compose.settings(front).files_dir) == folder
    assert f"files:{folder}" in worker["volumes"]
    assert f"files:{folder}:ro" in front["volumes"]
    assert Path(path_of(compose.settings(worker).database_url)).parent.name == "dualloop-data"
    mounted = [volume.split(":")[1] for service in (front, worker) for volume in service["volumes"]]
    owned = re.search(r"install --directory --owner=dualloop (?:.*\\\n)*.*", DOCKERFILE)
    assert owned is not None
    assert set(mounted) <= set(owned[0].split())


def test_the_broker_is_configured_as_its_clients_need_it() -> None:
    (given,) = SERVICES["mosquitto"]["configs"]
    configs = YAML(typ="safe").load(compose.FILE.read_text())["configs"]
    assert configs == {given["source"]: {"file": f"./{BROKER.relative_to(ROOT)}"}}
    assert given["target"] == "/mosquitto/config/mosquitto.conf"
    assert "set_tcp_nodelay true" in BROKER.read_text().splitlines(), "else a question takes 44 ms"


def test_the_inventory_is_in_a_volume_that_begins_with_the_demonstration() -> None:
    front = SERVICES["foreground"]
    path = compose.settings(front).home_file
    assert path is not None
    assert f"inventory:{path.parent}" in front["volumes"], "it is edited by way of the foreground"
    assert f"COPY --chown=dualloop:dualloop dualloop/home/inventory.json {path}\n" in DOCKERFILE


def test_what_the_image_is_made_of_is_there_and_not_ignored() -> None:
    copied = [words.split()[:-1] for words in re.findall(r"^COPY (?!--)(.*)$", DOCKERFILE, re.MULTILINE)]
    sources = {source for words in copied for source in words}
    assert [source for source in sources if not (ROOT / source).exists()] == []
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert {line.removeprefix("!") for line in lines if line.startswith("!")} == sources
    assert "*" in lines


def test_the_image_has_every_package_and_the_pinned_tool() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for package in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        assert f"COPY {package} {package}\n" in DOCKERFILE
    pinned = re.search(r"^UV_VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert pinned
    assert f"uv=={pinned[1]}" in DOCKERFILE
    assert "requirements.lock" in DOCKERFILE


def test_the_image_runs_as_nobody_in_particular() -> None:
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) == ["10001:10001"]
    state = SERVICES["background"]["tmpfs"]
    assert state == ["/var/lib/dualloop:mode=0700,uid=10001,gid=10001"]
    assert "DUALLOOP_STATE_DIR=/var/lib/dualloop" in DOCKERFILE
    stages = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert len(set(stages)) == 1, "the environment is made where it is used"
    assert not stages[0].endswith(":latest")
