"""What Home Assistant's discovery lets announcements abbreviate, and the few templates that are understood here. Pure.

https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery has the whole list; here is what devices of ours need.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from backend_loop.devices.mqtt.dialects.described import LONGEST

SHORT: Final = {
    "avty": "availability",
    "avty_mode": "availability_mode",
    "avty_t": "availability_topic",
    "avty_tpl": "availability_template",
    "bri_cmd_t": "brightness_command_topic",
    "bri_scl": "brightness_scale",
    "bri_stat_t": "brightness_state_topic",
    "bri_val_tpl": "brightness_value_template",
    "cmd_t": "command_topic",
    "curr_temp_t": "current_temperature_topic",
    "curr_temp_tpl": "current_temperature_template",
    "dev": "device",
    "dev_cla": "device_class",
    "max_temp": "max_temp",
    "min_temp": "min_temp",
    "mode_cmd_t": "mode_command_topic",
    "mode_stat_t": "mode_state_topic",
    "mode_stat_tpl": "mode_state_template",
    "o": "origin",
    "pl": "payload",
    "pl_avail": "payload_available",
    "pl_cls": "payload_close",
    "pl_lock": "payload_lock",
    "pl_not_avail": "payload_not_available",
    "pl_off": "payload_off",
    "pl_on": "payload_on",
    "pl_open": "payload_open",
    "pl_unlk": "payload_unlock",
    "pos_clsd": "position_closed",
    "pos_open": "position_open",
    "pos_t": "position_topic",
    "pos_tpl": "position_template",
    "pow_cmd_t": "power_command_topic",
    "set_pos_t": "set_position_topic",
    "stat_clsd": "state_closed",
    "stat_locked": "state_locked",
    "stat_off": "state_off",
    "stat_on": "state_on",
    "stat_open": "state_open",
    "stat_t": "state_topic",
    "stat_unlocked": "state_unlocked",
    "stat_val_tpl": "state_value_template",
    "t": "topic",
    "temp_cmd_t": "temperature_command_topic",
    "temp_stat_t": "temperature_state_topic",
    "temp_stat_tpl": "temperature_state_template",
    "uniq_id": "unique_id",
    "val_tpl": "value_template",
}
FIELD: Final = re.compile(
    r"\s*\{\{\s*value(?P<json>_json)?(?P<path>(\.[A-Za-z_]\w*|\[['\"][^'\"\]]+['\"]\])*)\s*\}\}\s*"
)
STEP: Final = re.compile(r"\.([A-Za-z_]\w*)|\[['\"]([^'\"\]]+)['\"]\]")


@dataclass(frozen=True, slots=True)
class Reader:
    """From a payload to what stands in it; None: nothing. Two of one template are the same.

    Attributes:
        path: to a value within JSON; None: the payload as it stands.
    """

    path: tuple[str, ...] | None = None

    def __call__(self, text: str) -> Any:
        """What stands there."""
        if self.path is None:
            return text
        try:
            value: Any = from_json(text, allow_inf_nan=False) if len(text) <= LONGEST else None
        except ValueError:
            return None
        for name in self.path:
            value = value.get(name) if isinstance(value, dict) else None
        return value


def spelled_out(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config with whole words, and with ``~`` put in its place."""
    base = config.get("~")
    return {
        SHORT.get(name, name): _put(value, base if isinstance(base, str) else "")
        for name, value in config.items()
        if name != "~"
    }


def _put(value: Any, base: str) -> Any:
    if isinstance(value, str) and base:
        if value.startswith("~"):
            return base + value[1:]
        return value[:-1] + base if value.endswith("~") else value
    if isinstance(value, list):
        return [spelled_out({**one, "~": base}) if isinstance(one, dict) else one for one in value]
    return value


def reader(template: Any) -> Reader | None:
    """What a template reads; None: it is one that is not understood, so what it tells is not known."""
    if template is None or template == "":
        return Reader()
    found = FIELD.fullmatch(template) if isinstance(template, str) else None
    if found is None:
        return None
    if not found["json"]:
        return Reader() if not found["path"] else None
    return Reader(tuple(one or other for one, other in STEP.findall(found["path"])))
