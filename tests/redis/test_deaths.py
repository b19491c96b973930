"""P8: deaths count until a handler has answered; what is committed before it runs says nothing of it."""

import pytest

from tests.redis.scripts_client import FAR, Move, New, Taken, Verbs, event


def begun(verbs: Verbs) -> Taken:
    verbs.accept(New("m"))
    return verbs.take("w1")["m"]


def test_whoever_got_on_has_no_deaths(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.redis.hset(verbs.key("mission:m"), "deaths", 2)
    verbs.commit("w1", m.write(events=(event(),)))

    assert verbs.record("m")["deaths"] == "0"


@pytest.mark.parametrize("move", ["wait", "leave"])
def test_a_wait_for_a_permit_forgets_no_deaths(verbs: Verbs, move: Move) -> None:
    """P8: it was claimed and has not run, so it may kill yet."""
    m = begun(verbs)
    verbs.redis.hset(verbs.key("mission:m"), "deaths", 2)
    verbs.commit("w1", m.write(move, status="WAITING", waiting_for="permit", wake_at=FAR, events=(event(),)))

    assert verbs.record("m")["deaths"] == "2"


def test_an_act_that_is_entered_anew_forgets_no_deaths(verbs: Verbs) -> None:
    """P8, P11: each worker that takes it over asks again whether a newer command exists, before its handler runs."""
    verbs.accept(New("m", target="a:lamp", latest="a:lamp:power"))
    m = verbs.take("w1")["m"]
    verbs.redis.hset(verbs.key("mission:m"), "deaths", 2)
    assert verbs.commit("w1", m.write(act=True))[0].word == "OK"

    assert verbs.record("m")["deaths"] == "2"
