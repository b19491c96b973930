"""A worker that dies at named points: kill -9 by its own hand, before or after a commit of a mission.

``python -m tests.processes.fatal background`` is ``dualloop background`` with `Store.commit` wrapped. The points stand
in a folder, a file a mission, that the test writes: ``before 3`` dies with the third commit prepared and not sent,
``after 3`` with it written and its answer read by nobody. Each file is used up by the death that it asked for.
"""

import os
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from backend_loop.store import Commit, Store, Written

VARIABLE: Final = "DUALLOOP_TEST_DEATHS"


def plan(folder: Path, task_id: str, point: str) -> None:
    """Have the worker that runs this mission die there."""
    whole = folder / f"{task_id}.new"
    whole.write_text(point)
    whole.rename(folder / task_id)


def died(folder: Path, task_id: str) -> bool:
    """Whether it did."""
    return (folder / f"{task_id}.died").exists()


Write = Callable[[Store, Commit], Coroutine[Any, Any, Written]]


def deadly(commit: Write, folder: Path) -> Write:
    """The commit, and death where a file says so."""

    def dies(task_id: str, point: str) -> None:
        planned = folder / task_id
        if planned.exists() and planned.read_text() == point:
            planned.rename(folder / f"{task_id}.died")
            os.kill(os.getpid(), signal.SIGKILL)

    async def wrapped(store: Store, write: Commit) -> Written:
        task_id, number = str(write.item[0]), int(write.item[2]) + 1
        dies(task_id, f"before {number}")
        answer = await commit(store, write)
        if answer.word in {"written", "yielded", "doubtful"}:
            dies(task_id, f"after {number}")
        return answer

    return wrapped


if __name__ == "__main__":
    from dualloop.cli import main

    setattr(Store, "commit", deadly(Store.commit, Path(os.environ[VARIABLE])))  # noqa: B010  a method of another's
    main()
