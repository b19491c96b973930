"""Who waits for a target (P10): by priority and by when they came; the holder is as urgent as who waits behind it."""

import pytest

from tests.redis.audit import faults, read
from tests.redis.scripts_client import FAR, Move, New, Verbs

AGED_MS = 30_000


def on_lamp(verbs: Verbs, *names: str) -> None:
    """Missions on one target, in one script; each is named by its priority."""
    verbs.accept(*(New(name, lane=f"{name.split()[0]}:default:a", target="a:lamp") for name in names))


def came_earlier(verbs: Verbs, name: str, ms: int) -> None:
    score = verbs.score("waiters:a:lamp", name)
    assert score is not None
    verbs.set_score("waiters:a:lamp", name, score - ms * 4096)


def holders(verbs: Verbs) -> list[str]:
    """Who gets the target one after the other, until nobody wants it."""
    found = []
    while (one := verbs.holder("a:lamp")) is not None:
        assert faults(read(verbs.redis)) == []
        found.append(one)
        verbs.cancel(one)
    return found


def test_a_higher_priority_goes_first_then_who_came_first(verbs: Verbs) -> None:
    on_lamp(verbs, "normal", "bulk 1", "normal 2", "urgent 3", "normal 4", "urgent 5")

    assert holders(verbs) == ["normal", "urgent 3", "urgent 5", "normal 2", "normal 4", "bulk 1"]


def test_who_waits_longer_by_thirty_seconds_a_rank_goes_before_urgent_ones(verbs: Verbs) -> None:
    """A stream of urgent missions holds a bulk one back for a minute at most, a normal one for half a minute."""
    on_lamp(verbs, "normal", "bulk 1", "normal 2", "urgent 3")
    came_earlier(verbs, "bulk 1", 2 * AGED_MS + 1000)
    came_earlier(verbs, "normal 2", AGED_MS - 1000)

    assert holders(verbs) == ["normal", "bulk 1", "urgent 3", "normal 2"]


def test_no_stream_of_urgent_missions_starves_a_bulk_one(verbs: Verbs) -> None:
    """Each second an urgent one comes and the holder ends: the bulk one has its turn within 61 of them."""
    on_lamp(verbs, "urgent 0", "bulk")
    together = (verbs.score("waiters:a:lamp", "bulk") or 0) - 2 * AGED_MS * 4096  # of an urgent one that came with it
    turns = 0
    while verbs.place("bulk") == "waiters":
        turns += 1
        on_lamp(verbs, f"urgent {turns}")
        verbs.set_score("waiters:a:lamp", f"urgent {turns}", together + turns * 1000 * 4096)
        verbs.cancel(verbs.holder("a:lamp") or "")
        assert turns <= 61
    assert turns >= 59


def test_the_holder_in_its_lane_inherits(verbs: Verbs) -> None:
    on_lamp(verbs, "bulk 1", "normal 2")
    assert (verbs.record("bulk 1")["lane"], verbs.record("bulk 1")["base"]) == ("normal:default:a", "bulk")
    on_lamp(verbs, "urgent 3")
    assert (verbs.record("bulk 1")["lane"], verbs.record("bulk 1")["base"]) == ("urgent:default:a", "bulk")
    verbs.accept(*(New(f"other {n}", lane="urgent:default:a") for n in range(3)))

    assert faults(read(verbs.redis)) == []
    assert list(verbs.take("w1", 0, urgent_slots=1)) == ["bulk 1"], "it is the oldest of the urgent ones now"


def test_a_worker_is_woken_for_the_holder(verbs: Verbs) -> None:
    on_lamp(verbs, "bulk 1")
    with verbs.hearing("wake:default") as hear:
        on_lamp(verbs, "urgent 2")

        assert hear()


def test_a_lower_priority_behind_changes_nothing(verbs: Verbs) -> None:
    on_lamp(verbs, "normal 1", "bulk 2", "normal 3")

    assert verbs.record("normal 1")["lane"] == "normal:default:a"
    assert "base" not in verbs.record("normal 1")


def test_a_leased_holder_inherits_for_when_it_comes_back(verbs: Verbs) -> None:
    on_lamp(verbs, "bulk 1")
    one = verbs.take("w1")["bulk 1"]
    on_lamp(verbs, "urgent 2")
    assert faults(read(verbs.redis)) == []
    verbs.release("w1", ("bulk 1", one.fence))

    assert verbs.score("lane:urgent:default:a", "bulk 1") == 1
    assert faults(read(verbs.redis)) == []


@pytest.mark.parametrize("move", ["leave", "pause"])
def test_it_falls_back_when_it_gives_the_hold_up(verbs: Verbs, move: Move) -> None:
    on_lamp(verbs, "bulk 1")
    one = verbs.take("w1")["bulk 1"]
    on_lamp(verbs, "urgent 2")
    verbs.commit("w1", one.write(move, wake_at=FAR, waiting_for="timer"))

    record = verbs.record("bulk 1")
    assert (record["lane"], record.get("base")) == ("bulk:default:a", None)
    assert verbs.holder("a:lamp") == "urgent 2"
    assert faults(read(verbs.redis)) == []


def test_it_keeps_it_through_a_wait_with_its_hold(verbs: Verbs) -> None:
    on_lamp(verbs, "bulk 1")
    one = verbs.take("w1")["bulk 1"]
    on_lamp(verbs, "urgent 2")
    verbs.commit("w1", one.write("wait", wake_at=1, waiting_for="retry"))
    verbs.claim("w2", 0)

    assert verbs.score("lane:urgent:default:a", "bulk 1") == 1
    assert faults(read(verbs.redis)) == []


@pytest.mark.parametrize("how", ["pause", "park"])
def test_it_falls_back_when_it_is_paused_or_parked(verbs: Verbs, how: str) -> None:
    on_lamp(verbs, "bulk 1", "urgent 2")
    verbs.pause("bulk 1") if how == "pause" else verbs.claim("w1", 0, 1, knows=())
    if how == "park":
        assert verbs.place("bulk 1") == "parked"

    assert (verbs.record("bulk 1")["lane"], verbs.record("bulk 1").get("base")) == ("bulk:default:a", None)
    assert faults(read(verbs.redis)) == []


def test_a_new_holder_inherits_from_those_who_are_left(verbs: Verbs) -> None:
    on_lamp(verbs, "normal 1", "bulk 2", "bulk 3", "urgent 4")
    came_earlier(verbs, "bulk 2", 3 * AGED_MS)
    came_earlier(verbs, "bulk 3", 2 * AGED_MS + 1000)
    verbs.cancel("normal 1")

    assert verbs.holder("a:lamp") == "bulk 2"
    assert verbs.record("bulk 2")["lane"] == "urgent:default:a"
    assert faults(read(verbs.redis)) == []


def test_who_wakes_behind_a_holder_raises_it_too(verbs: Verbs) -> None:
    on_lamp(verbs, "urgent 1")
    one = verbs.take("w1")["urgent 1"]
    verbs.commit("w1", one.write("leave", wake_at=1, waiting_for="timer"))
    on_lamp(verbs, "bulk 2")
    verbs.claim("w1", 0)

    assert verbs.place("urgent 1") == "waiters"
    assert verbs.record("bulk 2")["lane"] == "urgent:default:a"
    assert faults(read(verbs.redis)) == []
