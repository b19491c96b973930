"""What the doctor looks at in the Redis server itself."""

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import redis

from dualloop.doctor.finding import Finding, fail, ok, warn
from dualloop.redis_program import OLDEST
from shared.logs import redact

SKEW_MS: Final = (500, 60_000)
"""Clocks further apart than this are worth a word; than that, wrong."""

FULL: Final = (0.8, 0.95)
"""Parts of maxmemory, likewise."""

Info = Mapping[str, Any]
Client = Any
"""redis-py's types say of each answer that it may have to be awaited."""


def server(client: Client, shown: str) -> Iterator[Finding]:
    """All about the server, of which `shown` is the address.

    Raises:
        redis.RedisError: it does not answer.
    """
    begun = time.monotonic()
    client.ping()
    took_ms = (time.monotonic() - begun) * 1000
    try:
        info = client.info()
    except redis.ResponseError as error:
        detail = f"{shown} answers in {took_ms:.1f} ms, and refuses INFO: {redact(str(error))}"
        yield warn("redis", detail, "see for yourself: version 7 or later, a master, noeviction, appendonly")
    else:
        yield _version(info, f"answers in {took_ms:.1f} ms at {shown}")
        yield _role(info)
        yield _memory(info)
        yield _policy(info)
        yield _persistence(info, _config(client))
    yield _clock(client)


def _version(info: Info, answers: str) -> Finding:
    brand = "Valkey" if "valkey_version" in info else "Redis"
    version = str(info.get("valkey_version") or info.get("redis_version", "0"))
    if tuple(int(part) for part in version.split(".")[:2] if part.isdecimal()) < OLDEST:
        return fail("redis", f"{brand} {version} {answers}", f"it is too old: use version {OLDEST[0]} or later")
    return ok("redis", f"{brand} {version} {answers}")


def _role(info: Info) -> Finding:
    if info.get("role") != "master":
        detail = f"it is a {info.get('role')} of {info.get('master_host')}:{info.get('master_port')}"
        return fail("redis role", f"{detail}, which takes no writes", "let DUALLOOP_REDIS_URL name the master")
    return ok("redis role", f"master, {info.get('connected_slaves', 0)} replicas")


def _memory(info: Info) -> Finding:
    name, used, most = "redis memory", int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    if not most:
        return ok(name, f"{_mib(used)} used, no limit of its own")
    detail = f"{_mib(used)} of {_mib(most)} used"
    if used < FULL[0] * most:
        return ok(name, detail)
    judge = fail if used >= FULL[1] * most else warn
    return judge(name, detail, "raise maxmemory, or lower DUALLOOP_RETENTION_S: when full, nothing new is accepted")


def _policy(info: Info) -> Finding:
    name, policy = "redis eviction", info.get("maxmemory_policy")
    if policy == "noeviction":
        return ok(name, "noeviction")
    remedy = "CONFIG SET maxmemory-policy noeviction, and write it into its configuration"
    if policy is None:
        return warn(name, "it does not tell its maxmemory-policy", f"make sure that it is noeviction: {remedy}")
    return fail(name, f"maxmemory-policy is {policy}: it throws missions away when full", remedy)


def _persistence(info: Info, config: Info) -> Finding:
    name = "redis persistence"
    for part in ("aof_last_write_status", "rdb_last_bgsave_status"):
        if info.get(part, "ok") != "ok":
            return fail(name, f"its last write to disk failed ({part})", "see its log, and the room on its disk")
    if int(info.get("aof_enabled", 0)):
        fsync = config.get("appendfsync", "everysec")
        lost = "a crash of the machine loses nothing" if fsync == "always" else "a crash of the machine may lose 1 s"
        return ok(name, f"append-only file, fsync {fsync}: {lost}" if fsync != "no" else "append-only file, no fsync")
    if config.get("save") or (not config and int(info.get("rdb_last_save_time", 0))):
        remedy = "CONFIG SET appendonly yes, to lose a second at most"
        return warn(name, "snapshots only: a restart of Redis loses what was accepted since the last one", remedy)
    return warn(name, "none: a restart of Redis loses all missions", "CONFIG SET appendonly yes")


def _config(client: Client) -> Info:
    """Where it is rented, CONFIG is often forbidden."""
    try:
        return dict(client.config_get("save", "appendfsync"))
    except redis.ResponseError:
        return {}


def _clock(client: Client) -> Finding:
    before = time.time()
    seconds, micros = client.time()
    after = time.time()
    apart = round(1000 * (seconds + micros / 1e6 - (before + after) / 2))
    detail = f"Redis is {abs(apart)} ms {'ahead of' if apart >= 0 else 'behind'} this machine"
    if abs(apart) <= SKEW_MS[0] + 1000 * (after - before) / 2:
        return ok("clock", detail)
    judge = fail if abs(apart) > SKEW_MS[1] else warn
    return judge("clock", detail, "let NTP set both clocks: deadlines and ages are told by them")


def _mib(number: int) -> str:
    return f"{number / 2**20:.1f} MiB"
