"""The sentence for what missions meet beyond the plain way, word for word."""

from typing import Any

import pytest

from frontend_loop.why import Standing, why

NOW = 1_795_975_445_123  # 2026-11-29T18:04:05.123Z
HOUR = 3_600_000
DAY = 24 * HOUR
LEFT = "2 min 10 s of its deadline are left."

NEW = {
    "paused, by somebody, with time left": (
        ("paused", "PAUSED", {"paused_at": NOW - 65 * 60_000, "paused_by": "anna", "pause_limit": DAY}),
        (
            "PAUSED in SENDING for 1 h 5 min: anna said pause; let it go on with: dualloop missions resume ID; "
            "2 min 10 s of its deadline are left; while it is paused it ends no earlier than 2026-11-30 "
            "16:59:05.123 UTC (in 22 h 55 min)."
        ),
    ),
    "paused past its deadline": (
        ("paused", "PAUSED", {"paused_at": NOW - HOUR, "pause_limit": DAY, "deadline": NOW - 60_000}),
        (
            "PAUSED in SENDING for 1 h: somebody said pause; let it go on with: dualloop missions resume ID; "
            "its deadline passed 1 min ago: it ends as soon as it is resumed, and in any case "
            "at 2026-11-30 17:04:05.123 UTC (in 23 h)."
        ),
    ),
    "paused with a deadline beyond the limit": (
        ("paused", "PAUSED", {"paused_at": NOW - HOUR, "pause_limit": DAY, "deadline": NOW + 2 * DAY}),
        (
            "PAUSED in SENDING for 1 h: somebody said pause; let it go on with: dualloop missions resume ID; "
            "2 d of its deadline are left."
        ),
    ),
    "paused while it waited": (
        (
            "paused",
            "PAUSED",
            {
                "entered_at": NOW - 1000,
                "waiting_for": "timer",
                "wake_at": NOW + HOUR,
                "task_id": "04ABC",
                "unread": 1,
                "entries": ("cancel",),
            },
        ),
        (
            "PAUSED in SENDING for 1.0 s: somebody said pause; let it go on with: dualloop missions resume 04ABC; "
            "it goes on waiting for its timer until 19:04:05.123 UTC (in 1 h), but its deadline comes first; "
            "1 entry of its inbox is unread (cancel); " + LEFT
        ),
    ),
    "a wait beyond its deadline": (
        ("waiting", "WAITING", {"waiting_for": "event", "awaited": "PAID", "wake_at": NOW + HOUR}),
        (
            "WAITING in SENDING for the event PAID until 19:04:05.123 UTC (in 1 h), but its deadline comes first; "
            + LEFT
        ),
    ),
    "an undo that waits beyond its deadline, which ends no undo": (
        (
            "waiting",
            "COMPENSATING",
            {"waiting_for": "retry", "wake_at": NOW + HOUR, "left": ("SENDING",), "ending": "CANCELLED (requested)"},
        ),
        (
            "COMPENSATING in SENDING for its retry until 19:04:05.123 UTC (in 1 h); "
            "it undoes SENDING first, and ends CANCELLED (requested)."
        ),
    ),
    "a permit of a dependency": (
        (
            "waiting",
            "WAITING",
            {"waiting_for": "permit", "wake_at": NOW + 4200, "blocked": "no permit of dep:bank is free", "ahead": 3},
        ),
        (
            "WAITING in SENDING for a permit until 18:04:09.323 UTC (in 4.2 s); all that the dependency bank may have "
            "are taken, 3 missions in front of it; one that comes free wakes it earlier; " + LEFT
        ),
    ),
    "a permit of a dependency on one target": (
        (
            "waiting",
            "WAITING",
            {
                "waiting_for": "permit",
                "wake_at": NOW + 420,
                "blocked": "no permit of dep:hub:default:light.a is free, 0",
            },
        ),
        (
            "WAITING in SENDING for a permit until 18:04:05.543 UTC (in 420 ms); all that the dependency hub on "
            "light.a may have are taken; one that comes free wakes it earlier; " + LEFT
        ),
    ),
    "a permit of its type, undoing": (
        (
            "waiting",
            "COMPENSATING",
            {
                "waiting_for": "permit",
                "wake_at": NOW + 420,
                "blocked": "no permit of type:test.x is free",
                "left": ("SENDING",),
                "ending": "CANCELLED (requested)",
            },
        ),
        (
            "COMPENSATING in SENDING for a permit until 18:04:05.543 UTC (in 420 ms); all that the type test.x may "
            "have are taken; one that comes free wakes it earlier; it undoes SENDING first, and ends CANCELLED "
            "(requested)."
        ),
    ),
    "an open breaker": (
        (
            "waiting",
            "WAITING",
            {"waiting_for": "permit", "wake_at": NOW + 42_000, "blocked": "bank is left alone: open"},
        ),
        (
            "WAITING in SENDING for a permit until 18:04:47.123 UTC (in 42 s); the breaker of bank is open; "
            "then it asks again; " + LEFT
        ),
    ),
    "a breaker of tomorrow": (
        (
            "waiting",
            "WAITING",
            {"waiting_for": "permit", "wake_at": NOW + 42_000, "blocked": "bank is left alone: odd"},
        ),
        (
            "WAITING in SENDING for a permit until 18:04:47.123 UTC (in 42 s); bank is left alone, odd; "
            "then it asks again; " + LEFT
        ),
    ),
    "parked, with a limit": (
        ("parked", "PENDING", {"parked_at": NOW - 60_000, "park_limit": HOUR}),
        (
            "PENDING: no live worker knows test.x@2 (parked since 18:03:05.123 UTC); start one that does, or it fails "
            "with unknown_type at 19:03:05.123 UTC (in 59 min); " + LEFT
        ),
    ),
    "parked, of a version that comes": (
        ("parked", "WAITING", {"parked_at": NOW, "park_limit": HOUR, "future": True}),
        (
            "WAITING in SENDING: no live worker knows test.x@2 (parked since 18:04:05.123 UTC); start one that does, "
            "or it fails with future_version at 19:04:05.123 UTC (in 1 h); " + LEFT
        ),
    ),
    "parked, and a worker has come": (
        ("parked", "PENDING", {"parked_at": NOW - 60_000, "park_limit": HOUR, "known": True}),
        ("PENDING: a worker that knows test.x@2 has come (parked since 18:03:05.123 UTC), and takes it soon; " + LEFT),
    ),
    "alone in a process": (
        ("leased", "RUNNING", {"owner": "solo-ab12", "deaths": 2, "lease_ends_at": NOW + 4200}),
        (
            "RUNNING in SENDING alone in a process of its own, since 2 workers died under it; its lease ends in 4.2 s "
            "unless the worker renews it; " + LEFT
        ),
    ),
    "alone, and deadly": (
        ("leased", "RUNNING", {"owner": "solo-ab12", "deaths": 4, "solo_deaths": 2, "lease_ends_at": NOW + 4200}),
        (
            "RUNNING in SENDING alone in a process of its own, since 4 workers died under it; 2 of 3 such processes "
            "died too; its lease ends in 4.2 s unless the worker renews it; " + LEFT
        ),
    ),
    "a dead letter": (
        (
            "ended",
            "FAILED",
            {"finished_at": NOW, "trouble": "permanent in SENDING: no.", "kept_until": NOW + DAY, "task_id": "04ABC"},
        ),
        (
            "FAILED at 18:04:05.123 UTC: permanent in SENDING: no; kept as a dead letter until 2026-11-30 "
            "18:04:05.123 UTC; run it again with: dualloop dead-letters replay 04ABC."
        ),
    ),
    "a dead letter that was undone in part": (
        (
            "ended",
            "FAILED",
            {
                "finished_at": NOW,
                "trouble": "compensation_failed in PAY: no",
                "kept_until": NOW + 1000,
                "undone": ("SHIP",),
                "left": ("PAY", "BOOK"),
                "ending": "FAILED with permanent in CHECK: no.",
            },
        ),
        (
            "FAILED at 18:04:05.123 UTC: compensation_failed in PAY: no; it was to end FAILED with permanent in "
            "CHECK: no; undone: SHIP; not undone: PAY, BOOK; kept as a dead letter until 18:04:06.123 UTC; run it "
            "again with: dualloop dead-letters replay ID --from start."
        ),
    ),
    "given up amid its undos, which a replay goes on with": (
        (
            "ended",
            "FAILED",
            {
                "state": "FAILED",
                "finished_at": NOW,
                "trouble": "worker_lost in PAY: it killed three",
                "ending": "CANCELLED (requested)",
                "undone": ("SHIP",),
                "left": ("PAY",),
                "kept_until": NOW + 1000,
                "amid": True,
            },
        ),
        (
            "FAILED at 18:04:05.123 UTC: worker_lost in PAY: it killed three; it was to end CANCELLED (requested); "
            "undone: SHIP; not undone: PAY; kept as a dead letter until 18:04:06.123 UTC; run it again with: "
            "dualloop dead-letters replay ID."
        ),
    ),
    "alone though it got on each time": (
        ("leased", "RUNNING", {"owner": "solo-1", "lease_ends_at": NOW + 1000}),
        (
            "RUNNING in SENDING alone in a process of its own, since workers died again and again under it; "
            "its lease ends in 1.0 s unless the worker renews it; " + LEFT
        ),
    ),
    "a pool that nobody serves": (
        ("lane", "PENDING", {"ready_at": NOW - 1000, "unserved": "speech", "ahead": 3}),
        (
            "PENDING: ready for 1.0 s, but no live worker serves its pool speech; start one with speech in its "
            "DUALLOOP_POOLS, or with none; " + LEFT
        ),
    ),
    "no worker at all, whatever its pool": (
        ("lane", "PENDING", {"ready_at": NOW - 1000, "unserved": "speech", "workers": 0}),
        "PENDING: ready for 1.0 s, but no worker is alive (start one: dualloop background); " + LEFT,
    ),
    "a lent priority, in the lane": (
        ("lane", "WAITING", {"lane": "urgent", "base": "bulk", "target": "light.a", "holds": True, "ahead": 1}),
        (
            "WAITING in SENDING: ready, waits for a free worker; 1 mission in front of it in the urgent lane; it goes "
            "before others as urgent, which those lend it that wait for the target light.a; its own is bulk; " + LEFT
        ),
    ),
    "a lent priority, at work": (
        (
            "leased",
            "RUNNING",
            {"lane": "urgent", "base": "normal", "target": "light.a", "owner": "ab12", "lease_ends_at": NOW + 1000},
        ),
        (
            "RUNNING in SENDING on worker ab12; its lease ends in 1.0 s unless the worker renews it; it goes before "
            "others as urgent, which those lend it that wait for the target light.a; its own is normal; " + LEFT
        ),
    ),
    "undoing, in the middle": (
        (
            "leased",
            "COMPENSATING",
            {
                "owner": "ab12",
                "lease_ends_at": NOW + 1000,
                "undone": ("SHIP",),
                "left": ("PAY", "BOOK"),
                "ending": "FAILED with permanent in CHECK: no.",
                "state": "PAY",
            },
        ),
        (
            "COMPENSATING in PAY on worker ab12; its lease ends in 1.0 s unless the worker renews it; it undoes PAY "
            "after SHIP, then BOOK, and ends FAILED with permanent in CHECK: no."
        ),
    ),
    "a newer command": (
        ("waiters", "PENDING", {"target": "light.a", "holder": "04B", "ahead": 0, "aspect": "power", "newer": 1}),
        (
            "PENDING: waits for the target light.a, held by 04B; next in line; a newer command sets the power of the "
            "target light.a, so it ends before it acts; " + LEFT
        ),
    ),
    "superseded, and undone": (
        ("ended", "CANCELLED", {"finished_at": NOW, "reason": "superseded", "undone": ("PAY",)}),
        "CANCELLED at 18:04:05.123 UTC: a newer command replaced it; undone: PAY.",
    ),
    "a second run": (
        ("lane", "PENDING", {"run": 2, "ready_at": NOW - 1000}),
        "PENDING: ready for 1.0 s, waits for a free worker; this is its run 2; " + LEFT,
    ),
}


def standing(place: str, status: str, **more: Any) -> Standing:
    """A mission with two minutes and ten seconds left and one live worker."""
    fields: dict[str, Any] = {"state": "SENDING", "kind": "test.x@2", "deadline": NOW + 130_000, "workers": 1}
    return Standing(now=NOW, place=place, status=status, **(fields | more))


@pytest.mark.parametrize(("mission", "sentence"), NEW.values(), ids=NEW)
def test_the_sentence_of_each_case(mission: tuple[str, str, dict[str, Any]], sentence: str) -> None:
    place, status, more = mission
    assert why(standing(place, status, **more)) == sentence


@pytest.mark.parametrize("word", ["open", "retry_after", "probing", "ramping", "retry_budget"])
def test_every_word_of_a_breaker_is_said_as_a_sentence(word: str) -> None:
    blocked = f"bank is left alone: {word}"
    sentence = why(standing("waiting", "WAITING", waiting_for="permit", wake_at=NOW + 1, blocked=blocked))
    assert "bank" in sentence
    assert word not in sentence.replace("is open", "")
