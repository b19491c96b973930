"""commit, kept and runs: a checkpoint in the middle of a handler, which goes on behind it (P8, P9, P11, P12)."""

from typing import Literal

import pytest

from tests.redis.audit import faults, read
from tests.redis.scripts_client import Move, New, Taken, Verbs, event

Midway = Literal["kept", "runs"]
BOTH = pytest.mark.parametrize("midway", ["kept", "runs"])


def working(verbs: Verbs, **fields: str) -> Taken:
    """A mission under lease of w1, whose handler runs: it has a permit, and two workers have died with it."""
    verbs.accept(New("m", **fields))  # type: ignore[arg-type]  # text fields only
    m = verbs.take("w1")["m"]
    assert verbs.permit("w1", "m", m.fence, dep__bank=1) == "OK"
    verbs.redis.hset(verbs.key("mission:m"), mapping={"deaths": 2, "solo_deaths": 1})
    return m


def keep(verbs: Verbs, m: Taken, midway: Midway = "kept", move: Move = "stay", **changes: object) -> str:
    given = {"state": "START", "document": "new", **changes}
    (answer,) = verbs.commit("w1", m.write(move, midway=midway, **given))
    assert faults(read(verbs.redis)) == []
    return answer.word


def permits(verbs: Verbs) -> list[str]:
    return [one.decode() for one in verbs.redis.hkeys(verbs.key("permits:dep:bank"))]


@BOTH
def test_it_is_kept_and_nothing_is_told(verbs: Verbs, midway: Midway) -> None:
    m = working(verbs)
    assert keep(verbs, m, midway) == "OK"

    record = verbs.record("m")
    assert (record["place"], record["status"], record["state"]) == ("leased", "RUNNING", "START")
    assert (record["rev"], record["seq"], record["document"]) == ("1", "1", "new")
    assert len(verbs.log("m")) == 1
    assert keep(verbs, m, midway) == "DUPLICATE"


@BOTH
def test_the_handler_keeps_its_permits(verbs: Verbs, midway: Midway) -> None:
    keep(verbs, working(verbs), midway)
    assert permits(verbs) == ["m"]
    assert verbs.record("m")["permits"] == "dep:bank"


@pytest.mark.parametrize("move", ["yield", "offer"])
def test_unless_it_gives_its_slot_back(verbs: Verbs, move: Move) -> None:
    m = working(verbs, lane="bulk:default:a")
    verbs.accept(New("urgent", lane="urgent:default:a"))
    assert keep(verbs, m, move=move) == ("YIELDED" if move == "offer" else "OK")

    assert permits(verbs) == []
    assert (verbs.place("m"), verbs.record("m")["deaths"]) == ("lane", "0")


def test_an_offer_that_nobody_needs_keeps_them(verbs: Verbs) -> None:
    assert keep(verbs, working(verbs, lane="bulk:default:a"), move="offer") == "OK"
    assert permits(verbs) == ["m"]


def test_deaths_count_anew_behind_one_with_something_new(verbs: Verbs) -> None:
    """P8: it says of the handler that it has got on."""
    keep(verbs, working(verbs))
    assert [verbs.record("m")[name] for name in ("deaths", "solo_deaths")] == ["0", "0"]


@pytest.mark.parametrize("events", [(), (event(data={"event": "child"}),)])
def test_but_not_behind_one_that_entries_have_brought_about(verbs: Verbs, events: tuple[str, ...]) -> None:
    keep(verbs, working(verbs), "runs", events=events)
    assert [verbs.record("m")[name] for name in ("deaths", "solo_deaths")] == ["2", "1"]


@BOTH
def test_a_newer_command_does_not_stop_it_nor_does_it_act(verbs: Verbs, midway: Midway) -> None:
    """P11 is asked when an act is entered; whether it has begun, its handler knows."""
    m = working(verbs, target="a:lamp", latest="a:lamp:power")
    verbs.accept(New("newer", latest="a:lamp:power"))
    assert keep(verbs, m, midway) == "OK"
    assert "acted" not in verbs.record("m")


def test_what_is_unread_comes_first(verbs: Verbs) -> None:
    """P3: the machine reacts to both, by one commit."""
    m = working(verbs)
    verbs.event("m", "e1")
    before = read(verbs.redis)
    assert keep(verbs, m) == "SIGNALLED"
    assert read(verbs.redis) == before
    assert keep(verbs, m, consumed=1) == "OK"
    assert verbs.unread("m") == []
