"""What a broker's URL says, and what is said of a wrong one."""

import pytest

from shared.mqtt import MqttUrl, MqttUrlError


@pytest.mark.parametrize(
    ("url", "at"),
    [
        ("mqtt://127.0.0.1", MqttUrl("127.0.0.1", 1883)),
        ("mqtt://broker.example:1884/", MqttUrl("broker.example", 1884)),
        ("mqtts://broker.example", MqttUrl("broker.example", 8883, secure=True)),
        ("mqtt://[::1]:1883", MqttUrl("::1", 1883)),
        ("mqtt://home:a%2Fb%40c@host:1", MqttUrl("host", 1, "home", "a/b@c")),
        ("mqtt://home@host", MqttUrl("host", 1883, "home")),
    ],
)
def test_it_says_where_the_broker_is_and_who_asks(url: str, at: MqttUrl) -> None:
    assert MqttUrl.parse(url) == at


@pytest.mark.parametrize(
    "url",
    [
        "",
        "broker:1883",
        "http://broker",
        "mqtt://",
        "mqtt://:1883",
        "mqtt://user:hunter2@broker:port",
        "mqtt://user:hunter2@broker:99999",
        "mqtt://user:hunter2@broker:0",
        "mqtt://user:hunter2@[::1",
        "mqtt://:hunter2@broker",
        "mqtt://user:hunter2@broker/topic",
        "mqtt://user:hunter2@broker?x=1",
    ],
)
def test_of_a_wrong_one_it_is_said_what_to_write_and_never_the_password(url: str) -> None:
    with pytest.raises(MqttUrlError, match="write mqtt://user:password@host") as refused:
        MqttUrl.parse(url)
    assert "hunter2" not in str(refused.value)


def test_who_asks_is_never_shown() -> None:
    at = MqttUrl.parse("mqtts://home:hunter2@broker")
    assert str(at) == "mqtts://broker:8883"
    assert "hunter2" not in repr(at)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mqtt://home:4711", "mqtt://home:…"),
        ("mqtt://home.example:4711", "mqtt://home.example:…"),
        ("mqtt://home:4711@broker:1884", "mqtt://broker:1884"),
        ("mqtt://127.0.0.1:4711", "mqtt://127.0.0.1:4711"),
        ("mqtt://localhost:4711", "mqtt://localhost:4711"),
        ("mqtts://[fe80::1]:4711", "mqtts://[fe80::1]:4711"),
        ("mqtt://mosquitto", "mqtt://mosquitto:1883"),
        ("mqtt://mosquitto:8883", "mqtt://mosquitto:8883"),
    ],
)
def test_digits_where_the_host_may_have_been_forgotten_are_not_shown(url: str, shown: str) -> None:
    assert str(MqttUrl.parse(url)) == shown
