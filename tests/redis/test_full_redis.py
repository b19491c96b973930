"""A full Redis takes in nothing new, and lets everything drain (P4)."""

from collections.abc import Iterator

import pytest
import redis

from shared.scripts import SCRIPTS, TAKES_IN
from tests.conftest import SERVERS, StartRedis
from tests.redis.audit import faults, read
from tests.redis.scripts_client import New, Verbs, event


@pytest.fixture(params=SERVERS)
def roomy(request: pytest.FixtureRequest, start_redis: StartRedis) -> Iterator[Verbs]:
    """A server of its own, not yet full."""
    server = start_redis("--maxmemory-policy", "noeviction", name=request.param)
    with server.client() as client:
        yield Verbs(client)


def fill(verbs: Verbs) -> None:
    """Not a byte more."""
    verbs.redis.config_set("maxmemory", 1)


def pass_time(verbs: Verbs, index: str, *members: str) -> None:
    """Their time has come; the test's own write needs room for a moment."""
    verbs.redis.config_set("maxmemory", 0)
    for member in members:
        verbs.set_score(index, member, 1)
    fill(verbs)


def test_accept_is_refused_and_changes_nothing(roomy: Verbs) -> None:
    roomy.accept(New("m"))
    before = read(roomy.redis)
    fill(roomy)

    with pytest.raises(redis.exceptions.OutOfMemoryError):
        roomy.accept(New("n"))
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        roomy.announce(1000, {"a@1": "{}"})
    assert read(roomy.redis) == before


def test_everything_that_drains_goes_on(roomy: Verbs) -> None:
    roomy.accept(*(New(one) for one in ("a", "b", "c", "d")))
    roomy.accept(New("e", type="unknown"))
    roomy.claim("w0")
    roomy.release("w0", *((one, 1) for one in "abcd"))
    fill(roomy)

    taken = roomy.take("w1", 3)
    assert roomy.renew("w1") == set()
    assert roomy.event("a", "e1")[0] == "OK"
    assert roomy.commit("w1", taken["a"].write("stay", consumed=1, events=(event(),)))[0].word == "OK"
    assert roomy.commit("w1", taken["b"].write("leave", wake_at=1, document="x" * 1000))[0].word == "OK"
    assert roomy.take("w1").keys() == {"b", "d"}
    assert roomy.release("w1", ("c", taken["c"].fence)) == ["OK"]
    assert roomy.cancel("c") == ("OK", "PENDING")
    assert roomy.cancel("e") == ("OK", "CANCELLED")
    pass_time(roomy, "deadlines", "a")
    assert roomy.sweep()[0] == 1
    assert roomy.commit("w1", taken["a"].write("end", rev=1, consumed=1))[0].word == "OK"
    assert roomy.watch("front", 1000, "b") == ["OK"]
    pass_time(roomy, "retire", "a", "e")
    assert roomy.retire()[0] == 2
    pass_time(roomy, "owners", "w1")
    for _ in range(2):
        roomy.claim("w2", 0, renew_ms=0)
    assert roomy.place("b") == "lane"
    assert roomy.resign("w2") == "OK"
    assert faults(read(roomy.redis)) == []


def test_operators_and_suspects_are_served(roomy: Verbs) -> None:
    """Nobody gets out of a full Redis who cannot pause, resume, replay or bury what fills it."""
    roomy.accept(*(New(one) for one in ("a", "b", "c", "d")), New("bulk", lane="bulk:default:a"))
    fill(roomy)

    assert roomy.pause("a") == ("OK", "PAUSED")
    assert roomy.resume("a") == ("OK", "PENDING")
    assert roomy.prioritize("b", "urgent").word == "OK"
    taken = roomy.take("w1")
    assert roomy.permit("w1", "a", taken["a"].fence, type__t=1) == "OK"
    assert roomy.permit("w1", "b", taken["b"].fence, type__t=1) == "BUSY"
    assert roomy.adopt("w1", "solo-1", "c", taken["c"].fence) == "OK"
    assert roomy.commit("w1", taken["a"].write("pause"))[0].word == "OK"
    assert roomy.commit("w1", taken["bulk"].write("offer"))[0].word == "OK"
    assert roomy.commit("w1", taken["d"].write("bury", waiting_for="START"))[0].word == "OK"
    assert roomy.replay("d") == ("OK", 2)
    again = roomy.take("w1")["d"]
    assert roomy.commit("w1", again.write("bury", waiting_for="START"))[0].word == "OK"
    assert roomy.discard("d") == "OK"
    assert roomy.retire()[0] == 1
    assert faults(read(roomy.redis)) == []


@pytest.mark.parametrize("verb", SCRIPTS)
def test_only_what_takes_new_data_in_may_be_refused(verb: str) -> None:
    flags = SCRIPTS[verb].text.splitlines()[0]

    assert flags == ("#!lua" if verb in TAKES_IN else "#!lua flags=allow-oom")
