"""An exported mission on the bench: run again from its start with other handlers, or put where it stood."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backend_loop.mission import state
from backend_loop.outcomes import Go, Outcome, WaitForChildren
from backend_loop.testing import Bench, ExportError, Kill, Trial, down, failed, meanwhile, never, refused, succeeded
from backend_loop.toolbox import Toolbox
from tests.missions.bench import Witness
from tests.missions.family import Careful, Fan, Kid
from tests.missions.postal import Counting, Newest, Patient, Postal
from tests.pure.exporting import exported
from tests.pure.test_kit import HOME, OUTSIDE

POST = Bench(Postal, outside=OUTSIDE)
NOWHERE = {"address": "nowhere"}
PAID = {"cents": 12}


class Mended(Postal):
    """It finds nowhere too."""

    @state("SENDING", acting=True)
    async def send(self, tools: Toolbox[Postal.Payload, Postal.Context]) -> Outcome:
        await tools.order("shipping/parcels", {"to": "Somewhere 1", "paid": tools.received})
        return Go("sent")


MENDED = Bench(Mended, outside=OUTSIDE)


def dead_letter() -> dict[str, Any]:
    return exported(POST.run(NOWHERE).event("PAID", PAID).run())


STORIES: dict[str, tuple[Bench, Callable[[Bench], Trial]]] = {
    "to its end": (POST, lambda bench: bench.run(HOME).event("PAID", PAID).run()),
    "an early event": (POST, lambda bench: bench.accept(HOME).event("PAID", PAID).run()),
    "undone": (POST, lambda bench: bench.run(NOWHERE).event("PAID", PAID).run()),
    "too late": (POST, lambda bench: bench.run(HOME).advance(86_401)),
    "cancelled at rest": (POST, lambda bench: bench.run(HOME).cancel(by="ada", note="no more").run()),
    "never begun": (POST, lambda bench: bench.accept(HOME).cancel(by="ada")),
    "paused at rest": (POST, lambda bench: bench.run(HOME).pause().run().event("PAID", PAID).resume().run()),
    "past its deadline": (POST, lambda bench: bench.run(HOME, deadline_s=60).advance(61)),
    "completed": (POST, lambda bench: bench.run(HOME).complete({"by": "hand"}, by="ada").run()),
    "waits": (POST, lambda bench: bench.run(HOME)),
    "replayed from the start": (
        POST,
        lambda bench: bench.run(NOWHERE).event("PAID", PAID).run().replay(start=True).event("PAID", {}).run(),
    ),
    "retried": (
        Bench(Postal, outside=OUTSIDE | {"payment/orders": [down(), {"id": "p"}]}),
        lambda bench: bench.run(HOME),
    ),
    "cut in its act": (
        Bench(Postal, outside=OUTSIDE | {"payment/orders": meanwhile(Trial.cancel, {"id": "p"})}),
        lambda bench: bench.run(HOME),
    ),
    "paused while it acts": (
        Bench(Postal, outside=OUTSIDE | {"payment/orders": meanwhile(Trial.pause, {"id": "p"})}),
        lambda bench: bench.run(HOME).resume().run().event("PAID", PAID).run(),
    ),
    "its worker killed": (POST, lambda bench: bench.run(HOME, kill=Kill.after_call(1)).event("PAID", PAID).run()),
    "killed in its undo": (
        Bench(Witness, outside={"a/b": {}}),
        lambda bench: bench.run(kill=Kill.within("UNDO_WORKING")),
    ),
    "superseded": (
        Bench(Newest, outside={"lamps/1": meanwhile(Trial.supersede, {"on": True}), "lamps/1/on": {}}),
        lambda bench: bench.run({"lamp": "kitchen"}),
    ),
    "slept": (Bench(Patient), lambda bench: bench.run()),
    "counted": (Bench(Counting), lambda bench: bench.run()),
    "children": (Bench(Fan, Kid), lambda bench: bench.run({"kids": [{}, {"seconds": 2}, {}], "bound": 2})),
    "children that fail": (
        Bench(Fan, Kid),
        lambda bench: bench.run({"kids": [{"how": "hangs"}, {"how": "fails"}]}),
    ),
    "children waited for in an undo": (Bench(Careful, Kid), lambda bench: bench.run()),
}


@pytest.mark.parametrize("story", STORIES)
def test_an_unchanged_mission_goes_the_same_way(story: str) -> None:
    bench, tell = STORIES[story]
    file = exported(tell(bench))
    replayed = bench.replay(file)
    assert replayed.same, f"{replayed.difference}\n{replayed.mission.told()}"
    assert [event["status"] for event in replayed.mission.log] == [event["status"] for event in file["log"]]


def test_a_cancel_after_a_second_try_comes_after_it_again() -> None:
    bench = Bench(Postal, outside=OUTSIDE | {"payment/orders": [down(), meanwhile(Trial.cancel, {"id": "p"})]})
    mission = bench.run(HOME)
    replayed = bench.replay(exported(mission))
    assert replayed.same, replayed.difference
    assert [call.state for call in replayed.mission.calls] == ["PAYING", "PAYING", "UNDO_PAYING"]


def test_what_a_worker_held_is_gone_on_with_as_after_its_takeover() -> None:
    Witness.seen.clear()
    bench = Bench(Witness, outside={"a/b": {}})
    bench.resume(exported(bench.accept(), place="leased", status="RUNNING", started_at="2026-01-01T00:00:00.000Z"))
    assert Witness.seen[0] == "begins 1 True"


def test_a_changed_handler_goes_another_way_and_the_line_is_named() -> None:
    replayed = MENDED.replay(dead_letter())
    assert not replayed.same
    assert replayed.difference is not None
    assert replayed.difference.startswith("line 5: the file has COMPENSATING in PAYING {'event': 'undo'")
    assert replayed.difference.endswith("this run has RUNNING in THANKING")
    assert replayed.mission.status == "SUCCEEDED"


def test_a_changed_result_is_named() -> None:
    file = exported(POST.run(HOME).event("PAID", PAID).run())
    other = Bench(Postal, outside=OUTSIDE | {"payment/orders": {"id": "p-2"}}).replay(file)
    assert other.difference == (
        "the result of the file is {'payment': 'p-1', 'to': 'Long Street 1'}; "
        "that of this run is {'payment': 'p-2', 'to': 'Long Street 1'}"
    )


def test_one_that_stops_sooner_or_goes_on_longer_is_named() -> None:
    file = exported(POST.run(HOME).event("PAID", PAID).run())
    refusing = Bench(Postal, outside=OUTSIDE | {"payment/orders": refused()}).replay(file)
    assert refusing.difference is not None
    assert "this run has" in refusing.difference
    shorter = {**file, "log": file["log"][:3], "result": None}
    assert POST.replay(shorter).difference == "the file ends SUCCEEDED; this run stands WAITING in CONFIRMING"
    cut = {**file, "log": file["log"][:2], "result": None}
    assert (POST.replay(cut).difference or "").startswith(
        "after line 2, where the file ends, this run goes on: WAITING"
    )


def test_children_meet_their_ends_in_the_order_of_the_file() -> None:
    class Choosy(Fan):
        """Goes on with the first that succeeds."""

        @state("SPREADING", timeout_s=60)
        async def spread(self, tools: Toolbox[Any, Any]) -> Outcome:
            if not tools.children:
                for n in range(3):
                    tools.spawn("test.kid", {"n": n}, name=f"kid-{n}")
            if any(one.succeeded for one in tools.children):
                first = next(one.name for one in tools.children if one.succeeded)
                return Go("spread", result={"first": first})
            return WaitForChildren("any", "continue")

    ends = {"test.kid": [never(), succeeded({"n": 1}, after_s=9), failed(after_s=3)]}
    file = exported(Bench(Choosy, children=ends).run())
    assert file["result"]["result"] == {"first": "kid-1"}
    replayed = Bench(Choosy).replay(file)
    assert replayed.same, replayed.difference


def test_a_dead_letter_gets_through_with_the_fix_and_not_without(tmp_path: Path) -> None:
    file = tmp_path / "letter.json"
    letter = exported(Bench(Patient).run({"how": "hangs"}))
    file.write_text(json.dumps(letter))
    assert Bench(Patient).resume(file).status == "FAILED"

    class Awake(Patient):
        """Does not hang."""

        table = {"SLEEPING": {"woken": "SUCCEEDED"}}  # noqa: RUF012  as missions are written

        @state("SLEEPING")
        async def sleep(self, tools: Toolbox[Patient.Payload, Patient.Context]) -> Outcome:
            return Go("woken", result={"run": tools.key.split(":")[1]})

    mission = Bench(Awake).resume(file)
    assert (mission.status, mission.result) == ("SUCCEEDED", {"run": "1"}), "with the keys of its first run"
    assert mission.log[-2]["data"]["event"] == "replayed"
    assert mission.task_id == letter["task_id"]


def test_what_was_undone_begins_anew() -> None:
    mission = MENDED.resume(dead_letter())
    assert (mission.status, mission.state) == ("WAITING", "CONFIRMING"), "its payment was given back"
    assert mission.event("PAID").run().status == "SUCCEEDED"


def test_one_that_waits_goes_on_from_there() -> None:
    file = exported(POST.run(NOWHERE))
    mission = MENDED.resume(file)
    assert (mission.status, mission.calls) == ("WAITING", [])
    mission.event("PAID", PAID).run()
    assert (mission.status, mission.context.payment) == ("SUCCEEDED", "p-1")
    assert MENDED.resume(file).advance(86_401).status == "FAILED", "its time-out stands where it stood"


@pytest.mark.parametrize("place", ["leased", "lane", "paused"])
def test_wherever_it_stood_it_goes_on(place: str) -> None:
    file = exported(POST.run(HOME), place=place, status="RUNNING" if place == "leased" else "WAITING")
    file["document"].pop("waiting_for", None)
    file["document"].pop("awaited", None)
    mission = POST.resume(file)
    assert (mission.status, mission.state) == ("WAITING", "CONFIRMING")


def test_what_it_was_told_and_had_not_read_is_read() -> None:
    file = exported(POST.run(HOME), inbox=[{"entry": "event", "event": "PAID", "data": PAID}])
    assert POST.resume(file).status == "SUCCEEDED"


def test_living_children_end_as_the_bench_says() -> None:
    file = exported(Bench(Fan, children={"test.kid": never()}).run({"kids": [{}, {}]}))
    mission = Bench(Fan, children={"test.kid": succeeded({"n": 4})}).resume(file)
    assert mission.result is not None
    assert mission.result["sum"] == 8


def test_an_older_version_is_upcast() -> None:
    old = exported(POST.run(HOME), version=1, state="AWAITING")
    old["envelope"] |= {"payload": {"to": "Old Street"}, "payload_version": 1}
    old["document"] |= {"context": {"payment": "p-0"}, "visits": {"PAYING": 1, "AWAITING": 1}}
    old["document"].pop("version")
    mission = POST.resume(old).event("PAID", PAID).run()
    assert (mission.status, mission.result) == ("SUCCEEDED", {"payment": "p-0", "to": "Old Street"})
    whole = POST.replay(old)
    assert whole.difference is None or "AWAITING" in whole.difference


@pytest.mark.parametrize(
    ("otherwise", "said"),
    [
        ({"export": 2}, "it is in format 2, and this release reads 1: export it anew"),
        ({"type": "test.other"}, "it is a test.other, and this bench runs test.postal"),
        ({"log": None}, "it is damaged: "),
        ({"version": 7, "envelope": {"payload_version": 7}}, "it is of version 7, and test.postal takes 1 to 2"),
    ],
    ids=["format", "type", "damage", "version"],
)
def test_a_file_that_cannot_be_used_says_why(otherwise: dict[str, Any], said: str) -> None:
    with pytest.raises(ExportError, match=said.replace(".", r"\.")):
        POST.resume(exported(POST.run(HOME), **otherwise))


def test_what_is_no_export_says_so(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    for content, said in (("{", "is no JSON"), ("{}", "is no file of `dualloop missions export`")):
        file.write_text(content)
        with pytest.raises(ExportError, match=said):
            POST.replay(file)


def test_a_replay_needs_the_whole_log_and_a_resume_something_to_go_on_with() -> None:
    ended = exported(POST.run(HOME).event("PAID", PAID).run())
    with pytest.raises(ExportError, match="the log of the file begins with line 3"):
        POST.replay({**ended, "log": ended["log"][2:]})
    with pytest.raises(ExportError, match="it has SUCCEEDED, so there is nothing to go on with"):
        POST.resume(ended)
