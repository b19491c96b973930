"""Dead letters (P8, P13, P18): how a mission becomes one, and how long it is kept."""

import pytest

from shared.clock import parse_rfc3339
from tests.redis.audit import faults, read
from tests.redis.scripts_client import HOUR_MS, New, Taken, Verbs, event

DEAD_MS = 3 * HOUR_MS


def taken(verbs: Verbs, owner: str = "w1", **fields: str) -> Taken:
    """A mission under lease."""
    verbs.accept(New("m", **fields))  # type: ignore[arg-type]  # text fields only
    return verbs.take(owner)["m"]


def is_kept(verbs: Verbs, name: str = "m") -> None:
    """As a dead letter: its record for the longer time, its result for the usual one."""
    assert verbs.score("dead_letters", name) is not None
    assert abs((verbs.score("retire", name) or 0) - verbs.now() - DEAD_MS) < 10_000
    assert 0 < verbs.redis.pttl(verbs.key(f"result:{name}")) <= HOUR_MS
    result = verbs.result(name)
    assert result is not None
    assert parse_rfc3339(result["expires_at"]) - parse_rfc3339(result["finished_at"]) == HOUR_MS
    assert faults(read(verbs.redis)) == []


def lost(verbs: Verbs, owner: str) -> None:
    """The owner dies, and another process looks twice."""
    verbs.set_score("owners", owner, 1)
    for _ in range(2):
        verbs.claim("other", 0, renew_ms=0, dead_retention_ms=DEAD_MS)


def test_a_buried_mission_is_kept_longer(verbs: Verbs) -> None:
    m = taken(verbs, target="a:lamp")
    verbs.accept(New("next", target="a:lamp"))
    bury = m.write("bury", state="FAILED", waiting_for="PAYING", events=(event("FAILED", "FAILED"),))
    assert verbs.commit("w1", bury, dead_retention_ms=DEAD_MS)[0].word == "OK"

    is_kept(verbs)
    assert (verbs.record("m")["failed_in"], verbs.record("m")["state"]) == ("PAYING", "FAILED")
    assert (verbs.result("m") or {})["status"] == "FAILED"
    assert verbs.holder("a:lamp") == "next"
    assert verbs.score("deadlines", "m") is None


def test_an_end_is_no_dead_letter(verbs: Verbs) -> None:
    m = taken(verbs)
    verbs.commit("w1", m.write("end", status="FAILED"))

    assert verbs.score("dead_letters", "m") is None
    assert (verbs.score("retire", "m") or 0) <= verbs.now() + HOUR_MS


def test_a_dead_letter_goes_with_its_retention(verbs: Verbs) -> None:
    m = taken(verbs)
    verbs.commit("w1", m.write("bury", waiting_for="START"))
    verbs.set_score("retire", "m", 1)
    verbs.retire()

    assert not verbs.redis.keys("*:m")
    assert not verbs.redis.exists(verbs.key("dead_letters"))


def test_the_third_loss_of_an_owner_that_carried_nothing_else_convicts(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp", watcher="front"), New("next", target="a:lamp"))
    for n in range(3):
        assert verbs.place("m") == "lane"
        verbs.take(f"solo-{n}", 1)
        lost(verbs, f"solo-{n}")

    is_kept(verbs)
    result = verbs.result("m")
    assert result is not None
    assert (result["status"], result["error"]["code"]) == ("FAILED", "worker_lost")
    assert verbs.record("m")["failed_in"] == "START"
    assert verbs.log("m")[-1]["status"] == "FAILED"
    assert [one["data"] for one in verbs.log("m")].count({"event": "reclaimed", "deaths": 2}) == 1
    assert verbs.holder("a:lamp") == "next"


@pytest.mark.parametrize(
    ("document", "left"),
    [
        ('{"done":[["BOOK",1,false],["PAY",2,true]],"context":{}}', ["PAY", "BOOK"]),
        ('{"done":"?","context":{}}', None),
        ('{"context":{}}', None),
        ("[]", None),
        ("no JSON", None),
    ],
)
def test_one_that_nobody_undoes_says_what_is_not_undone(verbs: Verbs, document: str, left: list[str] | None) -> None:
    verbs.accept(New("m"))
    verbs.redis.hset(verbs.key("mission:m"), mapping={"solo_deaths": 2, "document": document})
    verbs.take("solo-0", 1)
    lost(verbs, "solo-0")

    result = verbs.result("m")
    assert result is not None
    assert result["error"].get("not_undone") == left
    assert verbs.log("m")[-1]["data"].get("not_undone") == left


def test_owners_that_carried_others_too_convict_nobody(verbs: Verbs) -> None:
    verbs.accept(New("m"), New("n"))
    for n in range(5):
        verbs.take(f"w{n}")
        lost(verbs, f"w{n}")

    record = verbs.record("m")
    assert (record["place"], record["deaths"], record.get("solo_deaths")) == ("lane", "5", None)
    assert faults(read(verbs.redis)) == []


def test_whoever_got_on_is_no_suspect(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    for n in range(2):
        verbs.take(f"solo-{n}", 1)
        lost(verbs, f"solo-{n}")
    m = verbs.take("solo-9", 1)["m"]
    verbs.commit("solo-9", m.write(events=(event(),)))
    lost(verbs, "solo-9")

    assert (verbs.place("m"), verbs.record("m")["solo_deaths"], verbs.record("m")["deaths"]) == ("lane", "1", "1")


def park(verbs: Verbs, *names: str) -> None:
    """Missions that no worker here knows, for longer than the limit."""
    verbs.accept(*(New(name, type="new", version=2) for name in names))
    verbs.take("w1")
    for name in names:
        verbs.redis.hset(verbs.key(f"mission:{name}"), "parked_at", 1)
        verbs.set_score("parked:new@2", name, 1)


def limit(verbs: Verbs, *knows: str, lease_ms: int = HOUR_MS, park_limit_ms: int = 1000) -> int:
    """The sweep of a worker."""
    sweep = verbs.sweep(knows=knows, lease_ms=lease_ms, park_limit_ms=park_limit_ms, dead_retention_ms=DEAD_MS)
    return sweep[0]


def test_what_nobody_knows_ends_at_the_limit_of_parking(verbs: Verbs) -> None:
    park(verbs, "m")
    assert limit(verbs, "t@1") == 1

    is_kept(verbs)
    result = verbs.result("m")
    assert result is not None
    assert result["error"]["code"] == "unknown_type"
    assert result["error"]["message"] == "no worker has known new@2 since 1970-01-01T00:00:00.001Z"
    assert verbs.log("m")[-1]["data"]["code"] == "unknown_type"
    assert not verbs.redis.exists(verbs.key("parked_types"), verbs.key("parked:new@2"))


def test_the_result_says_when_it_was_started_by_a_worker_that_knew_it(verbs: Verbs) -> None:
    verbs.accept(New("m", type="new", version=2))
    m = verbs.take("w1", knows=("new@2",))["m"]
    verbs.event("m", "e1")
    verbs.release("w1", ("m", m.fence))
    park(verbs, "m")
    limit(verbs, "t@1")

    assert (verbs.result("m") or {})["started_at"] is not None
    assert faults(read(verbs.redis)) == []


def test_a_version_that_is_not_known_yet_is_one_of_the_future(verbs: Verbs) -> None:
    park(verbs, "m")
    limit(verbs, "t@1", "new@1")

    assert (verbs.result("m") or {})["error"]["code"] == "future_version"


def test_another_type_of_a_like_name_is_no_other_version(verbs: Verbs) -> None:
    park(verbs, "m")
    limit(verbs, "renew@1", "new.er@1")

    assert (verbs.result("m") or {})["error"]["code"] == "unknown_type"


def test_before_the_limit_it_stays_parked(verbs: Verbs) -> None:
    verbs.accept(New("m", type="new", version=2))
    verbs.take("w1")

    assert limit(verbs, "t@1", park_limit_ms=HOUR_MS) == 0
    assert verbs.place("m") == "parked"


def test_while_a_live_worker_knows_it_the_limit_does_not_count(verbs: Verbs) -> None:
    """It has no free slot now; it will have."""
    park(verbs, "m")
    verbs.claim("busy", 0, knows=("new@2",))
    assert limit(verbs, "t@1") == 0
    assert verbs.place("m") == "parked"

    verbs.redis.hset(verbs.key("parked_known"), "new@2", verbs.now() - 30_000)
    assert limit(verbs, "t@1", lease_ms=20_000) == 0
    assert limit(verbs, "t@1", lease_ms=10_000) == 1
    assert faults(read(verbs.redis)) == []


def test_fifty_a_sweep_of_what_nobody_knows(verbs: Verbs) -> None:
    for start in (0, 30):
        park(verbs, *(f"m{n:02}" for n in range(start, start + 30)))

    assert limit(verbs) == 50
    assert limit(verbs) == 10
    assert faults(read(verbs.redis)) == []


def test_a_broken_one_never_saves_the_others(verbs: Verbs) -> None:
    park(verbs, "m", "bad", "n")
    verbs.redis.set(verbs.key("log:bad"), "of another type")

    assert limit(verbs) == 2
    assert verbs.place("bad") == "parked"
    verbs.redis.delete(verbs.key("log:bad"))


def test_an_entry_that_disagrees_with_the_record_is_dropped(verbs: Verbs) -> None:
    park(verbs, "m")
    verbs.accept(New("n"))
    verbs.redis.zadd(verbs.key("parked:new@2"), {"n": 1, "never": 1})
    limit(verbs)

    assert verbs.place("n") == "lane"
    assert not verbs.redis.exists(verbs.key("parked:new@2"), verbs.key("parked_types"))
