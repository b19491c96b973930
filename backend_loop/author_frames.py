"""Where in its author's files an error came about."""

import sysconfig
import traceback
from functools import lru_cache
from pathlib import Path
from typing import Final

_OURS: Final = ("shared", "frontend_loop", "backend_loop", "dualloop")
_ROOT: Final = Path(__file__).resolve().parents[1]
_INSTALLED: Final = tuple(
    Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def is_ours(module: str) -> bool:
    """Whether a module comes with the product."""
    return module.partition(".")[0] in _OURS


@lru_cache(maxsize=1024)
def own_file(name: str) -> Path | None:
    """A file that is neither Python's, nor installed, nor ours; None: it is one of those, or none."""
    file = Path(name).resolve()
    ours = any(file.is_relative_to(_ROOT / package) for package in _OURS)
    return None if ours or not file.is_file() or any(map(file.is_relative_to, _INSTALLED)) else file


def raised_in(error: BaseException) -> str | None:
    """The author's innermost line in it, such as ``hold.py, line 42, in tell``; None: there is none.

    Without the folder, which is no business of whoever reads a result.
    """
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):  # reads no sources: it is asked at each try
        if (file := own_file(frame.f_code.co_filename)) is not None:
            return f"{file.name}, line {line}, in {frame.f_code.co_name}"
    return None
