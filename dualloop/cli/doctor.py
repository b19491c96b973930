"""Say whether all that Dual Loop stands on is sound."""

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

    margin, width = 8 + _NAME, max(60, min(console().width, 140))
    lines = _wrapped(finding.detail, width - margin) or [""]
    if finding.remedy:
        first, *others = _wrapped(finding.remedy, width - margin - 2)
        lines += [f"→ {first}", *(f"  {line}" for line in others)]
    text = Text(f"{finding.level:6}  {finding.name:{_NAME}}" + f"\n{' ' * margin}".join(lines))
    text.stylize(STYLES[finding.level], 0, len(finding.level))
    console().print(text, soft_wrap=True)


def _wrapped(text: str, width: int) -> list[str]:
    from rich.text import Text  # noqa: PLC0415  other commands start without it

    return [line.plain.rstrip() for line in Text(clean(text)).wrap(console(), width, overflow="fold")]
