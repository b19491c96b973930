"""A mission of the real stack, taken along in a file: the bench runs it again, or tells if a fix gets it through."""

import json
import stat
from asyncio import to_thread  # a bench has a loop of its own
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import redis

from backend_loop.mission import state
from backend_loop.outcomes import Go, Outcome
from backend_loop.testing import Bench, ExportError
from backend_loop.toolbox import Toolbox
from shared import keys
from tests.missions.family import Fan
from tests.missions.parcel import Address, Parcel
from tests.stories.operating import Hand, operated
from tests.stories.test_new_mission import Author

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hand(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Hand]:
    folder = tmp_path_factory.mktemp("stack")
    missions = "tests.missions.parcel,tests.missions.family,tests.missions.plain"
    async with operated(module_redis_url, folder, DUALLOOP_MISSIONS=missions) as hand:
        yield hand


@pytest.fixture
def author(hand: Hand, tmp_path: Path) -> Author:
    return Author(tmp_path, DUALLOOP_URL=hand.stack.url)


async def letter(hand: Hand, author: Author, street: str = "Main Street") -> Path:
    """A parcel that was signed, and then found its depot closed."""
    payload = {"depot": str(author.folder / "open"), "signature": True, "street": street}
    task_id = await hand.submit("test.parcel", payload)
    await hand.in_state(task_id, "SIGNING", "waiting")
    await hand.post(f"/v1/commands/{task_id}/events", {"event": "SIGNED", "data": {"by": "Ada Lovelace"}})
    assert (await hand.ended(task_id))["error"]["message"] == "the depot is closed"
    return export(author, task_id)


def export(author: Author, task_id: str) -> Path:
    printed = author.types(f"dualloop missions export {task_id} letter.json")
    assert "it may contain personal data" in printed
    return author.folder / "letter.json"


class Fixed(Parcel):
    """Needs no depot."""

    @state("SHIPPING", acting=True)
    async def ship(self, tools: Toolbox[Address, Any]) -> Outcome:
        return Go("shipped", result={"key": tools.key})


async def test_a_dead_letter_is_run_again_and_a_fix_gets_it_through(hand: Hand, author: Author) -> None:
    file = await letter(hand, author)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    same, fixed = await to_thread(Bench(Parcel).replay, file), await to_thread(Bench(Fixed).replay, file)
    resumed = await to_thread(Bench(Fixed).resume, file)
    assert same.same, same.difference
    assert fixed.difference is not None
    assert fixed.difference.startswith(
        "line 5: the file has FAILED {'code': 'permanent', 'error': 'the depot is closed'}"
    )
    assert fixed.difference.endswith("this run has SUCCEEDED")
    assert (resumed.status, resumed.result) == ("SUCCEEDED", {"key": f"{resumed.task_id}:1:SHIPPING:1"})
    assert resumed.states[-1] == "SHIPPING"
    assert resumed.calls == []


async def test_what_waits_goes_on_waiting(hand: Hand, author: Author) -> None:
    task_id = await hand.submit("test.parcel", {"depot": str(author.folder), "signature": True})
    await hand.in_state(task_id, "SIGNING", "waiting")
    file = export(author, task_id)
    mission = await to_thread(Bench(Parcel).resume, file)
    assert (mission.status, mission.state, mission.waiting_for) == ("WAITING", "SIGNING", "event")
    mission = await to_thread(mission.event("SIGNED").run)
    assert mission.status == "SUCCEEDED"
    replayed = await to_thread(Bench(Parcel).replay, file)
    assert replayed.same, replayed.difference
    assert (await hand.mission(task_id))["place"] == "waiting", "the bench says nothing to the real one"


async def test_children_come_along_with_their_ends(hand: Hand, author: Author) -> None:
    kids = [{"n": 5}, {"how": "fails"}, {"n": 2}]
    task_id = await hand.submit("test.fan", {"kids": kids, "on_failure": "continue", "bound": 1})
    await hand.ended(task_id)
    replayed = await to_thread(Bench(Fan).replay, export(author, task_id))
    assert replayed.same, replayed.difference
    assert replayed.mission.result is not None
    assert replayed.mission.result["sum"] == 7


async def test_without_a_file_it_goes_to_standard_output(hand: Hand, author: Author) -> None:
    task_id = await hand.submit("test.noop", {})
    await hand.ended(task_id)
    content = json.loads(author.types(f"dualloop missions export {task_id}"))
    assert (content["export"], content["type"], content["status"]) == (1, "test.noop", "SUCCEEDED")
    assert content["log"] == (await hand.mission(task_id))["history"]
    assert content["envelope"]["payload"] == {}


async def test_what_was_told_and_not_read_comes_along(hand: Hand, author: Author) -> None:
    task_id = await hand.submit("test.parcel", {"depot": str(author.folder), "signature": True})
    await hand.in_state(task_id, "SIGNING", "waiting")
    await hand.post(f"/v1/commands/{task_id}/pause", {})
    await hand.post(f"/v1/commands/{task_id}/events", {"event": "SIGNED", "data": {"by": "ada"}})
    file = export(author, task_id)
    assert json.loads(file.read_bytes())["inbox"] == [{"entry": "event", "event": "SIGNED", "data": {"by": "ada"}}]
    mission = await to_thread(Bench(Parcel).resume, file)
    assert mission.status == "SUCCEEDED"


async def test_a_damaged_record_is_exported_and_says_so(hand: Hand, author: Author) -> None:
    task_id = await hand.submit("test.parcel", {"depot": str(author.folder), "signature": True})
    await hand.in_state(task_id, "SIGNING", "waiting")
    with redis.Redis.from_url(hand.stack.redis_url) as client:
        client.hset(keys.mission(0, task_id), "document", b"[]")
    file = export(author, task_id)
    with pytest.raises(ExportError, match="its record was damaged"):
        await to_thread(Bench(Parcel).resume, file)
    with redis.Redis.from_url(hand.stack.redis_url) as client:
        client.hset(keys.mission(0, task_id), "document", b"")


async def test_nothing_of_that_name_and_no_such_folder(hand: Hand, author: Author) -> None:
    assert "no correlation_id of this system" in author.types("dualloop missions export nobody", code=1)
    task_id = await hand.submit("test.noop", {})
    await hand.ended(task_id)
    said = author.types(f"dualloop missions export {task_id} no/such/folder.json", code=1)
    assert "cannot be written: No such file or directory" in said
