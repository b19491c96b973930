"""The real scripts under random interleavings of a few workers, clients and mishaps.

After every step three things are held against each other: what the scripts answered and what the model (`model.py`)
says, the records and the model, and the shard with itself (`audit.py`). At the end of each example everything is
driven fairly, and every mission must end and leave nothing behind. `stage.py` makes each move on both.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import pytest
import redis
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
from tests.redis.mutants import MUTANTS, Mutant
from tests.redis.scripts_client import FAR, Move, New
from tests.redis.stage import MOST, Outcome, Stage

PICK = st.integers(0, 7)
MOVES = st.lists(st.sampled_from(["leave", "stay", "stay", "wait", "leave", "yield", "end"]), min_size=1, max_size=3)
OUTCOME = st.tuples(st.sampled_from("ABC"), st.booleans(), st.sampled_from([FAR, None, 1]))
"""State, whether it is being undone, wake time of a wait."""

FATE = st.sampled_from(["heard", "heard", "answer lost", "lost"])
MISSION = st.tuples(
    st.sampled_from("tu"),
    st.sampled_from(["urgent", "normal", "normal", "bulk"]),
    st.sampled_from(["", "a:lamp", "a:lamp", "a:fan"]),
)
"""Type, priority, target."""


class Interleavings(Stage, RuleBasedStateMachine):
    """What may happen next."""

    def __init__(self) -> None:
        RuleBasedStateMachine.__init__(self)
        Stage.__init__(self)

    @initialize(missions=st.lists(MISSION, min_size=2, max_size=5))
    def begin(self, missions: list[tuple[str, str, str]]) -> None:
        for one in missions:
            self._accept(*one, copies=1)

    @precondition(lambda self: self.accepted < MOST)
    @rule(mission=MISSION, copies=st.integers(1, 2))
    def accept(self, mission: tuple[str, str, str], copies: int) -> None:
        self._accept(*mission, copies=copies)

    @rule(
        number=PICK,
        aim=st.sampled_from(["", "leased", "waiting", "waiting", "parked"]),
        what=st.sampled_from(["cancel", "e1", "e2", "e3", "accept"]),
        copies=st.integers(1, 2),
    )
    def client(self, number: int, aim: str, what: str, copies: int) -> None:
        """Cancels, events and accepts of what was accepted, has ended, or is gone; also doubled, and aimed."""
        aimed = self.pick(number, aim) if aim else None
        task_id = aimed.task_id if aimed else f"m{number % (self.accepted + 1)}"
        self.say(f"{what} in {self._at(task_id)}")
        for _ in range(copies):
            if what == "accept":
                if task_id in self.model.missions:
                    assert self.verbs.accept(New(task_id, target="a:fan")) == ["DUPLICATE"]
            elif what == "cancel":
                entry = '{"entry":"cancel","id":"cancel"}'
                expected = self.model.control(task_id, "cancel", "cancel", entry)
                self._posted(task_id, entry, expected, self.verbs.cancel(task_id))
            else:
                expected = self.model.control(task_id, "event", what, what)
                self._posted(task_id, what, expected, self.verbs.event(task_id, what))

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

    @rule(
        number=PICK,
        what=st.sampled_from(
            ["lapse", "renewals pass", "freeze", "wake", "wake", "deadline", "rows", "retention", "disconnect"]
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
                self._wake_time_comes(self.pick(number, "waiting"))
            case "deadline":
                self._deadline_comes(self.pick(number))
            case "rows":
                self._rows_are_carried_out(self.pick(number, "ended"))
            case "retention":
                self._retention_passes(self.pick(number, "ended"))
            case "disconnect" if attended := sorted(self.model.attended):
                self._watchers_lapse(attended[number % len(attended)])

    @rule(number=PICK, verb=st.sampled_from(["sweep", "sweep", "retire", "retire one", "abandon"]))
    def tidy(self, number: int, verb: str) -> None:
        if verb == "retire one" and (m := self.pick(number, "ended")):
            if number % 2:
                self._rows_are_carried_out(m)
            self._retention_passes(m)
        match verb:
            case "sweep":
                self._sweep()
            case "abandon":
                if leased := [one for one in self.model.attended if self._at(one) == "leased"]:
                    self._watchers_lapse(leased[number % len(leased)])
                self._abandon()
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
    "claimed",
    "parked",
    "claim LOST",
    *(f"commit {word}" for word in ("OK", "DUPLICATE", "FENCED", "SIGNALLED")),
    *(f"control {word}" for word in ("OK", "DUPLICATE", "ENDED", "GONE")),
    "release OK",
    "release FENCED",
)
"""What a run that is worth anything has met."""
RARE: Final = ("renew LOST", "commit GONE", "abandoned in lane", "abandoned in leased", "deadline, then parked")


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


def test_random_interleavings_keep_every_promise(redis_url: str) -> None:
    said = explore(redis_url, 200, 50)
    assert [word for word in WORDS if not said[word]] == []


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_random_interleavings_keep_every_promise(redis_url: str) -> None:
    examples = int(os.environ.get("DUALLOOP_TEST_EXAMPLES", "3000"))
    said = explore(redis_url, examples, 80)
    assert [word for word in (*WORDS, *RARE) if not said[word]] == []


CORE: Final = frozenset(
    {
        "a_held_target_is_waited_for_out_of_the_lane",
        "a_hold_given_up_goes_to_the_best_waiter",
        "a_kept_hold_stays_through_the_wait",
        "a_late_copy_is_fenced_once_somebody_has_claimed",
        "a_lease_that_was_renewed_between_the_looks_begins_anew",
        "a_leased_mission_is_never_ended_here",
        "a_leased_mission_is_told_not_ended",
        "a_mission_that_committed_is_never_ended_here",
        "a_stale_fence_is_fenced",
        "a_stale_rev_is_fenced",
        "an_entry_id_is_taken_once_a_run",
        "an_entry_that_came_after_the_read_is_signalled",
        "an_unparked_mission_whose_target_is_held_waits_for_it",
        "an_unread_entry_is_signalled_to_every_commit",
        "no_mission_goes_before_its_rows_are_carried_out",
        "one_look_is_not_enough",
        "parking_passes_the_hold_on",
        "the_fence_is_drawn_once_a_script_and_only_rises",
        "the_same_commit_again_is_a_duplicate",
        "what_waits_is_moved_towards_its_lane_in_the_same_step",
        "what_was_released_is_fenced",
    }
)
"""Guards that a random search has to miss too: if it does not, it searches in the wrong places."""


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "mutant", [pytest.param(one, id=f"{one.test} {n}") for n, one in enumerate(MUTANTS) if one.test in CORE]
)
def test_a_guard_that_is_taken_out_is_found_by_chance(redis_url: str, mutant: Mutant) -> None:
    scripts = mutant.scripts()
    with pytest.raises((AssertionError, redis.ResponseError, KeyError)):
        explore(redis_url, 2000, 50, scripts, (Phase.generate,))
