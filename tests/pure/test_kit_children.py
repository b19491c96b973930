"""Children on the bench: those whose type it has run for real, the others end as the test says."""

from typing import Any

import pytest

from backend_loop.mission import Mission, state, steps
from backend_loop.outcomes import Outcome, WaitForChildren
from backend_loop.testing import (
    Bench,
    Trial,
    UnscriptedError,
    cancelled,
    failed,
    never,
    succeeded,
)
from backend_loop.toolbox import Toolbox
from shared.settings import Settings
from shared.status import ErrorCode
from tests.missions.family import Careful, Fan, Kid, Line

THREE = {"kids": [{"n": 1}, {"n": 2}, {"n": 3}]}


def ends(mission: Trial) -> dict[str, str]:
    assert mission.result is not None
    return dict(mission.result["ends"])


def test_children_run_for_real() -> None:
    mission = Bench(Fan, Kid).run({"kids": [{}, {}, {"seconds": 5}]})
    assert (mission.status, ends(mission)) == ("SUCCEEDED", dict.fromkeys(("kid-0", "kid-1", "kid-2"), "SUCCEEDED"))
    assert [child.result for child in mission.children] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert [event["data"]["name"] for event in mission.log if (event["data"] or {}).get("event") == "child"] == [
        *("kid-0", "kid-1", "kid-2")
    ]
    assert mission.progress == {"done": 3, "total": 3, "message": None}
    assert 5 <= mission.took_s < 5.1


def test_a_bound_lets_so_many_live_at_once() -> None:
    mission = Bench(Fan, Kid).run({"kids": [{"seconds": 10}] * 4, "bound": 2})
    assert 20 <= mission.took_s < 20.1


def too_large(bench: Bench, payload: dict[str, Any]) -> str:
    """What is said of it."""
    mission = bench.run(payload)
    assert mission.error is not None
    assert mission.error["code"] == "too_large"
    return str(mission.error["message"])


def test_too_many_that_begin_at_once_are_told_as_what_is_too_much() -> None:
    bench, payload = Bench(Fan, Kid, settings=Settings(_env_file=None, max_output=20_000)), {"kids": [{"n": 1}] * 40}
    assert too_large(bench, payload).endswith(
        "of 20000 allowed, most of them about 40 children: "
        "wait with a bound, give them less, or spawn missions that spawn"
    )
    assert bench.run(payload | {"bound": 1}).status == "SUCCEEDED", "as it was advised"


def test_a_child_that_is_given_too_much_is_told_as_what_is_too_much() -> None:
    bench = Bench(Fan, Kid, settings=Settings(_env_file=None, max_output=20_000))
    said = too_large(bench, {"kids": [{"more": "x" * 20_000}]})
    assert said.endswith("of 20000 allowed, most of them about its child: give it less")


def test_the_first_that_fails_ends_the_others() -> None:
    kids = [{"how": "hangs"}, {"how": "fails"}]
    mission = Bench(Fan, Kid).run({"kids": kids})
    assert mission.error is not None
    assert mission.error["code"] == "child_failed"
    assert [child.status for child in mission.children] == ["CANCELLED", "FAILED"]
    known = Bench(Fan, Kid).run({"kids": kids, "policy": "any", "on_failure": "continue"})
    assert ends(known) == {"kid-0": "FAILED", "kid-1": "FAILED"}, "the one that hangs is cut by its deadline"


def test_one_target_is_acted_on_one_by_one() -> None:
    mission = Bench(Fan, Kid).run({"kids": [{"at": "door", "seconds": 10}] * 3})
    assert 30 <= mission.took_s < 30.1
    assert all("target" not in str(child.error) for child in mission.children)


class Unequal(Mission):
    """Spawns a line that hangs, and a child that fails while it does."""

    type = "test.unequal"
    table = steps("SPREADING")

    @state("SPREADING")
    async def spread(self, tools: Toolbox[Any, Any]) -> Outcome:
        tools.spawn("test.line", {"deep": 1})
        tools.spawn("test.kid", {"how": "fails", "seconds": 5})
        return WaitForChildren(event="done")


def test_an_end_reaches_grandchildren() -> None:
    mission = Bench(Unequal, Line, Kid).run()
    assert mission.error is not None
    assert (mission.error["code"], 5 <= mission.took_s < 5.1) == ("child_failed", True)
    line = mission.children[0]
    assert [one.status for one in (line, *line.children)] == ["CANCELLED"] * 2


def test_a_deadline_holds_for_all_of_a_line() -> None:
    mission = Bench(Line).run({"deep": 2}, deadline_s=60)
    child = mission.children[0]
    assert [(one.error or {})["code"] for one in (mission, child, *child.children)] == ["deadline"] * 3


def test_others_end_as_the_test_says() -> None:
    bench = Bench(Fan, children={"test.kid": [succeeded({"n": 5}), succeeded({"n": 6}, after_s=60)]})
    mission = bench.run({"kids": [{}, {}, {}]})
    assert mission.result is not None
    assert (mission.result["sum"], 60 <= mission.took_s < 60.1) == (17, True)
    assert [child.context for child in mission.children] == [None] * 3
    by_payload = Bench(Fan, children={"test.kid": lambda payload: succeeded({"n": payload["n"] * 10})}).run(THREE)
    assert by_payload.result is not None
    assert by_payload.result["sum"] == 60


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (failed("it is tired", ErrorCode.TIMEOUT), "its child kid-0 (test.kid) ended FAILED, timeout: it is tired"),
        (cancelled(), "its child kid-0 (test.kid) ended CANCELLED, requested"),
    ],
    ids=["failed", "cancelled"],
)
def test_a_scripted_child_may_end_otherwise(end: Any, said: str) -> None:
    mission = Bench(Fan, children={"test.kid": end}).run({"kids": [{}]})
    assert mission.error is not None
    assert mission.error["message"] == said


def test_one_that_never_ends_is_waited_for_until_a_deadline() -> None:
    mission = Bench(Fan, children={"test.kid": never()}).run({"kids": [{}]})
    assert (mission.status, mission.waiting_for) == ("WAITING", "children")
    assert mission.cancel().run().status == "CANCELLED"
    assert [child.reason for child in mission.children] == ["requested"]
    late = Bench(Fan, children={"test.kid": never()}).run({"kids": [{}]}).advance(3_600)
    assert late.error is not None
    assert late.error["code"] == "deadline"


def test_who_says_nothing_of_a_child_is_told_what_to_do() -> None:
    with pytest.raises(UnscriptedError, match=r"test.fan spawns test.kid: give the bench its class too"):
        Bench(Fan).run({"kids": [{}]})


def test_an_undo_waits_for_children() -> None:
    mission = Bench(Careful, Kid).run()
    assert (mission.status, mission.undone) == ("FAILED", ["SPREADING"])
    assert [child.status for child in mission.children] == ["SUCCEEDED", "FAILED"]


def test_killed_everywhere_with_children() -> None:
    for mission in Bench(Fan, Kid).killed_everywhere({"kids": [{}, {"seconds": 5}], "bound": 1}):
        assert (mission.status, len(mission.children)) == ("SUCCEEDED", 2), mission.told()
