"""``dualloop up``: everything on one machine, as one command.

The process in the terminal only passes signals on. It forks the supervisor, which has a session of its own and holds
the other end of a pipe, the life line: when the terminal's process is gone, however it ended, the pipe closes and the
supervisor stops the parts in order, Redis last.
"""

import asyncio
import contextlib
import getpass
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel, SecretStr

from dualloop.address import LOCAL, local_broker_url, local_url
from dualloop.embedded import hold_redis, running_url
from dualloop.errors import Refusal
from dualloop.home.inventory import furnish
from dualloop.parts import OTHER_MQTT_PORT, Plan, free_port, stages
from dualloop.reload import Reloader
from dualloop.state_folder import private_folder, state_folder, write_whole
from dualloop.supervisor import Supervisor
from dualloop.terminal import Terminal
from shared.file_lock import try_lock
from shared.settings import Settings

_DOUBLED_S = 0.3  # make and process managers send a signal twice; a person does not within this time
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STEP_S = 0.05
_LITTLE_BYTES = 50_000_000


class _Running(BaseModel):
    pid: int
    user: str
    since: str
    url: str


def up(settings: Settings, *, workers: int = 1, reload: bool = False, verbose: bool = False) -> int:
    """Run the stack until it is told to stop; the exit code.

    With `reload` whoever runs missions begins anew when their modules are edited.

    Raises:
        Refusal: it already runs in this state folder, the port is taken, or there is no Redis to be had.
    """
    folder = state_folder(settings.state_dir)
    private_folder(folder / "logs")
    terminal = Terminal()
    front, whole = _claim(folder, terminal, settings.drain_s)
    port = free_port(settings.host, settings.port)
    settings = settings.model_copy(update={"state_dir": folder, "port": port})
    _tell_of_little_room(folder, terminal)
    _announce(folder, local_url(settings.host, port))
    lifeline, ours = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)  # until each process has its handlers
    if (supervisor := os.fork()) == 0:
        os.setsid()
        os.close(ours)
        os.close(front)
        _leave(lambda: _supervise(settings, workers, reload, verbose, terminal, lifeline))
    os.close(lifeline)
    os.close(whole)

    def pass_on(signum: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(supervisor, signum)

    for signum in _heeded():
        signal.signal(signum, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    _, status = os.waitpid(supervisor, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)  # one more now would spoil the exit code
    return os.waitstatus_to_exitcode(status)


def _heeded() -> list[signal.Signals]:
    return [signum for signum in _STOP_SIGNALS if signal.getsignal(signum) != signal.SIG_IGN]  # think of nohup


def _claim(folder: Path, terminal: Terminal, drain_s: float) -> tuple[int, int]:
    """The folder's two locks: ``up.lock`` of the process in the terminal, ``stack.lock`` of the supervisor."""
    if (front := try_lock(folder / "up.lock")) is None:
        with contextlib.suppress(OSError, ValueError):
            other = _Running.model_validate_json((folder / "up.json").read_bytes())
            raise Refusal(
                f"dualloop up already runs on {folder}: pid {other.pid}, of {other.user}, since {other.since}, at "
                f"{other.url}. Stop it, or name another folder and port in DUALLOOP_STATE_DIR and DUALLOOP_PORT."
            )
        raise Refusal(f"Another dualloop up is just starting on {folder}.")
    end, told = time.monotonic() + drain_s + 30, False
    while (whole := try_lock(folder / "stack.lock")) is None:
        if not told:
            terminal.say("The stack before this one is still stopping: waiting for it.")
            told = True
        if time.monotonic() > end:
            raise Refusal(f"The stack before this one does not stop: see the processes that use {folder}.")
        time.sleep(_STEP_S)
    return front, whole


def _tell_of_little_room(folder: Path, terminal: Terminal) -> None:
    """Before a part that cannot write ends without a word."""
    if (free := shutil.disk_usage(folder).free) < _LITTLE_BYTES:
        terminal.say(f"Only {free // 1_000:,} kB are free where {folder} is: not all may start.")


def _announce(folder: Path, url: str) -> None:
    since = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S")
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = f"user {os.getuid()}"
    told = _Running(pid=os.getpid(), user=user, since=since, url=url)
    write_whole(folder / "up.json", told.model_dump_json())


def _leave(body: Callable[[], int]) -> None:
    """End the forked process with the body's exit code, without running the parent's clean-up."""
    code = 1
    try:
        code = body()
    except Refusal as refusal:
        with contextlib.suppress(OSError):
            typer.echo(refusal, err=True)
    except BaseException:  # noqa: BLE001  nothing may return into the parent's code
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _supervise(  # noqa: PLR0913, PLR0917  what `up` was told
    settings: Settings, workers: int, reload: bool, verbose: bool, terminal: Terminal, lifeline: int
) -> int:
    held, url = None, settings.redis_url
    if url is None:
        held = hold_redis(settings.state_dir, settings.redis_server)
        url = held.url if held else running_url(settings.state_dir)
    if url is None:
        raise Refusal(f"Another process holds the Redis of {settings.state_dir}, and it does not answer.")
    plan = settled(settings.model_copy(update={"redis_url": url}))
    plan = replace(plan, held=held, workers=workers, reload=reload, verbose=verbose)
    return asyncio.run(_run(plan, terminal, lifeline))


def settled(settings: Settings) -> Plan:
    """Where everything will be, and what of it is ours to run.

    Where devices are reached is named: then nothing is simulated, which would speak on a real home's broker.
    """
    own_home = settings.home_url is None and settings.mqtt_url is None
    update = dict[str, Any]()
    if own_home:
        if settings.home_file is None:
            furnish(settings.home_path)
        port = free_port(LOCAL, settings.mqtt_port, OTHER_MQTT_PORT)
        update |= {"mqtt_port": port, "mqtt_url": SecretStr(local_broker_url(port))}
        port = settings.home_port or free_port(settings.home_host)
        update |= {"home_port": port, "home_url": local_url(settings.home_host, port)}
    own_outside = settings.outside_url is None
    if own_outside:
        port = settings.outside_port or free_port(settings.outside_host)
        update |= {"outside_port": port, "outside_url": local_url(settings.outside_host, port)}
    return Plan(settings.model_copy(update=update), own_home=own_home, own_outside=own_outside)


async def _run(plan: Plan, terminal: Terminal, lifeline: int) -> int:
    built = stages(plan)
    supervisor = Supervisor(built, terminal.say)
    stop, harsh = _stop_events(lifeline)
    reloader, watched = await _reloader(plan, supervisor, terminal)
    terminal.starting([part.name for stage in reversed(built) for part in stage])
    running = asyncio.create_task(supervisor.run(lambda: terminal.ready(plan, watched)))
    following = asyncio.create_task(_follow(reloader, supervisor, terminal))
    asked = asyncio.create_task(stop.wait())
    await asyncio.wait({running, asked}, return_when=asyncio.FIRST_COMPLETED)
    if not running.done():
        terminal.stopping(plan)
    running.cancel()
    following.cancel()
    await asyncio.wait([running, following])
    await supervisor.stop(harsh)
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)  # the loop's handlers end with the loop
    if not running.cancelled() and (error := running.exception()) is not None:
        raise error
    terminal.stopped()
    return 0


async def _reloader(plan: Plan, supervisor: Supervisor, terminal: Terminal) -> tuple[Reloader | None, str]:
    """What follows the edits of mission modules, if that is wanted, and what it will watch.

    Raises:
        Refusal: as they are now, they cannot be used.
    """
    if not plan.reload:
        return None, ""
    restart = partial(supervisor.restart, lambda part: part.missions)
    reloader = Reloader(plan.settings.missions, terminal.say, restart)
    return reloader, await reloader.begin()


async def _follow(reloader: Reloader | None, supervisor: Supervisor, terminal: Terminal) -> None:
    if reloader is None:
        return
    await supervisor.ready.wait()
    try:
        await reloader.run()
    except Exception as error:  # noqa: BLE001  what runs goes on without it
        terminal.say(f"Edits are followed no more: {type(error).__name__}: {error}.")


def _stop_events(lifeline: int) -> tuple[asyncio.Event, asyncio.Event]:
    """Set when the stack is to stop, and when it is to stop at once."""
    loop = asyncio.get_running_loop()
    stop, harsh, first = asyncio.Event(), asyncio.Event(), 0.0

    def asked() -> None:
        nonlocal first
        if not stop.is_set():
            first = loop.time()
            stop.set()
        elif loop.time() - first > _DOUBLED_S:
            harsh.set()

    def cut() -> None:
        loop.remove_reader(lifeline)
        stop.set()

    for signum in _heeded():
        loop.add_signal_handler(signum, asked)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    loop.add_reader(lifeline, cut)
    return stop, harsh
