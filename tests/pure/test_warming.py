"""The loop that loads a home's grammar: once for each home, and for none that has no devices."""

import pytest

from backend_loop.language.interpreter import Interpreter
from backend_loop.loops.warming import Warming
from shared.home import EMPTY, Inventory, check


def home(*entities: str) -> Inventory:
    return check({"devices": [{"entity": entity, "names": {"en": [entity]}} for entity in entities]})


async def test_each_home_is_warmed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    warmed = list[Interpreter]()
    monkeypatch.setattr(Interpreter, "warm", lambda self: warmed.append(self))  # noqa: PLW0108  as a method
    homes = [EMPTY, EMPTY, home("light.hall"), home("light.hall"), home("light.hall", "light.study")]
    warming = Warming(lambda: homes[0])
    counts = list[int]()
    while homes:
        await warming.once()
        counts.append(len(warmed))
        del homes[0]
    assert counts == [0, 0, 1, 1, 2]
