"""The author's test kit: a mission from its start to its end on a bench, in no time, and what may be said to it."""

import gc
import random
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from backend_loop.testing import Bench, EndedError, NeverEndsError, RefusedError, Trial, down, meanwhile, refused
from shared.clock import now_ms
from shared.settings import Settings
from tests.missions.bench import Wired
from tests.missions.filing import Filing, FilingBeside
from tests.missions.postal import Counting, Newest, Patient, Postal

OUTSIDE = {
    "payment/orders": {"id": "p-1"},
    "payment/refunds": {},
    "shipping/parcels": {"id": "s-1"},
}
HOME = {"address": "Long Street 1"}


def post() -> Bench:
    return Bench(Postal, outside=OUTSIDE)


def test_it_runs_until_only_the_test_can_go_on_and_then_to_its_end() -> None:
    mission = post().run(HOME)
    assert (mission.status, mission.state, mission.waiting_for) == ("WAITING", "CONFIRMING", "event")
    mission.event("PAID", {"cents": 12}).run()
    assert (mission.status, mission.result) == ("SUCCEEDED", {"payment": "p-1", "to": "Long Street 1"})
    assert mission.states == ["PAYING", "CONFIRMING", "SENDING", "THANKING"]
    assert mission.context.tried == 1
    assert mission.progress == {"done": 1, "total": 4, "message": "paying"}
    assert mission.document is not None
    assert mission.document["progress"] == mission.progress
    assert [call.path for call in mission.calls] == ["payment/orders", "shipping/parcels"]
    assert mission.calls[1].body == {"to": "Long Street 1", "paid": {"cents": 12}}
    assert mission.calls[0].key == f"{mission.task_id}:1:PAYING:1"
    assert [event["seq"] for event in mission.log] == list(range(1, len(mission.log) + 1))


def test_an_event_that_comes_early_is_remembered() -> None:
    mission = post().accept(HOME)
    assert mission.status == "PENDING"
    assert mission.event("PAID").run().status == "SUCCEEDED"


def test_an_event_with_a_known_id_counts_once() -> None:
    mission = post().run(HOME)
    mission.event("PAID", {"n": 1}, id="a").event("PAID", {"n": 2}, id="a").run()
    assert mission.calls[-1].body["paid"] == {"n": 1}


def test_what_was_done_is_undone() -> None:
    mission = post().run({"address": "nowhere"}).event("PAID").run()
    assert mission.status == "FAILED"
    assert mission.undone == ["PAYING"]
    assert mission.error is not None
    assert (mission.error["code"], mission.error["state"]) == ("permanent", "SENDING")
    assert mission.calls[-1].body == {"of": f"{mission.task_id}:1:PAYING:1"}


def test_a_day_is_skipped_and_a_deadline_too() -> None:
    began = time.monotonic()
    late = post().run(HOME).advance(86_401)
    assert late.error is not None
    assert (late.error["code"], late.error["message"]) == ("timeout", "no PAID came in time")
    assert late.undone == ["PAYING"]
    gone = post().run(HOME, deadline_s=80_000).advance(60_000).pause().advance(80_000)
    assert gone.status == "PAUSED", "a pause outlasts the deadline, by a day at most"
    gone.advance(6_400)
    assert gone.error is not None
    assert gone.error["code"] == "deadline"
    assert time.monotonic() - began < 60


def test_retries_are_gone_through_at_once_and_their_pauses_counted() -> None:
    mission = Bench(Postal, outside=OUTSIDE | {"payment/orders": [down(), down(after_s=30), {"id": "p"}]}).run(HOME)
    assert mission.status == "WAITING"
    assert mission.took_s > 30
    assert [event["data"].get("attempt") for event in mission.log if event["status"] == "WAITING"] == [1, 2, None]
    never = Bench(Postal, outside=OUTSIDE | {"payment/orders": down()}).run(HOME)
    assert never.error is not None
    assert (never.error["code"], never.error["attempts"]) == ("retries_exhausted", 4)


def test_it_is_the_same_each_time_and_on_each_day() -> None:
    bench = Bench(Postal, outside=OUTSIDE | {"payment/orders": [down(), down(), {"id": "p"}]})
    random.seed(1)
    first = bench.run(HOME)
    random.seed(2)
    second = bench.run(HOME)
    assert (first.log, first.task_id) == (second.log, second.task_id)
    assert first.log[0]["at"] == "2026-01-01T00:00:00.000Z"
    assert Bench(Postal, outside=OUTSIDE, begin="2030-05-06T07:08:09Z").run(HOME).log[0]["at"].startswith("2030-05-06")
    assert random.Random(2).random() == random.random(), "the chance of others is left alone"
    assert abs(now_ms() / 1000 - time.time()) < 60, "outside of a run it is as late as ever"


def test_a_mission_that_was_never_begun_is_cancelled_at_once() -> None:
    mission = post().accept(HOME).cancel(by="ada")
    assert (mission.status, mission.reason, mission.log[-1]["data"]) == (
        "CANCELLED",
        "requested",
        {"reason": "requested", "by": "ada"},
    )
    with pytest.raises(EndedError, match=r"takes no pause any more: <test\.postal CANCELLED"):
        mission.pause()


def test_a_cancel_undoes() -> None:
    mission = post().run(HOME).cancel().run()
    assert (mission.status, mission.reason, mission.undone) == ("CANCELLED", "requested", ["PAYING"])


def test_a_cancel_cuts_a_handler_whose_effect_may_have_happened() -> None:
    cut = meanwhile(lambda mission: mission.cancel(), {"id": "p-1"})
    mission = Bench(Postal, outside=OUTSIDE | {"payment/orders": cut}).run(HOME)
    assert mission.status == "CANCELLED"
    undo = next(event for event in mission.log if event["status"] == "COMPENSATING")
    assert undo["data"]["may_have_happened"] is True
    assert [call.path for call in mission.effects] == ["payment/orders", "payment/refunds"], "it arrived all the same"


def test_a_pause_waits_for_the_commit_and_a_resume_goes_on() -> None:
    paused = meanwhile(lambda mission: mission.pause(by="ada"), {"id": "p-1"})
    mission = Bench(Postal, outside=OUTSIDE | {"payment/orders": paused}).run(HOME)
    assert (mission.status, mission.state) == ("PAUSED", "CONFIRMING")
    assert mission.event("PAID").run().status == "PAUSED"
    assert mission.resume().run().status == "SUCCEEDED"


def test_an_optional_state_may_be_skipped_and_no_other() -> None:
    mission = post().run(HOME)
    with pytest.raises(ValueError, match=r"CONFIRMING of test\.postal is not optional"):
        mission.skip()
    with pytest.raises(ValueError, match="declares no event 'PIAD'; those that it does: PAID"):
        mission.event("PIAD")


def test_done_by_hand_is_done() -> None:
    mission = post().run(HOME).complete({"by": "hand"}, note="sent it myself").run()
    assert (mission.status, mission.result) == ("SUCCEEDED", {"by": "hand"})
    assert mission.log[-1]["data"] == {"event": "completed", "by": "operator", "note": "sent it myself"}


def test_a_dead_letter_runs_again() -> None:
    mission = post().run({"address": "nowhere"}).event("PAID").run()
    with pytest.raises(ValueError, match="PAYING of it was undone: replay it from the start"):
        mission.replay()
    mission.replay(start=True, payload=HOME).event("PAID").run()
    assert mission.status == "SUCCEEDED"
    assert mission.calls[-2].key == f"{mission.task_id}:2:PAYING:2"
    with pytest.raises(ValueError, match="only what failed for good"):
        mission.replay()


def test_a_newer_command_keeps_it_from_its_act() -> None:
    bench = Bench(Newest, outside={"lamps/1": meanwhile(Trial.supersede, {"there": True}), "lamps/1/on": {"on": True}})
    mission = bench.run({"lamp": "kitchen"})
    assert (mission.status, mission.reason, mission.effects) == ("CANCELLED", "superseded", [])
    with pytest.raises(ValueError, match=r"nothing is newer than this test\.postal"):
        post().run(HOME).supersede()


def test_sleeps_are_skipped_and_what_hangs_is_cut() -> None:
    slept = Bench(Patient).run({"seconds": 86_400, "times": 5})
    assert (slept.status, slept.result, slept.took_s) == ("SUCCEEDED", {"slept": 5}, 432_000)
    hung = Bench(Patient).run({"how": "hangs"})
    assert hung.error is not None
    assert (hung.error["code"], hung.took_s) == ("timeout", 90)
    spun = Bench(Patient).run({"how": "spins"})
    assert spun.error is not None
    assert spun.error["code"] == "timeout"


def test_what_never_ends_is_said_to() -> None:
    with pytest.raises(NeverEndsError, match="there were 50 commits, and it has not ended"):
        Bench(Patient, commits=50).run({"times": 1_000, "seconds": 1})
    with pytest.raises(NeverEndsError, match="10 days have passed"):
        Bench(Patient, days=10).run({"times": 1_000})
    cycled = Bench(Patient, settings=Settings.model_construct(max_transitions=20)).run({"how": "cycles"})
    assert cycled.error is not None
    assert cycled.error["code"] == "too_many_transitions"


@pytest.mark.parametrize(
    ("payload", "command", "said"),
    [
        ({"address": 7}, {}, "/payload/address: 7 is not of type"),
        ({}, {}, '/payload: "address" is a required property'),
        (HOME, {"deadline_s": -1}, "deadline_s"),
        (HOME, {"payload_version": 3}, "known in versions 1 to 2"),
    ],
)
def test_what_the_door_refuses_is_refused(payload: dict[str, object], command: dict[str, Any], said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        post().run(payload, **command)


def test_an_older_payload_is_upcast() -> None:
    mission = post().run({"to": "Long Street 1"}, payload_version=1).event("PAID").run()
    assert mission.result == {"payment": "p-1", "to": "Long Street 1"}


def test_handlers_in_threads_and_processes_run_here_and_keep_what_they_have() -> None:
    mission = Bench(Counting).run({"to": 25})
    assert (mission.status, mission.result) == ("SUCCEEDED", {"at": 25, "began": 1})
    assert mission.progress == {"done": 25, "total": 25, "message": None}
    assert mission.commits == 4, "two checkpoints, two states"
    assert len(mission.log) == 3, "a checkpoint is no event"
    began = time.monotonic()
    slow = Bench(Counting).run({"to": 1, "slow_s": 0.2})
    assert 0.2 <= slow.took_s <= time.monotonic() - began + 0.01, "time flows while a thread works"


def test_time_flows_while_a_handler_waits_for_a_socket_and_is_skipped_while_it_sleeps() -> None:
    near, far = socket.socketpair()
    Wired.near, began = near, time.monotonic()
    teller = threading.Timer(0.2, far.sendall, (b"hello\n",))
    teller.start()
    mission = Bench(Wired).run()
    assert mission.status == "SUCCEEDED", mission.told()
    spent_s = time.monotonic() - began
    assert 3_600.1 < mission.took_s < 3_600 + spent_s + 0.01
    assert spent_s < 60
    teller.join()
    far.close()
    near.close()


def test_files_and_the_database_are_those_of_the_bench(tmp_path: Path) -> None:
    mission = Bench(Filing, files=tmp_path / "files").run({"text": "one line"})
    assert mission.result is not None
    assert mission.file(mission.result["file"]).read_text() == "one line"
    assert list(tmp_path.rglob("sheet.txt"))
    database = f"sqlite:///{tmp_path}/a.db"
    beside = Bench(FilingBeside, database=database).run()
    assert beside.result is not None
    again = beside.file(beside.result["file"])
    assert (again.name, beside.result["database"]) == ("again-sheet.txt", database)
    unnamed = Bench(Filing).run()
    folder = unnamed.file((unnamed.result or {})["file"]).parent
    assert folder.exists()
    del unnamed
    gc.collect()
    assert not folder.exists(), "where nobody says a folder, it goes with the run"


def test_a_story_is_told_where_an_assertion_fails() -> None:
    mission = Bench(Postal, outside=OUTSIDE | {"shipping/parcels": refused("closed", "it is closed")}).run(HOME)
    mission.event("PAID").run()
    why = "permanent: ServiceRefused: shipping: it is closed"
    assert repr(mission) == f"<test.postal FAILED: {why}; PAYING → CONFIRMING → SENDING; 5 commits>"
    told = mission.told()
    assert '"event":"PAID"' in told
    assert "SENDING: POST shipping/parcels  → refused closed" in told


async def test_in_an_event_loop_it_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match="use it in a plain `def test_…`"):
        post().run(HOME)
