"""docker-compose.yml as an engine would read it: merged, with its variables at their defaults."""

import re
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from shared.settings import Settings

FILE: Final = Path(__file__).parent.parent / "docker-compose.yml"
OURS: Final = ("foreground", "background", "home", "outside")
PREFIX: Final = "DUALLOOP_"


def services() -> dict[str, dict[str, Any]]:
    """The services, by name."""
    services: dict[str, dict[str, Any]] = _resolved(YAML(typ="safe").load(FILE.read_text()))["services"]
    return services


def _resolved(value: Any) -> Any:
    match value:
        case dict():
            return {name: _resolved(one) for name, one in value.items()}
        case list():
            return [_resolved(one) for one in value]
        case str():
            return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)
        case _:
            return value


def environment(service: dict[str, Any]) -> dict[str, str]:
    """What it gets where nobody has set anything: a variable without a value is taken from who starts the engine."""
    return {name: value for name, value in service.get("environment", {}).items() if value is not None}


def settings(service: dict[str, Any]) -> Settings:
    """What the process in it is configured to."""
    given: dict[str, Any] = {name.removeprefix(PREFIX).lower(): value for name, value in environment(service).items()}
    return Settings(_env_file=None, **given)


def seconds(text: str) -> float:
    """A duration such as ``30s``."""
    assert text.endswith("s")
    return float(text.removesuffix("s"))
