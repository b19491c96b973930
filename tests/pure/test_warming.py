"""The loop that loads a home's grammar: once for each home, and for none that has no devices."""

import threading

import pytest

from backend_loop.language.interpreter import Interpreter
from backend_loop.language.interpreters import interpreter
from backend_loop.loops.warming import Warming
from shared.home import EMPTY, Inventory, check


def home(*entities: str) -> Inventory:
    return check({"devices": [{"entity": entity, "names": {"en": [entity]}} for entity in entities]})


async def test_what_loads_it_keeps_no_loop_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = set[threading.Thread]()

    def asked(home: Inventory) -> Interpreter:
        threads.add(threading.current_thread())
        return interpreter(home)

    monkeypatch.setattr("backend_loop.loops.warming.interpreter", asked)
    monkeypatch.setattr(Interpreter, "warm", lambda _: None)
    await Warming(lambda: home("light.attic")).once()
    assert threads, "asked"
    assert threading.current_thread() not in threads, "what it imports, and the grammar, may take half a second"


async def test_each_home_is_warmed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    warmed = list[Interpreter]()
    monkeypatch.setattr(Interpreter, "warm", lambda self: warmed.append(self))  # noqa: PLW0108  as a method
    homes = [EMPTY, EMPTY, home("light.hall"), home("light.hall"), home("light.hall", "light.study")]
    one = Warming(lambda: homes[0])
    counts = list[int]()
    while homes:
        await one.once()
        counts.append(len(warmed))
        del homes[0]
    assert counts == [0, 0, 1, 1, 2]
