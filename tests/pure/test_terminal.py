"""What `dualloop up` shows to the person before it."""

import pytest
from pydantic import SecretStr

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
