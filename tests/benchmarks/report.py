"""The table on the terminal, and the same as JSON."""

import json
import math
import platform
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks.figure import Figure, median

_COLOURS = {"ok": "green", "MISSED": "bold red", "–": "dim"}


def table(figures: Sequence[Figure]) -> None:
    """Print it."""
    grid = Table(title="Dual Loop, each figure beside its peer in the same run", title_justify="left")
    for heading in ("figure", "server"):
        grid.add_column(heading, no_wrap=True)
    for heading in ("ours", "peer", "ratio [min–max]", "floor", "verdict"):
        grid.add_column(heading, justify="right", no_wrap=True)
    last = None
    for figure in figures:
        row = figure.row
        if last is not None and last.split("-")[0] != row.name.split("-")[0]:
            grid.add_section()
        last = row.name
        ratios = [sample.ratio for sample in figure.samples]
        spread = "" if not row.peer else f"{_number(median(ratios))} [{_number(min(ratios))}–{_number(max(ratios))}]"
        grid.add_row(
            row.what,
            figure.server,
            f"{_number(median([sample.ours for sample in figure.samples]))} {row.unit}",
            f"{row.peer} {_number(median([sample.peer for sample in figure.samples]))}" if row.peer else "",
            spread,
            row.limit if figure.judged else "",
            f"[{_COLOURS[figure.verdict]}]{figure.verdict}[/]",
        )
    Console(width=None if Console().is_terminal else 140).print(grid)


def as_json(figures: Sequence[Figure], file: Path) -> None:
    """Every sample, for whoever compares runs."""
    document = {
        "machine": {"python": platform.python_version(), "system": platform.platform()},
        "figures": [
            {
                "name": figure.row.name,
                "what": figure.row.what.strip(),
                "server": figure.server,
                "unit": figure.row.unit,
                "peer": figure.row.peer or None,
                "floor": figure.row.limit or None,
                "verdict": figure.verdict,
                "ratio": _finite(median([sample.ratio for sample in figure.samples])),
                "samples": [{"ours": _finite(one.ours), "peer": _finite(one.peer)} for one in figure.samples],
            }
            for figure in figures
        ],
    }
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _finite(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
