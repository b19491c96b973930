"""What cannot be kept of an act has happened all the same, and is undone."""

from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic_core import from_json

from backend_loop.admission import Admission
from backend_loop.breakers import Breakers
from backend_loop.executors import Executors
from backend_loop.lease import Lease
from backend_loop.mission import Mission, state, steps, undo
from backend_loop.outcomes import Go, Outcome
from backend_loop.outside import Outside
from backend_loop.redis_clock import RedisClock
from backend_loop.runner import Runner
from backend_loop.store import Store
from backend_loop.toolbox import Toolbox
from frontend_loop.door import Door
from shared import keys
from shared.catalogue import Catalogue
from shared.fleet import Fleet
from shared.redis import Link
from shared.settings import Settings

SETTINGS = Settings(_env_file=None, pools=("default",), lease_s=120)
undone: dict[str, list[tuple[str, bool]]] = defaultdict(list)


class Unkept(Mission):
    """Acts, and answers what nobody can write down."""

    type = "test.unkept"
    table = steps("ACTING")

    @state("ACTING", acting=True)
    async def act(self, tools: Toolbox[Any, Any]) -> Outcome:
        return Go("done", result={"left": object() if tools.payload.how == "object" else "x" * 2_000_000})

    @undo("ACTING")
    async def take_back(self, tools: Toolbox[Any, Any]) -> None:
        undone[tools.task_id].append((tools.key, tools.may_have_happened))


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[Link]:
    link = await Link(redis_url).open(wait_s=30)
    yield link
    await link.close()


@pytest.mark.parametrize(("how", "code"), [("object", "permanent"), ("large", "too_large")])
async def test_an_act_whose_outcome_cannot_be_kept_is_undone(link: Link, how: str, code: str) -> None:
    fleet, catalogue, clock = Fleet(1), Catalogue(), RedisClock()
    await fleet.join(link)
    row = Unkept.definition.row()
    await link.run("announce", keys.prefix(0), 60_000, row.kind, row.model_dump_json())
    await catalogue.refresh(link)
    store = Store(link, 0, Lease(0, SETTINGS.lease_s, lambda _owner: None), SETTINGS, clock)
    await Door(link, fleet, catalogue, SETTINGS, "").take({"type": Unkept.type, "payload": {"how": how}}, "cli")
    answer = await store.claim(1, 1, f",{Unkept.definition.kind},")
    assert answer is not None
    [claimed] = answer[1]
    outside = Outside(
        clock=clock,
        lease=store.lease,
        admission=Admission(link, 0, SETTINGS, clock, Breakers(link, 1)),
        executors=Executors(SETTINGS),
        wakes=lambda _s: None,
    )
    await Runner(claimed, Unkept.definition, store, outside).run()
    result = from_json(await link.call("GET", keys.result(0, claimed.task_id)))
    assert (result["status"], result["error"]["code"], result["result"]) == ("FAILED", code, {"undone": ["ACTING"]})
    assert undone[claimed.task_id] == [(f"{claimed.task_id}:1:UNDO_ACTING:1", True)]
