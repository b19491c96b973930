"""What the doctor says about one thing."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """`detail` says what is; `remedy` what to do, where something is."""

    level: Literal["ok", "warn", "fail"]
    name: str
    detail: str
    remedy: str = ""


def ok(name: str, detail: str) -> Finding:
    """Well."""
    return Finding("ok", name, detail)


def warn(name: str, detail: str, remedy: str) -> Finding:
    """Works, and may not for long, or not for everybody."""
    return Finding("warn", name, detail, remedy)


def fail(name: str, detail: str, remedy: str) -> Finding:
    """Does not work."""
    return Finding("fail", name, detail, remedy)
