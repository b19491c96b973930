"""What `dualloop up` shows to the person before it."""

import pytest
from pydantic import SecretStr

from dualloop.doctor import _redis, told
from dualloop.doctor.broker import broker
from dualloop.parts import Plan
from dualloop.terminal import Terminal
from shared.settings import Settings


@pytest.mark.parametrize("own_home", [True, False])
def test_only_a_device_that_is_there_is_to_be_tried(capsys: pytest.CaptureFixture[str], own_home: bool) -> None:
    settings = Settings(_env_file=None, mqtt_url=SecretStr("mqtt://house"))
    Terminal().ready(Plan(settings, own_home=own_home))
    shown = capsys.readouterr().out
    assert ("light.living_room" in shown) is ("CORRELATION_ID" in shown) is own_home
    assert ("dualloop doctor" in shown) is not own_home


@pytest.mark.parametrize(
    "url",
    [
        *("mqtt://me:hunter2@house", "mqtt://me:hun/ter2@house", "mqtt://me:hunter2", "mqtt://me:12/hunter2@house"),
        *("me:hunter2@house", "mqtt:/me:hunter2@house", "mqtt:// me:hunter2@house", "mqtt://me:hun@ter2@house"),
        *("mqtt://me:12#hunter2@house", "mqtt://me:hunter2@", "mqtt://house?password=hunter2", "me:hunter2"),
    ],
)
def test_no_password_is_shown_however_it_is_written(capsys: pytest.CaptureFixture[str], url: str) -> None:
    known = {"home_url": url, "mqtt_url": SecretStr(url), "outside_url": url, "redis_url": url}
    settings = Settings(_env_file=None).model_copy(update=known)
    Terminal().ready(Plan(settings, own_home=False))
    shown = capsys.readouterr().out + str(told(settings)) + str([*_redis(url, settings)])
    shown += str([*broker(settings.model_copy(update={"mqtt_url": SecretStr("mqtt://127.0.0.1:1/")}))])
    assert "ter2" not in shown
    assert "me:" not in shown


def test_where_it_is_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {
        "mqtt://me:secret@house:1884": "mqtt://***@house:1884",
        "redis://127.0.0.1:6379/0": "redis://127.0.0.1:6379/0",
        "unix:///run/redis.sock": "unix:///run/redis.sock",
    }
    for url, told_as in shown.items():
        settings = Settings(_env_file=None, mqtt_url=SecretStr(url))
        Terminal().ready(Plan(settings, own_home=False))
        assert f"  {told_as}\n" in capsys.readouterr().out
