"""Takeover (P7, P8): two looks two renewals apart on Redis' own clock, by any claim, of the dead alone."""

import json

from tests.redis.audit import faults, read
from tests.redis.scripts_client import FAR, HOUR_MS, New, Taken, Verbs
from tests.waiting import until

RENEW_MS = 30


def lapse(verbs: Verbs, owner: str, ago_ms: int = 1) -> None:
    """The owner's lease has ended."""
    verbs.set_score("owners", owner, verbs.now() - ago_ms)


def look(verbs: Verbs, owner: str = "other", poll_ms: int = HOUR_MS, renew_ms: int = RENEW_MS) -> int:
    """A claim without slots; ms until something is due."""
    claim = verbs.claim(owner, 0, renew_ms=renew_ms, poll_ms=poll_ms)
    assert claim is not None
    return claim.due_ms


def age_looks(verbs: Verbs) -> None:
    """All first looks were long ago."""
    for owner, look_ in verbs.redis.hgetall(verbs.key("looks")).items():
        verbs.redis.hset(verbs.key("looks"), owner, look_.split(b"@")[0] + b"@1")


def take_over(verbs: Verbs, owner: str = "w1") -> None:
    """Both looks."""
    lapse(verbs, owner)
    look(verbs)
    age_looks(verbs)
    look(verbs)


def leased(verbs: Verbs, **fields: str) -> Taken:
    verbs.accept(New("m", **fields))  # type: ignore[arg-type]  # text fields only
    return verbs.take("w1")["m"]


def test_two_looks_two_renewals_apart_on_redis_own_clock(verbs: Verbs) -> None:
    leased(verbs)
    lapse(verbs, "w1")
    first = verbs.now()
    assert look(verbs) <= 2 * RENEW_MS, "the second look is due"

    def taken_over() -> bool:
        look(verbs)
        return verbs.place("m") == "lane"

    until(taken_over)
    assert verbs.now() - first >= 2 * RENEW_MS
    assert faults(read(verbs.redis)) == []


def test_one_look_is_not_enough(verbs: Verbs) -> None:
    leased(verbs)
    lapse(verbs, "w1")
    due = [look(verbs, renew_ms=HOUR_MS) for _ in range(3)]

    assert verbs.place("m") == "leased"
    assert all(0 < one <= 2 * HOUR_MS for one in due)


def test_a_lease_that_was_renewed_between_the_looks_begins_anew(verbs: Verbs) -> None:
    leased(verbs)
    lapse(verbs, "w1")
    look(verbs)
    age_looks(verbs)
    verbs.renew("w1")
    lapse(verbs, "w1", ago_ms=-1)
    until(lambda: verbs.now() > (verbs.score("owners", "w1") or 0))
    look(verbs)

    assert verbs.place("m") == "leased"


def test_b07_b20_a_live_lease_is_not_looked_at(verbs: Verbs) -> None:
    leased(verbs)
    look(verbs)

    assert not verbs.redis.exists(verbs.key("looks"))


def test_a_thawed_redis_forgets_all_first_looks(verbs: Verbs) -> None:
    """Nothing ran for two polls: nobody could renew, so the first look proves nothing."""
    leased(verbs)
    lapse(verbs, "w1")
    poll_ms = 60_000
    look(verbs, poll_ms=poll_ms)
    age_looks(verbs)
    verbs.redis.set(verbs.key("tick"), verbs.now() - 2 * poll_ms - 1)
    look(verbs, poll_ms=poll_ms)
    assert verbs.place("m") == "leased"

    age_looks(verbs)
    verbs.redis.set(verbs.key("tick"), verbs.now() - poll_ms * 3 // 2)
    look(verbs, poll_ms=poll_ms)
    assert verbs.place("m") == "lane", "one poll without a script is no freeze"


def test_a_renewal_notices_the_thaw_too(verbs: Verbs) -> None:
    leased(verbs)
    verbs.claim("w3")
    lapse(verbs, "w1")
    look(verbs)
    verbs.redis.set(verbs.key("tick"), 1)
    verbs.renew("w3", poll_ms=50)

    assert not verbs.redis.exists(verbs.key("looks"))
    assert int(verbs.redis.get(verbs.key("tick")) or 0) > 1


def test_a_takeover_counts_a_death_and_writes_the_event(verbs: Verbs) -> None:
    leased(verbs)
    take_over(verbs)

    record = verbs.record("m")
    assert (record["place"], record["status"], record["deaths"]) == ("lane", "PENDING", "1")
    assert verbs.log("m")[-1]["data"] == {"event": "reclaimed", "deaths": 1}
    assert (verbs.log("m")[-1]["status"], verbs.log("m")[-1]["seq"]) == ("PENDING", 2)
    assert verbs.take("w2")["m"].deaths == 1
    assert faults(read(verbs.redis)) == []


def test_a_mission_that_committed_waits_for_a_worker(verbs: Verbs) -> None:
    m = leased(verbs)
    verbs.commit("w1", m.write())
    take_over(verbs)
    assert verbs.record("m")["status"] == "WAITING"

    again = verbs.take("w2")["m"]
    verbs.commit("w2", again.write(status="COMPENSATING"))
    take_over(verbs, "w2")
    assert verbs.record("m")["status"] == "COMPENSATING"
    assert faults(read(verbs.redis)) == []


def test_a_takeover_keeps_hold_order_and_age(verbs: Verbs) -> None:
    m = leased(verbs, target="a:lamp")
    verbs.accept(New("next", target="a:lamp"))
    before = verbs.record("m")
    take_over(verbs)

    after = verbs.record("m")
    assert (after["order"], after["ready_at"]) == (before["order"], before["ready_at"])
    assert verbs.holder("a:lamp") == "m"
    assert verbs.place("next") == "waiters"
    assert verbs.commit("w1", m.write("end"))[0].word == "FENCED"
    assert faults(read(verbs.redis)) == []


def test_the_owner_of_what_was_taken_over_is_lost(verbs: Verbs) -> None:
    leased(verbs)
    take_over(verbs)

    assert verbs.renew("w1") is None
    assert verbs.claim("w1") is None
    shard = read(verbs.redis)
    assert not shard.all("held")
    assert not shard.all("looks")
    assert not shard.all("signals")


def test_signals_of_the_dead_go_with_its_lease(verbs: Verbs) -> None:
    leased(verbs)
    verbs.event("m", "e1")
    take_over(verbs)

    assert faults(read(verbs.redis)) == []
    assert verbs.take("w2")["m"].unread == ("e1",)


def test_a_mission_that_others_lease_by_now_is_left_alone(verbs: Verbs) -> None:
    m = leased(verbs)
    verbs.release("w1", ("m", m.fence))
    verbs.take("w2")
    verbs.redis.sadd(verbs.key("held:w1"), "m", "never")
    take_over(verbs)

    assert verbs.record("m")["owner"] == "w2"
    assert faults(read(verbs.redis)) == []


def test_a_mission_that_its_owner_gave_back_is_left_alone(verbs: Verbs) -> None:
    m = leased(verbs)
    verbs.commit("w1", m.write("leave", wake_at=FAR))
    verbs.redis.sadd(verbs.key("held:w1"), "m")
    take_over(verbs)

    assert verbs.place("m") == "waiting"
    assert faults(read(verbs.redis)) == []


def test_watchers_hear_of_a_takeover(verbs: Verbs) -> None:
    leased(verbs, watcher="front")
    with verbs.hearing("feed:front") as hear:
        take_over(verbs)
        (message,) = hear()

    assert json.loads(message.split(b"\nE")[1]) == verbs.log("m")[-1]


def test_a_claim_says_when_the_second_look_is_due(verbs: Verbs) -> None:
    leased(verbs)
    lapse(verbs, "w1")
    first = look(verbs, renew_ms=60_000)
    verbs.redis.hset(verbs.key("looks"), "w1", f"{verbs.score('owners', 'w1'):.0f}@{verbs.now() - 90_000}")

    assert first == 120_000
    assert 0 < look(verbs, renew_ms=60_000) <= 30_000


def test_fifty_missions_a_claim_whoever_had_them(verbs: Verbs) -> None:
    owners = ("w1", "w2", "w3")
    for owner in owners:
        verbs.accept(*(New(f"{owner}-{n:02}") for n in range(30)))
        assert len(verbs.take(owner)) == 30
    for owner in owners:
        lapse(verbs, owner)
    look(verbs)
    age_looks(verbs)

    assert look(verbs) == 0
    assert verbs.redis.zcard(verbs.key("lane:normal:default:a")) == 50
    assert faults(read(verbs.redis)) == []
    assert look(verbs) > 0
    assert verbs.redis.zcard(verbs.key("lane:normal:default:a")) == 90


def test_fifty_missions_a_claim_and_the_rest_at_once(verbs: Verbs) -> None:
    for start in (0, 50):
        verbs.accept(*(New(f"m{n:02}") for n in range(start, start + 40)))
        verbs.take("w1")
    verbs.take("w1")
    assert verbs.redis.scard(verbs.key("held:w1")) == 80
    lapse(verbs, "w1")
    look(verbs)
    age_looks(verbs)

    assert look(verbs) == 0, "there is more to put back"
    assert verbs.redis.scard(verbs.key("held:w1")) == 30
    assert verbs.renew("w1") is None, "lost from the first one on"
    assert faults(read(verbs.redis)) == []
    look(verbs)
    assert verbs.score("owners", "w1") is None
    assert faults(read(verbs.redis)) == []


def test_many_owners_that_die_together_are_taken_over_together(verbs: Verbs) -> None:
    owners = [f"w{n:02}" for n in range(12)]
    verbs.accept(*(New(f"m{n:02}") for n in range(12)))
    for owner in owners:
        verbs.take(owner, 1)
    for owner in owners:
        lapse(verbs, owner)
    look(verbs)
    age_looks(verbs)
    look(verbs)

    assert [verbs.place(f"m{n:02}") for n in range(12)] == ["lane"] * 12
    assert verbs.redis.zrange(verbs.key("owners"), 0, -1) == [b"other"]


def test_an_owner_never_takes_over_from_itself(verbs: Verbs) -> None:
    """A worker that slept past its lease and finds nobody took over goes on."""
    leased(verbs)
    lapse(verbs, "w1")
    verbs.redis.hset(verbs.key("looks"), "w1", f"{verbs.redis.zscore(verbs.key('owners'), 'w1'):.0f}@1")
    look(verbs, "w1")

    assert verbs.place("m") == "leased"
    assert verbs.renew("w1") == set()
