"""Which edits are taken over, when, and what is said of them. The trial and the restart are stand-ins."""

import asyncio
from pathlib import Path

import pytest

from dualloop import reload
from dualloop.errors import Refusal
from dualloop.reload import Reloader, Verdict
from tests.waiting import eventually


class Desk:
    """An author's folder with a module ``lamp.py`` and a package ``shop``, and what came of each edit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.restarts = 0
        self.trials = 0
        self.faults: list[str] = []
        self.meanwhile: list[tuple[str, str]] = []
        """Edits that somebody makes while the trial runs."""
        self.hang: list[bool] = []
        """Whether a trial never ends by itself."""
        self.ended = 0
        self.files = {"lamp.py"}
        self.write("lamp.py", "1")
        self.write("shop/__init__.py", "1")
        self.reloader = Reloader((), self.said.append, self.restart, self.attempt)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    async def restart(self) -> None:
        self.restarts += 1

    async def attempt(self) -> Verdict:
        self.trials += 1
        if self.meanwhile:
            self.write(*self.meanwhile.pop(0))
        if self.hang and self.hang.pop(0):
            try:
                await asyncio.Event().wait()
            finally:
                self.ended += 1
        fault = self.faults.pop(0) if self.faults else None
        files = frozenset(self.folder / name for name in self.files)
        return Verdict(fault=fault, files=files, folders=frozenset({self.folder / "shop"}))

    async def edited(self, name: str, text: str) -> str:
        """What is said then."""
        self.write(name, text)
        return await self.looked()

    async def looked(self) -> str:
        before = len(self.said)
        await self.reloader.once()
        return "\n".join(self.said[before:])


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path)
    assert await desk.reloader.begin() == "lamp.py, shop"
    return desk


async def test_an_edit_is_tried_and_taken_over_once(desk: Desk) -> None:
    assert await desk.edited("lamp.py", "2") == "Edited lamp.py: restarting the background."
    assert (desk.trials, desk.restarts) == (2, 1)
    assert await desk.looked() == ""
    assert (desk.trials, desk.restarts) == (2, 1)


async def test_a_save_without_a_change_is_none(desk: Desk) -> None:
    assert await desk.edited("lamp.py", "1") == ""
    assert desk.trials == 1


async def test_what_cannot_be_used_leaves_the_background_alone_until_it_is_mended(desk: Desk) -> None:
    desk.faults = ["lamp.py, line 1: SyntaxError\n    2 +", "lamp.py, line 1: NameError"]
    assert await desk.edited("lamp.py", "2 +") == (
        "Edited lamp.py: of no use like this, the background goes on as it was.\n"
        "    lamp.py, line 1: SyntaxError\n"
        "        2 +"
    )
    assert "NameError" in await desk.edited("lamp.py", "x")
    assert desk.restarts == 0
    assert await desk.looked() == ""
    assert await desk.edited("lamp.py", "3") == "Mended lamp.py: restarting the background."
    assert desk.restarts == 1
    assert await desk.edited("lamp.py", "4") == "Edited lamp.py: restarting the background."


async def test_what_was_taken_back_needs_no_restart(desk: Desk) -> None:
    desk.faults = ["no"]
    await desk.edited("lamp.py", "2 +")
    assert await desk.edited("lamp.py", "1") == "Edited lamp.py: this is what the background runs already."
    assert desk.restarts == 0
    await desk.edited("lamp.py", "2")
    assert "restarting" in await desk.edited("lamp.py", "1"), "it runs the other one"


async def test_a_storm_of_saves_restarts_once_with_the_last_of_them(desk: Desk) -> None:
    desk.meanwhile = [("lamp.py", "3"), ("shop/lamps.py", "4"), ("shop/lamps.py", "5")]
    assert await desk.edited("lamp.py", "2") == "Edited lamp.py and 1 more: restarting the background."
    assert (desk.trials, desk.restarts) == (5, 1)
    assert await desk.looked() == ""


async def test_a_fault_of_what_has_been_edited_since_is_not_told(desk: Desk) -> None:
    desk.faults, desk.meanwhile = ["half written"], [("lamp.py", "2")]
    assert await desk.edited("lamp.py", "2 +") == "Edited lamp.py: restarting the background."


async def test_a_trial_that_hangs_is_given_up_for_the_next_edit(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "EDITED_S", 0.01)
    desk.hang, desk.meanwhile = [True, True], [("lamp.py", "while True: ..."), ("lamp.py", "3")]
    async with asyncio.timeout(30):
        assert await desk.edited("lamp.py", "2") == "Edited lamp.py: restarting the background."
    assert (desk.trials, desk.ended, desk.restarts) == (4, 2, 1)


async def test_files_of_a_package_come_and_go(desk: Desk) -> None:
    assert "restarting" in await desk.edited("shop/prices.py", "1")
    (desk.folder / "shop" / "prices.py").unlink()
    assert await desk.looked() == "Edited shop/prices.py: restarting the background."
    desk.write("shop/deep/er.py", "")
    assert "shop/deep/er.py" in await desk.looked()
    for name in ("shop/.hidden", "shop/__pycache__/x.pyc", "shop/lamp.py~", "shop/x.pyc", "other.py"):
        assert await desk.edited(name, "x") == "", name


async def test_what_a_module_imports_is_followed_from_then_on(desk: Desk) -> None:
    assert await desk.edited("prices.py", "1") == ""
    desk.files.add("prices.py")
    await desk.edited("lamp.py", "import prices")
    assert await desk.edited("prices.py", "2") == "Edited prices.py: restarting the background."


async def test_a_file_that_was_missing_mends_it_when_it_comes(desk: Desk) -> None:
    desk.faults = ["lamp.py, line 1: ModuleNotFoundError: No module named 'prices'"]
    await desk.edited("lamp.py", "import prices")
    assert await desk.edited("prices.py", "1") == "Mended prices.py: restarting the background."


async def test_a_file_that_is_gone_is_a_change(desk: Desk) -> None:
    desk.faults = ["DUALLOOP_MISSIONS names 'lamp', which cannot be imported"]
    (desk.folder / "lamp.py").unlink()
    assert "Edited lamp.py: of no use like this" in await desk.looked()
    assert await desk.looked() == ""


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (Verdict(fault="lamp.py, line 1: SyntaxError"), "lamp.py, line 1: SyntaxError"),
        (Verdict(fault=None), "There is nothing to reload: name your mission modules in DUALLOOP_MISSIONS."),
    ],
)
async def test_it_does_not_begin_with_what_cannot_be_used(verdict: Verdict, sentence: str) -> None:
    async def attempt() -> Verdict:
        return verdict

    async def restart() -> None:
        raise AssertionError

    with pytest.raises(Refusal) as refused:
        await Reloader((), print, restart, attempt).begin()
    assert str(refused.value) == sentence


async def test_edits_are_heard_of_at_once_in_folders_that_come_later_too(desk: Desk) -> None:
    """With the real watch; it also looks by itself, but more seldom than this takes."""
    following = asyncio.create_task(desk.reloader.run())
    try:
        for number, name in enumerate(("lamp.py", "shop/prices.py", "shop/new/__init__.py", "shop/new/x.py"), 1):
            desk.write(name, f"{name} {number}")
            await eventually(lambda number=number: desk.restarts >= number, 30)  # type: ignore[misc]  # bound now
    finally:
        following.cancel()
        await asyncio.wait([following])
    assert desk.said[-1] == "Edited shop/new/x.py: restarting the background."
