"""A worker of the kit dies where the test says, as by kill -9, and another one takes over."""

import subprocess
import sys
from pathlib import Path

import pytest

from backend_loop.testing import Bench, Kill, Trial, down
from tests.missions.bench import Witness
from tests.missions.postal import Careless, Counting, Postal
from tests.pure.test_kit import HOME, OUTSIDE

POST = Bench(Postal, outside=OUTSIDE)


def paid(mission: Trial) -> None:
    mission.event("PAID", {"cents": 12})


WITNESS = Bench(Witness, outside={"a/b": {}})


@pytest.fixture(autouse=True)
def _fresh() -> None:
    Witness.seen.clear()


def test_nothing_of_a_dead_process_runs_not_even_a_finally() -> None:
    mission = WITNESS.run(kill=Kill.after_call("a/*"))
    assert Witness.seen == ["begins 1 False", "begins 2 True", "side", "finally", "undoes False"]
    assert mission.took_s > 12, "a lease has to run out first"
    assert [call.effect for call in mission.calls] == [True, False]
    assert mission.calls[0].key == mission.calls[1].key
    reclaimed = next(event for event in mission.log if event["data"] and event["data"].get("event") == "reclaimed")
    assert reclaimed["data"]["deaths"] == 1


def test_within_a_state_it_dies_before_anything_is_done() -> None:
    mission = WITNESS.run(kill=Kill.within("WORKING"))
    assert (len(mission.effects), mission.calls[0].answer) == (1, None)
    dead_undo = WITNESS.run(kill=Kill.within("UNDO_WORKING"))
    assert (dead_undo.status, dead_undo.undone) == ("FAILED", ["WORKING"])


def test_several_deaths_in_a_run() -> None:
    kills = [Kill.before_commit(1), Kill.within("PAYING"), Kill.after_commit(2)]
    mission = POST.run(HOME, kill=kills).event("PAID").run()
    assert (mission.status, set(mission.killed)) == ("SUCCEEDED", set(kills))


def test_the_same_death_twice() -> None:
    mission = POST.run(HOME, kill=[Kill.within("PAYING"), Kill.within("PAYING")])
    assert mission.killed == (Kill.within("PAYING"), Kill.within("PAYING"))
    assert mission.log[2]["data"] == {"event": "reclaimed", "deaths": 2}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_is_written_or_not(when: str) -> None:
    kill = Kill.before_commit(1) if when == "before" else Kill.after_commit(1)
    mission = POST.run(HOME, kill=kill)
    again = sum(call.path == "payment/orders" for call in mission.calls)
    assert again == (2 if when == "before" else 1)
    assert repr(mission).endswith(f"killed {when} commit 1>")


def test_killed_everywhere_it_still_ends_and_pays_once() -> None:
    killed = list(POST.killed_everywhere(HOME, then=paid))
    assert len(killed) == 2 * 5 + 2 * 2
    for mission in killed:
        assert mission.status == "SUCCEEDED", mission.told()
        assert [call.path for call in mission.effects] == ["payment/orders", "shipping/parcels"]
        assert mission.doubled == []
        assert len(mission.killed) == 1
    for mission in POST.killed_everywhere({"address": "nowhere"}, then=paid):
        assert (mission.status, mission.undone) == ("FAILED", ["PAYING"]), mission.told()
        assert len(mission.effects) == 2


def test_killed_everywhere_asks_for_what_is_waited_for() -> None:
    with pytest.raises(AssertionError, match="undisturbed it does not end: say by `then` what it waits for"):
        next(POST.killed_everywhere(HOME))


def test_an_effect_under_two_keys_is_found() -> None:
    with pytest.raises(AssertionError, match="after commit 1 made an effect happen twice: POST bank/transfers"):
        list(Bench(Careless, outside={"bank/transfers": {}}).killed_everywhere())
    twice = Bench(Careless, outside={"bank/transfers": {}}).run(kill=Kill.within("SECOND"))
    assert "was done 2 times, under the keys" in twice.doubled[0]
    assert (
        Bench(Careless, outside={"bank/transfers": {}}).run({"anew": False}, kill=Kill.within("SECOND")).doubled == []
    )


def test_a_checkpoint_outlives_its_worker() -> None:
    for mission in Bench(Counting).killed_everywhere({"to": 30}):
        assert mission.result is not None
        assert mission.result["at"] == 30, mission.told()
    second = Bench(Counting).run({"to": 30}, kill=Kill.after_commit(2))
    assert second.result == {"at": 30, "began": 2}


def test_retries_begin_where_they_were() -> None:
    bench = Bench(Postal, outside=OUTSIDE | {"payment/orders": [down(), {"id": "p"}]})
    mission = bench.run(HOME, kill=Kill.after_call(1))
    assert (mission.status, len(mission.effects)) == ("WAITING", 1)


SCRIPT = """
import asyncio
from backend_loop.mission import Mission, steps, state
from backend_loop.outcomes import Go
from backend_loop.testing import Bench, Kill

class Loud(Mission):
    type = "test.loud"
    table = steps("ONE")
    @state("ONE")
    async def one(self, tools):
        try:
            await tools.order("a", {})
        finally:
            if tools.fence == 1:
                print("a finally of the dead")
                await asyncio.sleep(1)
        return Go("done")

assert Bench(Loud, outside={"a": {}}).run(kill=Kill.after_call()).status == "SUCCEEDED"
"""


def test_the_dead_stay_silent_when_their_test_run_ends() -> None:
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        (sys.executable, "-W", "error", "-c", SCRIPT),
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
