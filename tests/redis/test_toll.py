"""P8: who kills its workers is found out though it gets on a little each time; who has bad luck is not taken for it."""

from collections.abc import Sequence

import pytest

from backend_loop.suspicion import CONVICTED, TOLL, Losses, is_convicted, is_suspect
from tests.redis.scripts_client import New, Taken, Verbs, event


def lose(verbs: Verbs, owner: str) -> None:
    """It dies, and another process looks twice."""
    verbs.set_score("owners", owner, 1)
    for _ in range(2):
        verbs.claim("other", 0, renew_ms=0)


def keep(verbs: Verbs, owner: str, m: Taken, times: int) -> None:
    """Checkpoints with something new."""
    for n in range(times):
        (answer,) = verbs.commit(owner, m._replace(rev=m.rev + n).write(midway="kept", state="START", document=f"{n}"))
        assert answer.word == "OK"


def losses(verbs: Verbs) -> Losses:
    record = verbs.record("m")
    return Losses(int(record.get("deaths", 0)), int(record.get("toll", 0)))


def lives(verbs: Verbs, checkpoints: int, most: int) -> tuple[int, int]:
    """How many workers it costs, making so many checkpoints under each; and how many of its own processes after those.

    Each of these processes dies before the worker that looks after it, as far as it is not lost with it.
    """
    verbs.accept(New("m"))
    workers = 0
    while workers < most:
        m = verbs.take(f"w{workers}")["m"]
        assert Losses(m.deaths, m.toll) == losses(verbs)
        if is_suspect(losses(verbs)):
            break
        keep(verbs, f"w{workers}", m, checkpoints)
        lose(verbs, f"w{workers}")
        workers += 1
    else:
        return workers, 0
    verbs.release(f"w{workers}", ("m", m.fence))
    for n in range(most):
        m = verbs.take(f"solo-{n}")["m"]
        before = Losses(m.deaths, m.toll)
        keep(verbs, f"solo-{n}", m, checkpoints)
        if is_convicted(before, losses(verbs)):
            return workers, n + 1
        lose(verbs, f"solo-{n}")
        assert verbs.place("m") == "lane", "no takeover convicts who gets on"
    return workers, most


@pytest.mark.parametrize(("checkpoints", "cost"), [(0, (2, 1)), (1, (4, 3)), (5, (5, 6))])
def test_who_kills_about_as_often_as_it_gets_on_is_run_alone_and_convicted(
    verbs: Verbs, checkpoints: int, cost: Sequence[int]
) -> None:
    assert lives(verbs, checkpoints, 50) == tuple(cost)


def test_a_long_batch_on_machines_that_come_and_go_is_never_even_a_suspect(verbs: Verbs) -> None:
    assert lives(verbs, 10, 30) == (30, 0)


def test_an_answer_of_its_handler_pays_all_of_the_toll(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.redis.hset(verbs.key("mission:m"), "toll", 40)
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write(events=(event(),)))
    assert verbs.record("m")["toll"] == "0"


@pytest.mark.parametrize(("midway", "events"), [("runs", ()), ("runs", (event(data={"event": "child"}),)), ("", ())])
def test_what_says_nothing_of_its_handler_pays_nothing(verbs: Verbs, midway: str, events: Sequence[str]) -> None:
    verbs.accept(New("m"))
    verbs.redis.hset(verbs.key("mission:m"), "toll", 40)
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write(midway=midway, events=tuple(events)))
    assert verbs.record("m")["toll"] == "40"


def test_the_toll_is_bounded_so_that_bad_luck_can_be_paid_off(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.redis.hset(verbs.key("mission:m"), "toll", 55)
    verbs.take("w1")
    lose(verbs, "w1")
    assert verbs.record("m")["toll"] == "60"


@pytest.mark.parametrize(
    ("one", "alone"),
    [(Losses(1), False), (Losses(2), True), (Losses(0, TOLL - 1), False), (Losses(0, TOLL), True)],
)
def test_from_some_deaths_or_such_a_toll_on_it_is_run_alone(one: Losses, *, alone: bool) -> None:
    assert is_suspect(one) is alone


@pytest.mark.parametrize(
    ("before", "after", "convicted"),
    [
        (Losses(2, 20), Losses(2, 20), True),
        (Losses(2, 20), Losses(0, 19), False),
        (Losses(0, 36), Losses(0, 35), False),
        (Losses(0, 36), Losses(0, 36), True),
        (Losses(1, CONVICTED), Losses(0, CONVICTED - 1), False),
        (Losses(1, CONVICTED + 1), Losses(0, CONVICTED), True),
        (Losses(1, 60), Losses(0, 0), False),
    ],
)
def test_who_got_nowhere_is_convicted_and_who_got_on_with_such_a_toll_only(
    before: Losses, after: Losses, *, convicted: bool
) -> None:
    assert is_convicted(before, after) is convicted
