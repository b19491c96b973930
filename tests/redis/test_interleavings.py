"""The real scripts under random interleavings of a few workers, clients and mishaps.

After every step three things are held against each other: what the scripts answered and what the model (`model.py`)
says, the records and the model, and the shard with itself (`audit.py`). At the end of each example everything is
driven fairly, and every mission must end and leave nothing behind. `stage.py` makes each move on both.

The bound of the search: three workers (one knows both types, two know one each) and two owners that run one mission
alone, up to seven missions of three priorities on no target or one of two, with an aspect or without; commits lost,
doubled and late, leases lost, every verb in every place. `make test` draws 200 examples of 50 steps, `make chaos` 1,500
of 80. Not in it: more than one tenant or pool, a full inbox, broken keys (they have tests of their own).
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from shared.scripts import SCRIPTS, Script
from tests.redis.auditing import undisturbed
from tests.redis.scripts_client import FAR, Move, New
from tests.redis.stage import Outcome, Stage
from tests.redis.stage_base import MOST

PICK = st.integers(0, 7)
MOVES = st.lists(
    st.sampled_from(["leave", "stay", "stay", "wait", "leave", "yield", "pause", "offer", "end", "bury"]),
    min_size=1,
    max_size=3,
)
OUTCOME = st.tuples(
    st.sampled_from("ABC"),
    st.booleans(),
    st.sampled_from([FAR, None, 1]),
    st.sampled_from(["", "act", "act", "permit", "kept", "runs"]),
)
"""State, whether it is being undone, wake time of a wait; whether it acts, waits for a permit, or goes on midway."""

FATE = st.sampled_from(["heard", "heard", "answer lost", "lost"])
MISSION = st.tuples(
    st.sampled_from("tu"),
    st.sampled_from(["urgent", "normal", "normal", "bulk"]),
    st.sampled_from(["", "a:lamp", "a:lamp", "a:lamp", "a:fan"]),
    st.sampled_from(["", "power", "power"]),
)
"""Type, priority, target, aspect."""

VERBS: Final = ("cancel", "pause", "resume", "skip", "complete", "child", "e1", "e2", "accept")
PLACES: Final = ("", "lane", "leased", "waiting", "waiting", "waiters", "parked", "paused", "paused")


class Interleavings(Stage, RuleBasedStateMachine):
    """What may happen next."""

    def __init__(self) -> None:
        RuleBasedStateMachine.__init__(self)
        Stage.__init__(self)

    @initialize(missions=st.lists(MISSION, min_size=2, max_size=5))
    def begin(self, missions: list[tuple[str, str, str, str]]) -> None:
        for one in missions:
            self._accept(one, copies=1)

    @precondition(lambda self: self.accepted < MOST)
    @rule(mission=MISSION, copies=st.integers(1, 2))
    def accept(self, mission: tuple[str, str, str, str], copies: int) -> None:
        self._accept(mission, copies=copies)

    @rule(number=PICK, aim=st.sampled_from(PLACES), what=st.sampled_from(VERBS), copies=st.integers(1, 2))
    def client(self, number: int, aim: str, what: str, copies: int) -> None:
        """Control, events and accepts of what was accepted, has ended, or is gone; also doubled, and aimed."""
        task_id = self._aimed(number, aim)
        self.say(f"{what} in {self.at(task_id)}")
        for copy in range(copies):
            if what == "accept":
                if task_id in self.model.missions:
                    assert self.verbs.accept(New(task_id, target="a:fan")) == ["DUPLICATE"]
            elif what in ("cancel", "e1", "e2"):
                self._control(task_id, "event" if what[0] == "e" else what, what)
            else:
                run = 1 + number % 2 if what == "child" else None
                self._control(task_id, what, f"{what} {number % 2 + copy}", run)

    @rule(number=PICK, copy=st.integers(0, 1), what=st.sampled_from(["pause", "resume", "resume"]))
    def pausing(self, number: int, copy: int, what: str) -> None:
        """Pauses of what waits or is at work, and resumes of what is paused."""
        places = ("waiting", "leased", "waiters") if what == "pause" else ("paused", "leased")
        if m := self.pick(number, *places):
            self._control(m.task_id, what, f"{what} {copy}")

    def _aimed(self, number: int, *places: str) -> str:
        aimed = self.pick(number, *places) if any(places) else None
        return aimed.task_id if aimed else f"m{number % (self.accepted + 1)}"

    @rule(
        number=PICK,
        aim=st.sampled_from(PLACES),
        what=st.sampled_from(["urgent", "normal", "bulk", "replay", "replay", "discard"]),
        start=st.sampled_from(["failed_state", "start"]),
        key=st.sampled_from(["same", "new"]),
    )
    def operator(self, number: int, aim: str, what: str, start: str, key: str) -> None:
        """Priorities, and what becomes of dead letters."""
        match what:
            case "replay" | "discard":
                dead = [m for m in self.model.missions.values() if m.dead]
                task_id = dead[number % len(dead)].task_id if dead and number % 4 else self._aimed(number, aim)
                if dead and number % 4 == 1:
                    self._rows_are_carried_out(self.model.missions[task_id])
                self._replay(task_id, start, key) if what == "replay" else self._discard(task_id)
            case _:
                self._prioritize(self._aimed(number, aim), what)

    @rule(number=PICK, other=PICK, what=st.sampled_from(["permit", "permit", "permit, wait", "adopt", "adopt"]))
    def admission(self, number: int, other: int, what: str) -> None:
        """A worker asks for permits, or lets a suspect run alone."""
        worker = self.busy(number)
        if what == "adopt":
            self._adopt(worker, other)
            self._was_lost_twice_alone(self.pick(other, "leased") if other % 2 else None)
        else:
            self._permit(worker, other)
            if what == "permit, wait":
                self.flush(worker, ["leave", "wait", "leave"], ("A", False, FAR, "permit"), "heard")

    @rule(number=PICK, slots=st.sampled_from([0, 1, 2, 4, 7]), reserve=st.integers(0, 1))
    def claim(self, number: int, slots: int, reserve: int) -> None:
        self._claim(self.workers[number % 3], slots, slots + reserve)

    @rule(number=PICK, slots=st.integers(1, 3), moves=MOVES, outcome=OUTCOME, fate=FATE)
    def work(self, number: int, slots: int, moves: list[Move], outcome: Outcome, fate: str) -> None:
        """A worker's usual round."""
        self._claim(self.workers[number % 3], slots, slots)
        self.flush(self.workers[number % 3], moves, outcome, fate)

    @rule(number=PICK, moves=MOVES, outcome=OUTCOME, fate=FATE)
    def commit(self, number: int, moves: list[Move], outcome: Outcome, fate: str) -> None:
        self.flush(self.busy(number), moves, outcome, fate)

    @rule(number=PICK, fate=FATE)
    def offer(self, number: int, fate: str) -> None:
        """A mission gives its slot back, if somebody has waited for too long."""
        if number % 2:
            self._waits_long_in_its_lane(self.pick(number, "lane"))
        self.flush(self.busy(number), ["offer", "stay"], ("A", False, None, ""), fate)

    @rule(
        number=PICK,
        first=st.sampled_from(["stay", "stay", "offer", "yield"]),
        more=st.sampled_from(["kept", "kept", "runs"]),
        state=st.sampled_from("AB"),
        fate=FATE,
    )
    def checkpoint(self, number: int, first: Move, more: str, state: str, fate: str) -> None:
        """Handlers go on behind one, or give their slot back; some of them hold a permit."""
        worker = self.busy(number)
        if number % 2:
            self._permit(worker, 0)
        self.flush(worker, [first, "stay", "offer"], (state, number > 6, None, more), fate)

    @rule(number=PICK, other=PICK, late=st.booleans())
    def says(self, number: int, other: int, late: bool) -> None:
        """Handlers say how far they are."""
        self._say(self.busy(number), other, late=late)

    @precondition(lambda self: self.sent)
    @rule(number=st.integers(0, 63), aim=st.booleans())
    def late_copy(self, number: int, aim: bool) -> None:
        """A commit arrives again, or only now, where it could do harm; its sender does not hear of it."""
        found = (self._nearly() if aim else []) or self.sent
        self._commit(None, [found[number % len(found)]], heard=False)

    @rule(
        number=PICK, what=st.sampled_from(["renew", "release", "bounce", "bounce", "late release", "resign", "crash"])
    )
    def worker(self, number: int, what: str) -> None:
        worker = self.busy(number)
        match what:
            case "renew":
                self._renew(worker)
            case "resign":
                expected = self.model.resign(worker.owner)
                assert self.verbs.resign(worker.owner) == expected
                if expected == "OK":
                    worker.begin()
            case "crash":
                worker.begin()
            case "release" | "bounce" if worker.hands:
                hand = list(worker.hands.values())[number % len(worker.hands)]
                self._release(worker.owner, hand.task_id, hand.fence)
                del worker.hands[hand.task_id]
                if what == "bounce":
                    self._claim(worker, 2, 2)
            case "late release" if found := self._nearly() or self.sent:
                sent = found[number % len(found)]
                self._release(sent.owner, sent.write.task_id, sent.write.fence)

    @precondition(lambda self: self.model.owners)
    @rule(
        number=PICK, other=PICK, fate=st.sampled_from(["dead", "dead", "asleep", "back", "back, then dead", "frozen"])
    )
    def taken_over(self, number: int, other: int, fate: str) -> None:
        """A worker dies, or sleeps for long, and another looks twice; or it is back in time, or Redis stood still."""
        worker = self.busy(number)
        if worker.owner in self.model.owners:
            self._lapse(worker.owner)
            lapsed = worker.owner
            if fate == "dead":
                worker.begin()
            self._claim(self.workers[other % 3], 0, 0)
            self._renewals_pass()
            if fate.startswith("back") and lapsed in self.model.owners:
                self._renew(worker)
                if fate != "back":
                    self._lapse(lapsed)
            if fate == "frozen":
                self._freeze()
            self._claim(self.workers[other % 3], 1, 1)
            if fate == "asleep" and number % 2:
                self._renew(worker)

    @rule(
        number=PICK,
        what=st.sampled_from(
            [
                *("lapse", "renewals pass", "freeze", "wake", "wake", "deadline", "rows", "retention", "disconnect"),
                *(
                    "pause limit",
                    "pause limit",
                    "park limit",
                    "unknown",
                    "long in lane",
                    "long in line",
                    "long in line",
                ),
            ]
        ),
    )
    def time(self, number: int, what: str) -> None:
        match what:
            case "lapse" if owners := sorted(self.model.owners):
                self._lapse(owners[number % len(owners)])
            case "renewals pass":
                self._renewals_pass()
            case "freeze":
                self._freeze()
            case "wake":
                self._wake_time_comes(self.pick(number, "waiting", "paused"))
            case "deadline":
                self._deadline_comes(self.pick(number))
            case "rows":
                self._rows_are_carried_out(self.pick(number, "ended"))
            case "retention":
                self._retention_passes(self.pick(number, "ended"))
            case "disconnect" if attended := sorted(self.model.attended):
                self._watchers_lapse(attended[number % len(attended)])

    @rule(
        number=PICK, what=st.sampled_from(["pause", "pause", "park", "park", "unknown", "long in lane", "long in line"])
    )
    def limit(self, number: int, what: str) -> None:
        """It has been paused, parked, in its lane or in the line for its target for too long."""
        match what:
            case "pause":
                self._pause_limit_comes(self.pick(number, "paused"))
            case "park":
                self._park_limit_comes(self.pick(number, "parked"))
            case "unknown":
                self._nobody_who_knows_it_came_by("tu"[number % 2])
            case "long in lane":
                self._waits_long_in_its_lane(self.pick(number, "lane"))
            case "long in line":
                self._waits_long_for_its_target(self.pick(number, "waiters"))

    @rule(number=PICK, verb=st.sampled_from(["sweep", "sweep", "retire", "retire one", "abandon", "audit"]))
    def tidy(self, number: int, verb: str) -> None:
        if verb == "retire one" and (m := self.pick(number, "ended")):
            if number % 2:
                self._rows_are_carried_out(m)
            self._retention_passes(m)
        match verb:
            case "sweep":
                self._sweep()
            case "abandon":
                if leased := [one for one in self.model.attended if self.at(one) == "leased"]:
                    self._watchers_lapse(leased[number % len(leased)])
                self._abandon()
            case "audit":
                undisturbed(self.verbs)
            case _:
                assert self.verbs.retire()[0] == self.model.retire()

    @invariant()
    def the_shard_agrees_with_itself_and_with_the_model(self) -> None:
        self.agree()

    def teardown(self) -> None:
        try:
            self._finish()
        finally:
            self.feed.close()
            self.verbs.redis.close()


WORDS: Final = (
    *(
        "claimed",
        "parked",
        "adopt OK",
        "adopt FENCED",
        "permit OK",
        "replay RUNNING",
        "release OK",
        "progress OK",
        "progress FENCED",
    ),
    *(f"commit {word}" for word in ("OK", "DUPLICATE", "FENCED", "SIGNALLED", "YIELDED")),
    *(f"control {word}" for word in ("OK", "DUPLICATE", "ENDED", "GONE")),
    *(f"pause, then {place}" for place in ("leased", "paused")),
    *(f"resume, then {place}" for place in ("lane", "waiters")),
    *(f"priority in {place}" for place in ("lane", "waiters")),
)
"""What a run that is worth anything has met."""
RARE: Final = (
    *("claim LOST", "renew LOST", "commit GONE", "commit SUPERSEDED", "release FENCED", "permit BUSY", "permit FENCED"),
    *("abandoned in leased", "deadline, then parked", "resume, then waiting"),
    *(f"priority in {place}" for place in ("leased", "waiting", "paused")),
    *("replay OK", "replay ROWS", "replay ENDED", "discard OK"),
    *("swept from paused", "swept from parked", "convicted"),
)


def explore(
    url: str, examples: int, steps: int, scripts: Mapping[str, Script] = SCRIPTS, phases: Sequence[Phase] = tuple(Phase)
) -> Counter[str]:
    """Run so many examples; how often each thing was met."""

    class Machine(Interleavings):
        """One run's."""

    Machine.url, Machine.said, Machine.scripts = url, Counter(), scripts
    options = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=phases,
        database=settings().database if scripts is SCRIPTS else None,  # what breaks a mutant proves nothing later
        print_blob=True,
    )
    run_state_machine_as_test(Machine, settings=options)
    return Machine.said


@pytest.mark.timeout(600)
def test_random_interleavings_keep_every_promise(redis_url: str) -> None:
    said = explore(redis_url, 200, 50)
    assert [word for word in WORDS if not said[word]] == []


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_random_interleavings_keep_every_promise(redis_url: str) -> None:
    examples = int(os.environ.get("DUALLOOP_TEST_EXAMPLES", "1500"))
    said = explore(redis_url, examples, 80)
    assert [word for word in (*WORDS, *RARE) if not said[word]] == []
