"""Ids by their beginnings: what is shown of one can be typed back. Pure, but for `whole`, which asks the foreground.

There is no index of ids: who types a beginning has the list of missions read through for it, `CALLS` pages at most.
A whole id costs nothing.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final

from dualloop.cli.asking import ask
from dualloop.cli.output import ago, clean
from dualloop.errors import Refusal
from shared.ids import LENGTH

if TYPE_CHECKING:
    from dualloop.client import Client

SHORTEST: Final = 10
"""Characters of a beginning at least: what stands before says version, shard and the hour, and nothing of a mission."""
SHOWN: Final = 14
"""At least so many are shown: up to there it is a mission's millisecond, and others are to come."""
SPARE: Final = 2
"""So many more are shown than tell those apart that are listed, likewise."""
PAGE: Final = 200
CALLS: Final = 20
"""A call looks at 2,000 missions, fewer where many fit."""
NAMED: Final = 10
"""Of several that fit so many are named."""

_ID: Final = re.compile("0[4-7][0-9A-HJKMNP-TV-Z]*")
"""In base32 an id of version 1 begins so, whatever its shard."""
_ALIASES: Final = str.maketrans("OIL", "011")


def told_apart(ids: Iterable[str]) -> int:
    """How many characters tell each of these ids from all others among them, and a few more."""
    common = (len(_common(*pair)) for pair in pairwise(sorted(set(ids))))
    return max(SHOWN, max(common, default=0) + 1 + SPARE)


def canonical(text: str) -> str | None:
    """A beginning as ids are spelled, with what a list cut it by taken away; None: it is none, or a whole id.

    Raises:
        Refusal: it is one, and says nothing of a mission.
    """
    spelled = text.strip().rstrip("….").upper().translate(_ALIASES)
    if not _ID.fullmatch(spelled) or len(spelled) >= LENGTH:
        return None
    if len(spelled) < SHORTEST:
        raise Refusal(f"{text} may begin any id: give {SHORTEST} characters of it at least.")
    return spelled


def chosen(beginning: str, rows: Sequence[dict[str, Any]], *, complete: bool) -> str:
    """The one id that begins so; `rows` of the list of missions, all of them if it is `complete`.

    Raises:
        Refusal: there is none, or more than one, which it names, or there may be another.
    """
    fits = {str(row["task_id"]): row for row in rows if str(row["task_id"]).startswith(beginning)}
    if len(fits) > 1:
        more = [f"  and {len(fits) - NAMED} more"] if len(fits) > NAMED else []
        named = sorted(fits.values(), key=lambda row: str(row["created_at"]), reverse=True)[:NAMED]
        count = f"{len(fits)}" if complete else f"More than {len(fits)}"
        lines = [f"{count} missions begin with {beginning}: give more of it.", *map(_line, named)]
        raise Refusal(clean("\n".join([*lines, *more])))
    if not complete:
        raise Refusal(f"There are too many missions to look for {beginning} among them: give the whole id.")
    if not fits:
        raise Refusal(f"No mission begins with {beginning}: dualloop missions ls lists those that are kept.")
    return next(iter(fits))


def whole(texts: Sequence[str]) -> list[str]:
    """The ids that these are, or begin; what can be neither stays as it is, for the foreground to refuse.

    Raises:
        Refusal: as of `chosen`; or there is no foreground.
    """
    beginnings = {text: spelled for text in texts if (spelled := canonical(text)) is not None}
    if not beginnings:
        return list(texts)
    rows, complete = ask(lambda client: _like(client, _looked_for(beginnings.values())))
    ids = {text: chosen(spelled, rows, complete=complete) for text, spelled in beginnings.items()}
    return [ids.get(text, text) for text in texts]


def _common(one: str, other: str) -> str:
    """What both begin with."""
    return one[: next((n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))]


def _looked_for(beginnings: Iterable[str]) -> list[str]:
    """One text for all that begin alike, as far as they do: a shorter one would have nearly every mission listed."""
    alike = (list(some) for _, some in groupby(sorted(beginnings), key=lambda one: one[:SHORTEST]))
    return [_common(some[0], some[-1]) for some in alike]


async def _like(client: "Client", parts: Iterable[str]) -> tuple[list[dict[str, Any]], bool]:
    """Missions that have one of these in a name of theirs, and whether all were looked at."""
    rows, complete = list[dict[str, Any]](), True
    for part in parts:
        cursor = None
        for _ in range(CALLS):
            page = await client.missions(q=part, cursor=cursor, limit=PAGE)
            rows += page["missions"]
            if (cursor := page["cursor"]) is None:
                break
        complete = complete and cursor is None
    return rows, complete


def _line(row: dict[str, Any]) -> str:
    about = " ".join(part for part in (row["type"], row["target"]) if part)
    return f"  {row['task_id']}  {row['status']}  {about}, {ago(row['created_at'])} ago"
