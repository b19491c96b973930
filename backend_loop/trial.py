"""Whether mission modules can be imported and define missions, and if not, why and in which line.

``python -m backend_loop.trial PATH…`` tries it in a process of its own: whatever modules do when they are imported
happens there. It prints one JSON object: ``fault`` (None: they are in order), and which ``files`` and ``folders`` the
modules consist of.
"""

import linecache
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic_core import to_json

from backend_loop import registry
from backend_loop.author_frames import is_ours, own_file
from backend_loop.mission import DefinitionError


def fault(error: BaseException) -> str:
    """What is wrong, for who wrote the module: file, line and reason, and in a second line the code that is there."""
    what = str(error) if isinstance(error, DefinitionError) else traceback.format_exception_only(error)[-1].strip()
    place = _place(error)
    if place is None:
        return what
    file, line = place
    code = linecache.getline(str(file), line).strip()
    return f"{_shown(file)}, line {line}: {what}" + (f"\n    {code}" if code else "")


def tried(paths: Iterable[str]) -> dict[str, Any]:
    """Import these modules beside those that come with the product, and say what came of it."""
    paths = tuple(paths)
    for path in registry.BUILT_IN:
        import_module(path)
    known = set(sys.modules)
    wrong, files = None, set[Path]()
    try:
        registry.load(paths)
    except BaseException as error:  # noqa: BLE001  a module may raise anything, SystemExit too
        wrong, files = fault(error), set(_places(error))
    named = [module for path in paths if (module := sys.modules.get(path)) is not None]
    new = [sys.modules[name] for name in set(sys.modules) - known if not is_ours(name)]
    files |= {file for module in (*named, *new) if (file := _file(module)) is not None}
    folders = {Path(folder).resolve() for module in named for folder in getattr(module, "__path__", ())}
    return {"fault": wrong, "files": sorted(map(str, files)), "folders": sorted(map(str, folders))}


def _places(error: BaseException) -> Iterator[Path]:
    """Files of the author's that had to do with it, the innermost last."""
    for frame in traceback.extract_tb(error.__traceback__):
        if (file := own_file(frame.filename)) is not None:
            yield file
    if isinstance(error, SyntaxError) and error.filename is not None and (file := own_file(error.filename)) is not None:
        yield file


def _place(error: BaseException) -> tuple[Path, int] | None:
    if isinstance(error, SyntaxError) and error.filename is not None and error.lineno is not None:
        return Path(error.filename), error.lineno
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if (file := own_file(frame.filename)) is not None and frame.lineno is not None:
            return file, frame.lineno
    return None


def _file(module: ModuleType) -> Path | None:
    name = getattr(module, "__file__", None)
    if name is None:
        return None
    return Path(name).resolve() if is_ours(module.__name__) else own_file(name)


def _shown(file: Path) -> str:
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


def _main() -> None:
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a module prints when it is imported is no answer
    answer.write(to_json(tried(sys.argv[1:])))
    answer.flush()
    os._exit(0)  # threads that a module has begun keep nobody waiting


if __name__ == "__main__":
    _main()
