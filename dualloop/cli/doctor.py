"""Say whether all that Dual Loop stands on is sound."""

import textwrap
from typing import TYPE_CHECKING

import typer

from dualloop.cli.output import STYLES, Json, clean, console, machine, say
from dualloop.errors import Refusal
from shared.settings import Settings

if TYPE_CHECKING:
    from dualloop.doctor.finding import Finding

commands = typer.Typer()
_NAME = 19


@commands.command()
def doctor(*, json: Json = False) -> None:
    """Check settings, folder, Redis, clocks, workers, broker and foreground; exit code 1 if one of them fails."""
    from dualloop.doctor import examine, told  # noqa: PLC0415  other commands start without it

    settings, findings = Settings(), list["Finding"]()
    for finding in examine(settings):
        findings.append(finding)
        if not json:
            _print(finding)
    failed, warned = ([one for one in findings if one.level == level] for level in ("fail", "warn"))
    if json:
        machine({"ok": not failed, "findings": findings, "settings": told(settings)})
    if failed:
        raise Refusal(f"{len(failed)} of {len(findings)} checks failed: {', '.join(one.name for one in failed)}.")
    if not json:
        say(f"\nIt works; look at {', '.join(one.name for one in warned)}." if warned else "\nAll is well.", "bold")


def _print(finding: "Finding") -> None:
    from rich.text import Text  # noqa: PLC0415  other commands start without it

    margin, width = " " * (8 + _NAME), max(60, min(console().width, 140))
    head = f"{finding.level:6}  {finding.name:{_NAME}}"
    lines = textwrap.wrap(clean(finding.detail), width - len(margin), break_on_hyphens=False) or [""]
    if finding.remedy:
        lines += textwrap.wrap(f"→ {clean(finding.remedy)}", width - len(margin), subsequent_indent="  ")
    text = Text(head + f"\n{margin}".join(lines))
    text.stylize(STYLES[finding.level], 0, len(finding.level))
    console().print(text, soft_wrap=True)
