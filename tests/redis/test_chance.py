"""Take a guard out, and the random search finds it without being told where to look: it searches in the right place."""

from typing import Final

import pytest
import redis
from hypothesis import Phase

from tests.redis.mutants import MUTANTS, Mutant
from tests.redis.test_interleavings import explore

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
        # waiting for a target
        "a_higher_priority_goes_first_then_who_came_first",
        "a_waiter_is_ranked_anew_by_when_it_came",
        "it_falls_back_when_it_gives_the_hold_up",
        "the_holder_in_its_lane_inherits",
        # intents
        "a_newer_one_that_ended_without_acting_supersedes_nothing",
        "the_newest_acts_and_the_older_is_superseded",
        # pauses and limits
        "a_cancel_reaches_what_is_paused",
        "a_pause_behind_unread_entries_is_an_entry",
        "the_wake_time_is_kept_and_goes_on",
        "what_came_meanwhile_is_read_first",
        # dead letters, slots given back
        "of_two_replays_one_wins",
        "the_third_loss_of_an_owner_that_carried_nothing_else_convicts",
        "it_yields_to_urgent_work",
        # midway
        "a_commit_carries_it",
        "a_late_word_does_not_hide_what_a_commit_has_said_since",
        "deaths_count_anew_behind_one_with_something_new",
        "nor_has_who_was_taken_over_by_himself",
        "the_handler_keeps_its_permits",
        "the_result_has_the_newest",
        "unless_it_gives_its_slot_back",
    }
)
"""Guards that a random search has to miss too: if it does not, it searches in the wrong places."""


ASIDE: Final = frozenset({"adopt", "permit"})
"""Scripts whose tests have some of these names too, and whose refusals the search meets too seldom."""


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(one, id=f"{one.test} {n}")
        for n, one in enumerate(MUTANTS)
        if one.test in CORE and one.script not in ASIDE
    ],
)
def test_a_guard_that_is_taken_out_is_found_by_chance(redis_url: str, mutant: Mutant) -> None:
    scripts = mutant.scripts()
    with pytest.raises((AssertionError, redis.ResponseError, KeyError)):
        explore(redis_url, 2000, 50, scripts, (Phase.generate,))
