"""Time that is skipped flows while a thread is at work, all of it."""

import asyncio
import contextlib
import threading
import time

from backend_loop.testing.skipping import BEGIN, SkippingLoop, Time, spin

BUSY_S = 0.05


def test_time_flows_while_a_thread_works_and_the_loop_has_other_things_to_do() -> None:
    clock, told = Time(BEGIN, 3_600), threading.Event()

    async def busy_beside_a_thread() -> None:
        working = asyncio.get_running_loop().run_in_executor(None, told.wait)
        until = time.monotonic() + BUSY_S
        while time.monotonic() < until:
            pass
        told.set()
        await working

    began = time.monotonic()
    spin(SkippingLoop(clock, lambda: True), busy_beside_a_thread())
    assert BUSY_S <= clock.passed_s <= time.monotonic() - began


def test_time_that_nobody_works_in_is_skipped() -> None:
    clock = Time(BEGIN, 3_600)

    async def wait_in_vain() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(600):
                await asyncio.Event().wait()

    began = time.monotonic()
    spin(SkippingLoop(clock, lambda: True), wait_in_vain())
    assert 600 <= clock.passed_s <= 600 + time.monotonic() - began
