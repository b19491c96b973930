"""The tables of the README that come from the code. ``python -m tests.readme_tables`` writes them anew."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from pydantic.fields import FieldInfo

from shared.errors import TITLES
from shared.settings import Settings

README: Final = Path(__file__).parent.parent / "README.md"


def settings() -> str:
    """Every variable with its default and its unit."""
    rows = [
        f"| `DUALLOOP_{name.upper()}` | {_default(field)} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(("| variable | default | what |", "|---|---|---|", *rows))


def _default(field: FieldInfo) -> str:
    value = field.default
    if isinstance(value, tuple):
        value = ",".join(value)
    if isinstance(value, float):
        value = f"{value:.9g}"  # a fortnight of seconds is no power of ten
    return "" if value in (None, "") else f"`{value}`"


def problems() -> str:
    """Every code of a problem with its status."""
    rows = [f"| `{code}` | {status} | {title} |" for code, (status, title) in sorted(TITLES.items(), key=_by_status)]
    return "\n".join(("| code | status | title |", "|---|---|---|", *rows))


def _by_status(row: tuple[str, tuple[int, str]]) -> tuple[int, str]:
    return row[1][0], row[0]


TABLES: Final[Mapping[str, Callable[[], str]]] = {"settings": settings, "problems": problems}


def renewed(text: str) -> str:
    """The README with its tables as the code has them now."""
    for name, table in TABLES.items():
        found = re.subn(
            rf"(<!-- {name}:[^\n]*-->\n).*?(<!-- end -->)", rf"\g<1>\n{table()}\n\n\g<2>", text, flags=re.DOTALL
        )
        text, count = found
        assert count == 1, f"the README has {count} places for the table {name}"
    return text


if __name__ == "__main__":
    README.write_text(renewed(README.read_text()))
