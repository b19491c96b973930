"""Whether what Dual Loop stands on is sound: settings, folder, Redis, broker, engines, processes. It changes nothing.

Each finding says what is, and where it is not well, what to do.
"""

import os
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx
import redis

from dualloop.address import local_url
from dualloop.client import configured_urls
from dualloop.doctor.broker import broker
from dualloop.doctor.finding import Finding, fail, ok, warn
from dualloop.doctor.fleet import fleet, served
from dualloop.doctor.server import server
from dualloop.doctor.speech import speech
from dualloop.embedded import is_held, running_url
from shared.home import Inventory
from shared.logs import redact, redact_url
from shared.settings import Settings

ANSWER_S: Final = 3.0
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def examine(settings: Settings) -> Iterator[Finding]:
    """All findings, each as soon as it is known."""
    yield _settings(settings)
    yield _folder(settings.state_dir.absolute())
    url = settings.redis_url or running_url(settings.state_dir)
    inventory = None
    if url is None:
        yield _no_redis(settings.state_dir.absolute())
    else:
        inventory = yield from _redis(url, settings)
    yield from broker(settings, inventory)
    yield from speech(settings)
    for foreground in configured_urls(settings):
        yield _ready("foreground", foreground, "start it: dualloop up, or dualloop foreground")
    yield from _processes(settings)


def told(settings: Settings) -> dict[str, Any]:
    """Every setting that is not left to its default, by the name of its variable, without secrets."""
    values = {name: getattr(settings, name) for name in sorted(settings.model_fields_set)}
    return {
        f"DUALLOOP_{name.upper()}": redact_url(value)
        if name.endswith("_url") and isinstance(value, str)
        else redact(",".join(value) if isinstance(value, tuple) else str(value))
        for name, value in values.items()
    }


def _no_redis(folder: Path) -> Finding:
    if is_held(folder):
        detail = f"the one that dualloop up runs on {folder} does not answer"
        return fail("redis", detail, "see whether its process is stopped, or its disk full; else restart dualloop up")
    detail = f"DUALLOOP_REDIS_URL is not set, and no dualloop up runs on {folder}"
    return fail("redis", detail, "set it, or run: dualloop up")


def _redis(url: str, settings: Settings) -> Generator[Finding, None, Inventory | None]:
    """What is found there, and in the end the home's inventory, if there is one."""
    shown = redact_url(url)
    try:
        client = redis.Redis.from_url(url, socket_timeout=ANSWER_S, socket_connect_timeout=ANSWER_S)
    except ValueError:  # whose own words may hold a part of the password
        yield fail("redis", f"{shown} is no address", "write redis://, rediss:// or unix://")
        return None
    try:
        with client:
            yield from server(client, shown)
            yield from fleet(client, settings)
            return served(client)
    except redis.RedisError as error:
        yield fail("redis", f"{shown} cannot be used: {redact(str(error))}", "start it, or set DUALLOOP_REDIS_URL")
    return None


def _settings(settings: Settings) -> Finding:
    given = told(settings)
    return ok("settings", ", ".join(f"{name}={value}" for name, value in given.items()) or "all as they come")


def _folder(folder: Path) -> Finding:
    name = "state folder"
    try:
        found = folder.stat()
    except FileNotFoundError:
        return ok(name, f"{folder} is not there yet; dualloop up makes it")
    except OSError as error:
        return fail(name, f"{folder} cannot be looked at: {error.strerror}", "choose another with DUALLOOP_STATE_DIR")
    if not stat.S_ISDIR(found.st_mode) or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return fail(name, f"{folder} is no folder that this user can write to", "choose another: DUALLOOP_STATE_DIR")
    for part in (folder, folder / "redis"):
        with suppress(OSError):
            if part.stat().st_mode & OTHERS:
                return warn(name, f"other users can enter {part}", f"close it: chmod 700 {part}")
    return ok(name, f"{folder}, for its owner alone")


def _processes(settings: Settings) -> Iterator[Finding]:
    """Background processes of this folder by the port files they wrote; a killed one leaves its file behind.

    Whoever replaces it may have its port, and is asked once.
    """
    asked = set[str]()
    for file in sorted(settings.state_dir.absolute().glob("background-*.port")):
        with suppress(OSError, ValueError):
            url = local_url(settings.host, int(file.read_text()))
            if url in asked:
                continue
            asked.add(url)
            yield _ready("background", url, f"if its process is gone, remove what it left: rm {file}", gone=warn)


def _ready(name: str, url: str, remedy: str, *, gone: Callable[[str, str, str], Finding] = fail) -> Finding:
    try:
        answer = httpx.get(f"{url}/readyz", timeout=ANSWER_S, trust_env=False)
        document = answer.json()
        checks = {check["name"]: check for check in document["checks"]}
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return gone(name, f"nobody answers at {url} ({error or type(error).__name__})", remedy)
    except (ValueError, KeyError, TypeError):
        return fail(name, f"what answers at {url} is no part of Dual Loop (HTTP {answer.status_code})", remedy)
    troubles = [f"{check}: {told['detail']}" for check, told in checks.items() if not told["ok"]]
    if troubles:
        return fail(name, f"{url} is not ready: {' '.join(troubles)}", "do what it says, or see its log")
    return ok(name, f"{url} is ready")
