"""Which way leads to the devices, as it is configured."""

import httpx
import pytest
from pydantic import SecretStr

from backend_loop.devices.configured import device_of
from backend_loop.devices.http import HttpDevice
from backend_loop.devices.mqtt.device import MqttDevices
from shared.mqtt import MqttUrlError
from shared.settings import Settings


@pytest.mark.parametrize(
    ("broker", "home", "way"),
    [
        (None, None, type(None)),
        (None, "http://127.0.0.1:1", HttpDevice),
        ("mqtt://127.0.0.1:1", None, MqttDevices),
        ("mqtt://127.0.0.1:1", "http://127.0.0.1:1", MqttDevices),
    ],
)
async def test_a_broker_is_taken_before_a_home(broker: str | None, home: str | None, way: type) -> None:
    secret = None if broker is None else SecretStr(broker)
    settings = Settings(mqtt_url=secret, home_url=home, _env_file=None)
    async with httpx.AsyncClient() as client:
        assert type(device_of(settings, client, dict)) is way


async def test_a_wrong_url_is_said_by_its_name_and_without_its_password() -> None:
    settings = Settings(mqtt_url=SecretStr("mqtt://home:hunter2@host/topic"), _env_file=None)
    async with httpx.AsyncClient() as client:
        with pytest.raises(MqttUrlError, match="DUALLOOP_MQTT_URL: the URL of an MQTT broker ends") as refused:
            device_of(settings, client, dict)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("topics", ["a/#", "/a", "a,b+"])
def test_base_topics_have_no_wildcards(topics: str) -> None:
    with pytest.raises(ValueError, match="is no topic"):
        Settings(zigbee2mqtt_topic=topics, _env_file=None)


def test_several_bridges_are_named_by_comma() -> None:
    assert Settings(zigbee2mqtt_topic="zigbee2mqtt, attic/z2m", _env_file=None).zigbee2mqtt_topic == (
        "zigbee2mqtt",
        "attic/z2m",
    )
