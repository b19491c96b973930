"""Catalogue rows as a file: for a first start, when commands are to be accepted before any worker ran (P15).

    {"v": 1, "rows": [{"type": …, "version": …, …}, …]}

A foreground publishes them where Redis has no catalogue yet. From then on they are rows like all others: a live
worker's take their place, and one that no worker announces goes after a day.
"""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from shared import keys
from shared.catalogue import Row
from shared.redis import Link

FORMAT: Final = 1


class CatalogueFileError(ValueError):
    """The file cannot be used; the sentence says what to do."""


def packed(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """The file's text, by type and version, so that two of the same rows are the same file."""
    ordered = sorted(rows, key=lambda row: (row["type"], row["version"]))
    return to_json({"v": FORMAT, "rows": ordered}, indent=2) + b"\n"


def read(path: Path) -> dict[str, bytes]:
    """Rows as the catalogue holds them, by type@version.

    Raises:
        CatalogueFileError: it cannot be read, or holds something else.
    """
    again = "write it anew: dualloop types export FILE"
    try:
        document = from_json(path.read_bytes())
        if not isinstance(document, dict) or document.get("v") != FORMAT:
            raise CatalogueFileError(f"{path} is no catalogue of this release: {again}")
        rows = [Row.model_validate(row) for row in document["rows"]]
    except OSError as error:
        raise CatalogueFileError(f"{path}, which DUALLOOP_CATALOGUE names, cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise CatalogueFileError(f"{path} has a row that is none ({first['loc']}: {first['msg']}): {again}") from error
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, CatalogueFileError):
            raise
        raise CatalogueFileError(f"{path} is no catalogue: {again}") from error
    return {row.kind: to_json(raw) for row, raw in zip(rows, document["rows"], strict=True)}


async def publish(link: Link, rows: Mapping[str, bytes]) -> bool:
    """Make them the catalogue, if there never was one; whether it was done.

    No script: each of these writes leaves a live worker's row alone, whoever comes in between, and may be done twice.

    Raises:
        RedisAwayError: perhaps only some of them are written; the next call goes on.
    """
    if not rows or await link.call("EXISTS", keys.CATALOGUE_REV):
        return False
    seconds, micros = await link.call("TIME")
    now = int(seconds) * 1000 + int(micros) // 1000
    # seen before it is there: else a row that was left alone halfway would never go
    await asyncio.gather(*(link.call("ZADD", keys.CATALOGUE_SEEN, "NX", now, kind) for kind in rows))
    await asyncio.gather(*(link.call("HSETNX", keys.CATALOGUE, kind, row) for kind, row in rows.items()))
    await link.call("INCR", keys.CATALOGUE_REV)
    return True
