"""Gadgets are flashed one by one and by the hundred: what stays as it is, what stops a rollout, what goes back."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.processes.commands import Front
from tests.services import OutsideServices
from tests.stories.stack import running
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Field:
    """A client of the front, the gadgets outside, and the folder of files."""

    def __init__(self, front: Front, outside: OutsideServices, folder: Path) -> None:
        self.front, self.outside, self.folder = front, outside, folder

    async def ends(self, type_: str, *, command: dict[str, Any] | None = None, **payload: Any) -> dict[str, Any]:
        """Its end, with books that balance."""
        document = await self.front.end(await self.front.send(type_, payload=payload, **command or {}))
        books = self.outside.books()
        assert books["balanced"], books["faults"]
        return document

    def look(self, gadget: str) -> dict[str, Any]:
        return dict(self.outside.http.get(f"/gadgets/{gadget}").json())

    def report(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        """The lines of a rollout's report."""
        path = self.folder / "files" / document["task_id"] / "report.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    async def family(self, root: str) -> list[dict[str, Any]]:
        page = (await self.front.client.get("/v1/missions", params={"correlation_id": root, "limit": "200"})).json()
        assert page["cursor"] is None
        return list(page["missions"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_field(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Field]:
    folder = tmp_path_factory.mktemp("field")
    async with running(module_redis_url, folder, workers=0) as stack:
        with OutsideServices(folder, stack.url) as outside:
            await stack.start([stack.worker(DUALLOOP_OUTSIDE_URL=outside.url)])
            front = Front(stack.foregrounds[0])
            yield Field(front, outside, folder)
            await front.client.aclose()


@pytest.fixture
def field(shared_field: Field) -> Field:
    """All well there; each test has gadgets of its own."""
    shared_field.outside.faults("gadgets")
    return shared_field


async def test_a_gadget_is_flashed_and_looked_at_again(field: Field) -> None:
    document = await field.ends("firmware.update", gadget="gadget.0001", version="2.0.0")
    assert document["status"] == "SUCCEEDED"
    result = {"outcome": "confirmed", "gadget": "gadget.0001", "version": "2.0.0", "before": "1.0.0"}
    assert document["result"] == result
    assert document["freshness"]["verified"] is True
    again = await field.ends("firmware.update", gadget="gadget.0001", version="2.0.0")
    assert again["result"]["outcome"] == "already_done"
    assert len(field.outside.page("gadget.0001")["journal"]) == 1


@pytest.mark.parametrize(
    ("gadget", "code"),
    [("gadget.0013", "device_refused"), ("gadget.0042", "device_unreachable"), ("gadget.9999", "device_refused")],
)
async def test_some_cannot_be_flashed_and_it_says_why(field: Field, gadget: str, code: str) -> None:
    document = await field.ends("firmware.update", gadget=gadget, version="2.0.0", patience_s=0.2)
    assert (document["status"], document["error"]["code"]) == ("FAILED", code)
    assert gadget in document["error"]["message"]


async def test_one_that_comes_back_in_time_is_flashed(field: Field) -> None:
    field.outside.bench("/devices/gadget.0002", online=False)
    one = await field.front.send("firmware.update", payload={"gadget": "gadget.0002", "version": "2.0.0"})

    async def away() -> bool:
        return (await field.front.result(one, wait=0))["waiting_for"] == "timer"

    await eventually(away, what="it is waited for")
    field.outside.bench("/devices/gadget.0002", online=True)
    assert (await field.front.end(one))["result"]["outcome"] == "confirmed"


async def test_what_a_person_has_flashed_since_is_left_alone(field: Field) -> None:
    field.outside.bench("/devices/gadget.0003", online=False)
    one = await field.front.send("firmware.update", payload={"gadget": "gadget.0003", "version": "2.0.0"})
    field.outside.bench("/devices/gadget.0003", version="3.0.0")
    field.outside.bench("/devices/gadget.0003", online=True)
    document = await field.front.end(one)
    assert (document["status"], document["reason"]) == ("CANCELLED", "overridden")
    assert field.look("gadget.0003")["version"] == "3.0.0"
    forced = await field.ends(
        "firmware.update", gadget="gadget.0003", version="2.0.0", replaces="1.0.0", command={"conflict": "force"}
    )
    assert forced["result"]["outcome"] == "confirmed"
    other = await field.ends("firmware.update", gadget="gadget.0003", version="4.0.0", replaces="1.0.0")
    assert other["reason"] == "overridden", "it does not show what was to be replaced"


async def test_a_flash_whose_answers_are_lost_is_had_once(field: Field) -> None:
    field.outside.faults("gadgets", lose_reply=True, times=3)
    document = await field.ends("firmware.update", gadget="gadget.0004", version="2.0.0")
    assert document["result"]["outcome"] == "confirmed"
    assert len(field.outside.page("gadget.0004")["journal"]) == 1


async def test_a_rollout_takes_canaries_first_and_tells_of_each(field: Field) -> None:
    where = {"prefix": "gadget.00", "model": "lock"}
    document = await field.ends("firmware.rollout", version="2.1.0", gadgets=where, canaries=3, at_once=8, patience_s=0)
    result = document["result"]
    assert document["status"] == "SUCCEEDED"
    assert (result["gadgets"], result["not_begun"]) == (25, 0)
    assert result["ended"] == {"confirmed": 24, "device_unreachable": 1}
    assert [line["gadget"] for line in result["failures"]] == ["gadget.0042"]
    assert result["report"] == f"/v1/files/{document['task_id']}/report.jsonl"
    lines = field.report(document)
    assert Counter(line["said"] for line in lines) == result["ended"]
    assert len({line["gadget"] for line in lines}) == 25
    journal = [field.outside.page(line["gadget"])["journal"] for line in lines]
    at = {line["gadget"]: one[-1]["at"] for line, one in zip(lines, journal, strict=True) if one}
    canaries = [line["gadget"] for line in lines[:3]]
    assert max(at.pop(gadget) for gadget in canaries) < min(at.values()), "the others came after them"
