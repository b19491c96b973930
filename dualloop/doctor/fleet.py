"""What the doctor looks at in Redis that our processes have left there."""

from collections.abc import Iterator
from typing import Final

from pydantic_core import from_json

from dualloop.doctor.finding import Finding, fail, ok, warn
from dualloop.doctor.server import Client
from shared import keys
from shared.home import Inventory, InventoryError, read
from shared.settings import Settings

ANNOUNCED_MS: Final = 90_000
"""A live worker announces its types every 30 s."""


def fleet(client: Client, settings: Settings) -> Iterator[Finding]:
    """Workers, catalogue and missions.

    Raises:
        redis.RedisError: Redis does not answer.
    """
    recorded = client.hget(keys.FLEET, "shards")
    if recorded is None:
        yield warn("fleet", "no process has been started on this Redis yet", "start all: dualloop up")
        return
    shards = int(recorded)
    if shards != settings.shards:
        yield fail(
            "fleet", f"it has {shards} shards, this configuration {settings.shards}", f"DUALLOOP_SHARDS={shards}"
        )
    seconds, micros = client.time()
    now = seconds * 1000 + micros // 1000
    yield _workers(client, shards, now)
    yield _catalogue(client, now)
    yield _missions(client, shards)
    yield home(client)


def _workers(client: Client, shards: int, now: int) -> Finding:
    live: list[str] = []
    lapsed, alone = 0, []
    for shard in range(shards):
        ends = client.zrange(keys.owners(shard), 0, -1, withscores=True)
        here = [owner.decode() for owner, end in ends if end > now]
        lapsed += len(ends) - len(here)
        if not here:
            alone.append(str(shard))
        live += here
    if alone:
        where = f" on shard {', '.join(alone)}" if shards > 1 else ""
        return fail("workers", f"no worker is alive{where}: nothing is done", "start one: dualloop background")
    detail = f"{len(live)} live: {', '.join(owner[:8] for owner in live[:10])}{', …' if len(live) > 10 else ''}"
    if lapsed:
        return warn("workers", f"{detail}; {lapsed} have lapsed", "its missions are taken over; see why it died")
    return ok("workers", detail)


def _catalogue(client: Client, now: int) -> Finding:
    seen = {kind.decode(): at for kind, at in client.zrange(keys.CATALOGUE_SEEN, 0, -1, withscores=True)}
    if not seen:
        return fail("catalogue", "no mission type is known", "start a worker: dualloop background")
    silent = sorted(kind for kind, at in seen.items() if at < now - ANNOUNCED_MS)
    if silent:
        detail = f"no worker has announced {', '.join(silent[:5])} lately; what is sent to it will wait"
        return warn(
            "catalogue", detail, "start a worker that knows it (DUALLOOP_MISSIONS), or let the row go after a day"
        )
    return ok("catalogue", f"{len(seen)} types: {', '.join(sorted(seen)[:10])}{', …' if len(seen) > 10 else ''}")


def _missions(client: Client, shards: int) -> Finding:
    by_status: dict[str, int] = {}
    parked: dict[str, int] = {}
    for shard in range(shards):
        for key, number in client.hgetall(keys.counts(shard)).items():
            status = key.decode().split("|")[1]
            by_status[status] = by_status.get(status, 0) + int(number)
        for kind in client.smembers(keys.parked_types(shard)):
            number = client.zcard(keys.parked(shard, kind.decode()))
            parked[kind.decode()] = parked.get(kind.decode(), 0) + number
    detail = ", ".join(f"{number} {status}" for status, number in sorted(by_status.items()) if number) or "none"
    if stuck := [f"{number} of {kind}" for kind, number in sorted(parked.items()) if number]:
        detail += f"; no live worker knows the type of {', '.join(stuck[:5])}"
        return warn("missions", detail, "start a worker that does: see DUALLOOP_MISSIONS")
    return ok("missions", detail)


def served(client: Client) -> Inventory | None:
    """The home's inventory that all processes go by; None: there is none, or this version cannot read it.

    Raises:
        redis.RedisError: Redis does not answer.
    """
    document = client.hget(keys.HOME, "document")
    try:
        return None if document is None else read(document)
    except InventoryError:
        return None


def home(client: Client) -> Finding:
    """Whether what the home is called is known, and the file of it was taken in."""
    revision, document, trouble = client.hmget(keys.HOME, "revision", "document", "trouble")
    if trouble is not None:
        told = from_json(trouble)
        return warn("home", f"its file is not taken in: {told['detail']}", f"put {told['file']} right")
    if document is None:
        return ok(
            "home", "nothing is known of it yet; dualloop home import FILE, or edit the file of DUALLOOP_HOME_FILE"
        )
    parts = from_json(document)
    counts = ", ".join(f"{len(parts.get(name, ()))} {name}" for name in ("areas", "devices", "scenes"))
    return ok("home", f"{counts}, revision {revision.decode()}")
