"""The sentence that says why a mission is where it is: every place in every status, word for word where it matters."""

import re
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from frontend_loop.why import Standing, lasting, why
from shared.status import Status, WaitingFor

NOW = 1_795_975_445_123  # 2026-11-29T18:04:05.123Z
PLACES = ("lane", "leased", "waiting", "waiters", "parked", "paused", "ended")


def standing(place: str, status: str, **more: Any) -> Standing:
    """A mission with two minutes and ten seconds left and one live worker."""
    fields: dict[str, Any] = {"state": "SENDING", "kind": "test.x@2", "deadline": NOW + 130_000, "workers": 1}
    return Standing(now=NOW, place=place, status=status, **(fields | more))


@pytest.mark.parametrize(
    ("place", "status", "more", "sentence"),
    [
        (
            "waiting",
            "WAITING",
            {"waiting_for": "retry", "attempt": 3, "wake_at": NOW + 4200},
            (
                "WAITING in SENDING for its retry (attempt 3) until 18:04:09.323 UTC (in 4.2 s); "
                "2 min 10 s of its deadline are left."
            ),
        ),
        (
            "waiting",
            "WAITING",
            {
                "waiting_for": "retry",
                "attempt": 3,
                "tries": 5,
                "wake_at": NOW + 420,
                "trouble": "ConnectError: no\nroute.",
                "target": "light.kitchen",
                "holds": True,
            },
            (
                "WAITING in SENDING for its retry (attempt 3 of 5) until 18:04:05.543 UTC (in 420 ms); "
                "what went wrong: ConnectError: no route; it keeps the target light.kitchen meanwhile; "
                "2 min 10 s of its deadline are left."
            ),
        ),
        (
            "waiting",
            "WAITING",
            {"waiting_for": "timer", "wake_at": NOW + 7 * 3_600_000, "deadline": NOW + 30 * 3_600_000},
            (
                "WAITING in SENDING for its timer until 2026-11-30 01:04:05.123 UTC (in 7 h); "
                "1 d 6 h of its deadline are left."
            ),
        ),
        (
            "waiting",
            "WAITING",
            {"waiting_for": "event", "awaited": "PAYMENT_CONFIRMED"},
            (
                "WAITING in SENDING for the event PAYMENT_CONFIRMED, with no time limit but the deadline; "
                "2 min 10 s of its deadline are left."
            ),
        ),
        (
            "waiting",
            "WAITING",
            {"waiting_for": "timer", "wake_at": NOW - 3000, "workers": 0},
            (
                "WAITING in SENDING for its timer until 18:04:02.123 UTC, which was 3.0 s ago; "
                "no worker is alive (start one: dualloop background); 2 min 10 s of its deadline are left."
            ),
        ),
        (
            "waiters",
            "PENDING",
            {"target": "light.kitchen", "holder": "04006", "ahead": 2},
            (
                "PENDING: waits for the target light.kitchen, held by 04006; 3rd in line; "
                "2 min 10 s of its deadline are left."
            ),
        ),
        (
            "waiters",
            "WAITING",
            {"target": "light.kitchen", "holder": None, "ahead": 0},
            (
                "WAITING in SENDING: waits for the target light.kitchen, which has just been let go; "
                "next in line; 2 min 10 s of its deadline are left."
            ),
        ),
        (
            "parked",
            "PENDING",
            {"parked_at": NOW - 61_000},
            (
                "PENDING: no live worker knows test.x@2 (parked since 18:03:04.123 UTC); start one that does; "
                "2 min 10 s of its deadline are left."
            ),
        ),
        (
            "leased",
            "RUNNING",
            {"owner": "ab12cd34ef", "entered_at": NOW - 12_500, "lease_ends_at": NOW + 4200},
            (
                "RUNNING in SENDING on worker ab12cd34 for 12 s; its lease ends in 4.2 s unless the worker "
                "renews it; 2 min 10 s of its deadline are left."
            ),
        ),
        (
            "leased",
            "RUNNING",
            {"owner": "ab12cd34ef", "lease_ends_at": NOW - 1500, "deaths": 1, "attempt": 2, "tries": 5},
            (
                "RUNNING in SENDING on worker ab12cd34 (attempt 2 of 5); that worker's lease ran out 1.5 s ago, "
                "another one takes over soon; 1 worker died under it; 2 min 10 s of its deadline are left."
            ),
        ),
        (
            "leased",
            "COMPENSATING",
            {"owner": "ab12cd34ef", "lease_ends_at": None, "workers": 0, "unread": 2},
            (
                "COMPENSATING in SENDING on worker ab12cd34; that worker is gone, and no worker is alive (start "
                "one: dualloop background); 2 entries of its inbox are unread; 2 min 10 s of its deadline are left."
            ),
        ),
        (
            "lane",
            "PENDING",
            {"ready_at": NOW - 800, "ahead": 12, "lane": "bulk"},
            (
                "PENDING: ready for 800 ms, waits for a free worker; 12 missions in front of it in the bulk lane; "
                "2 min 10 s of its deadline are left."
            ),
        ),
        (
            "lane",
            "WAITING",
            {"ready_at": NOW - 60_000, "workers": 0, "unread": 1, "deadline": NOW - 1},
            (
                "WAITING in SENDING: ready for 1 min, but no worker is alive (start one: dualloop background); "
                "1 entry of its inbox is unread; its deadline passed 1 ms ago."
            ),
        ),
        ("ended", "SUCCEEDED", {"finished_at": NOW}, "SUCCEEDED at 18:04:05.123 UTC."),
        (
            "ended",
            "FAILED",
            {"finished_at": NOW, "trouble": "timeout in CHECKING: no answer."},
            "FAILED at 18:04:05.123 UTC: timeout in CHECKING: no answer.",
        ),
        ("ended", "FAILED", {}, "FAILED: its result, which said why, is no longer kept."),
        (
            "ended",
            "CANCELLED",
            {"finished_at": NOW - 86_400_000, "reason": "superseded"},
            "CANCELLED at 2026-11-28 18:04:05.123 UTC: a newer command replaced it.",
        ),
    ],
)
def test_the_sentence(place: str, status: str, more: dict[str, Any], sentence: str) -> None:
    assert why(standing(place, status, **more)) == sentence


WAITS = (None, *WaitingFor, "a word of tomorrow")


@pytest.mark.parametrize("place", [*PLACES, "a place of tomorrow"])
@pytest.mark.parametrize("status", Status)
def test_every_place_in_every_status_gives_one_sentence_with_its_status(place: str, status: str) -> None:
    for waiting_for, workers in product(WAITS, (0, 1)):
        bare = Standing(now=NOW, place=place, status=status, state="X", kind="t@1", waiting_for=waiting_for)
        full = standing(place, status, waiting_for=waiting_for, workers=workers, wake_at=NOW + 1, parked_at=NOW)
        more = replace(full, wake_at=NOW - 1, ahead=112, deaths=2, unread=1, target="t", run=3, base="bulk", newer=2)
        undoing = replace(
            more, aspect="power", ending="FAILED", left=("A", "B"), undone=("C",), kept_until=NOW, blocked="odd.\n"
        )
        paused = replace(undoing, paused_at=NOW, paused_by="x;", pause_limit=1, owner="solo-1", park_limit=1)
        for mission in (bare, full, more, undoing, paused):
            sentence = why(mission)
            assert sentence.startswith(status)
            assert re.fullmatch(r"[^\n]+[^.;, ]\.", sentence), sentence
            assert not re.search(r"None|; ?;|\.;", sentence), sentence
            if place != "ended" and mission.deadline is not None and mission.ending is None:
                assert "2 min 10 s of its deadline are left" in sentence


def test_whoever_needs_a_worker_is_told_when_there_is_none() -> None:
    for place in ("lane", "leased", "waiting"):
        sentence = why(standing(place, "WAITING", workers=0))
        assert "no worker is alive" in sentence, sentence


def test_a_long_message_is_cut() -> None:
    sentence = why(standing("ended", "FAILED", trouble="x" * 5000))
    assert len(sentence) < 300
    assert sentence.endswith("….")


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-5, "0 ms"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (9_999, "10.0 s"),
        (10_000, "10 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (130_000, "2 min 10 s"),
        (3_600_000, "1 h"),
        (3_659_000, "1 h"),
        (11_100_000, "3 h 5 min"),
        (86_400_000, "1 d"),
        (353_000_000, "4 d 2 h"),
    ],
)
def test_a_span_is_said_as_a_person_would(ms: int, text: str) -> None:
    assert lasting(ms) == text


@pytest.mark.parametrize(
    ("ahead", "turn"), [(0, "next"), (1, "2nd"), (2, "3rd"), (3, "4th"), (10, "11th"), (20, "21st"), (111, "112th")]
)
def test_a_turn_is_said_as_a_person_would(ahead: int, turn: str) -> None:
    assert f"; {turn} in line; " in why(standing("waiters", "PENDING", target="t", ahead=ahead))
