"""Whoever presses Ctrl-C while the command line is still being loaded sees no traceback."""

import sys
import tomllib
from types import ModuleType
from typing import NoReturn

import pytest

from dualloop.__main__ import main
from tests import compose


class Interrupted(ModuleType):
    """The command line, at whose loading somebody presses Ctrl-C."""

    def __getattr__(self, name: str) -> NoReturn:
        raise KeyboardInterrupt


def test_ctrl_c_while_it_loads_is_an_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dualloop.cli", Interrupted("dualloop.cli"))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130


def test_so_it_is_called_as_a_program() -> None:
    project = tomllib.loads((compose.FILE.parent / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"dualloop": "dualloop.__main__:main"}
