"""Breakers (P12): one truth for all workers; open after failures in a row, few probes, a ramp; budgets of retries."""

from dataclasses import dataclass, replace
from typing import Any, Final

from tests.redis.scripts_client import Verbs

OK: Final = ("OK",)
LASTS_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Policy:
    failures: int = 3
    open_ms: int = 10_000
    probes: int = 2
    successes: int = 2
    ramp_ms: int = 10_000
    full: int = 32
    ratio: float = 0.5
    rate: float = 0

    def text(self) -> str:
        parts = (self.failures, self.open_ms, self.probes, self.successes, self.ramp_ms, self.full)
        return " ".join(map(str, (*parts, self.ratio, self.rate)))


PLAIN: Final = Policy()


def ask(
    verbs: Verbs, *callers: str, policy: Policy = PLAIN, again: bool = False, name: str = "bank", lasts: int = LASTS_MS
) -> list[tuple[Any, ...]]:
    """An answer each: OK, or WAIT, ms, why."""
    items = ((*("ask", name, caller, lasts, "1" if again else "", "", 0), policy.text()) for caller in callers)
    answers = verbs.run("breaker", *(part for item in items for part in item))[1:]
    return [OK if one == b"OK" else (one[0].decode(), one[1], one[2].decode()) for one in answers]


def why(answers: list[tuple[Any, ...]]) -> list[str]:
    """OK, or why to wait."""
    return [one[-1] for one in answers]


def report(
    verbs: Verbs, word: str, *callers: str, policy: Policy = PLAIN, after_ms: int = 0, again: bool = False
) -> list[str]:
    again_ = "1" if again else ""
    items = ((*("report", "bank", caller, LASTS_MS, again_, word, after_ms), policy.text()) for caller in callers)
    answers = verbs.run("breaker", *(part for item in items for part in item))[1:]
    return [(one if isinstance(one, bytes) else one[0]).decode() for one in answers]


def call(verbs: Verbs, word: str, *callers: str, policy: Policy = PLAIN) -> list[str]:
    """Ask, and report of those that were let through."""
    answers = ask(verbs, *callers, policy=policy)
    report(verbs, word, *(who for who, one in zip(callers, answers, strict=True) if one == OK), policy=policy)
    return why(answers)


def under_way(verbs: Verbs) -> set[str]:
    return {one.decode() for one in verbs.redis.zrange(verbs.key("calls:bank"), 0, -1)}


def phase(verbs: Verbs) -> str:
    return (verbs.redis.hget(verbs.key("breaker:bank"), "phase") or b"closed").decode()


def pass_time(verbs: Verbs, ms: int) -> None:
    """As if so much time had passed since all that is recorded."""
    key = verbs.key("breaker:bank")
    for field in ("since", "until", "ramp_at", "tokens_at"):
        if (was := verbs.redis.hget(key, field)) is not None:
            verbs.redis.hset(key, field, int(was) - ms)
    for caller, ends in verbs.redis.zrange(verbs.key("calls:bank"), 0, -1, withscores=True):
        verbs.redis.zadd(verbs.key("calls:bank"), {caller: ends - ms})


def wait_after(verbs: Verbs, turned: int, seconds: int) -> int:
    """The wait of one who is turned away as the next of so many, so many seconds later, all within one of Redis'."""
    while True:
        second = verbs.now() // 1000
        verbs.redis.hset(verbs.key("breaker:bank"), mapping={"turned": turned, "turned_in": second - seconds})
        (wait,) = ask(verbs, "d")
        if verbs.now() // 1000 == second:
            return int(wait[1])


def opened(verbs: Verbs, policy: Policy = PLAIN) -> None:
    call(verbs, "failed", *(f"f{n}" for n in range(policy.failures)), policy=policy)
    assert phase(verbs) == "open"


def probing(verbs: Verbs, policy: Policy = PLAIN) -> None:
    """Open, and its time is over; nobody has asked yet."""
    opened(verbs, policy)
    pass_time(verbs, policy.open_ms)


def ramping(verbs: Verbs, policy: Policy = PLAIN) -> None:
    probing(verbs, policy)
    for n in range(policy.successes):
        call(verbs, "ok", f"p{n}", policy=policy)
    assert phase(verbs) == "ramping"


def test_a_closed_breaker_lets_everybody_through(verbs: Verbs) -> None:
    names = [f"c{n}" for n in range(40)]

    assert ask(verbs, *names) == [OK] * 40
    assert under_way(verbs) == set(names)
    assert report(verbs, "ok", *names) == ["OK"] * 40
    assert under_way(verbs) == set()


def test_failures_in_a_row_open_it_for_everybody(verbs: Verbs) -> None:
    assert call(verbs, "failed", "a", "b") == ["OK", "OK"]
    assert ask(verbs, "c") == [OK]
    report(verbs, "failed", "c")

    (answer,) = ask(verbs, "d")
    assert (answer[0], answer[2]) == ("WAIT", "open")
    assert 9_000 < answer[1] <= 10_000
    assert under_way(verbs) == set()


def test_a_success_between_them_begins_the_count_anew(verbs: Verbs) -> None:
    call(verbs, "failed", "a", "b")
    call(verbs, "ok", "c")
    call(verbs, "failed", "d", "e")

    assert ask(verbs, "f") == [OK]


def test_one_that_is_cut_says_nothing(verbs: Verbs) -> None:
    call(verbs, "failed", "a", "b")
    call(verbs, "cut", "c")
    call(verbs, "failed", "d")

    assert phase(verbs) == "open"


def test_without_a_breaker_no_failure_opens_it(verbs: Verbs) -> None:
    never = replace(PLAIN, failures=0)

    assert call(verbs, "failed", *"abcdefgh", policy=never) == ["OK"] * 8
    assert phase(verbs) == "closed"


def test_it_is_left_alone_until_its_time_is_over(verbs: Verbs) -> None:
    long = replace(PLAIN, open_ms=100_000)
    opened(verbs, long)
    pass_time(verbs, 50_000)
    assert why(ask(verbs, "a", policy=long)) == ["open"]

    pass_time(verbs, 50_000)
    assert ask(verbs, "a", policy=long) == [OK]


def test_b48_half_open_lets_so_many_probes_through_and_no_more(verbs: Verbs) -> None:
    probing(verbs)

    assert why(ask(verbs, *"abcde")) == ["OK", "OK", "probing", "probing", "probing"]
    assert under_way(verbs) == {"a", "b"}
    report(verbs, "cut", "a")
    assert why(ask(verbs, "c", "d")) == ["OK", "probing"]


def test_b48_a_call_from_before_counts_among_those_under_way(verbs: Verbs) -> None:
    ask(verbs, "slow")
    probing(verbs)

    assert why(ask(verbs, *"ab")) == ["OK", "probing"]


def test_asked_again_after_a_lost_answer_it_is_the_same_probe(verbs: Verbs) -> None:
    probing(verbs)
    ask(verbs, "a", "b")

    assert ask(verbs, "a", "b") == [OK, OK]
    assert under_way(verbs) == {"a", "b"}


def test_a_dead_workers_probe_comes_back_by_time(verbs: Verbs) -> None:
    probing(verbs)
    ask(verbs, "a", "b")
    assert why(ask(verbs, "c")) == ["probing"]
    pass_time(verbs, LASTS_MS)

    assert why(ask(verbs, *"cde")) == ["OK", "OK", "probing"]


def test_a_failed_probe_opens_it_again(verbs: Verbs) -> None:
    probing(verbs)
    ask(verbs, "a", "b")
    report(verbs, "failed", "a")

    assert why(ask(verbs, "c")) == ["open"]


def test_a_late_failure_from_before_it_was_opened_is_no_probes(verbs: Verbs) -> None:
    ask(verbs, "slow")
    probing(verbs)
    pass_time(verbs, 1)
    ask(verbs, "a")
    report(verbs, "failed", "slow")

    assert phase(verbs) == "probing"


def test_a_late_success_from_before_it_was_opened_closes_nothing(verbs: Verbs) -> None:
    one = replace(PLAIN, successes=1)
    ask(verbs, "slow")
    opened(verbs)
    pass_time(verbs, PLAIN.open_ms)
    ask(verbs, "probe")
    pass_time(verbs, 1)
    report(verbs, "ok", "slow", policy=one)
    assert phase(verbs) == "probing"
    report(verbs, "ok", "probe", policy=one)

    assert phase(verbs) == "ramping"


def test_a_report_that_comes_twice_counts_once(verbs: Verbs) -> None:
    ask(verbs, "a")
    for _ in range(5):
        report(verbs, "failed", "a")

    assert phase(verbs) == "closed"


def test_b48_so_many_probes_must_succeed(verbs: Verbs) -> None:
    probing(verbs)
    call(verbs, "ok", "a")
    assert phase(verbs) == "probing"
    call(verbs, "ok", "b")

    assert phase(verbs) == "ramping"


def test_b48_it_never_closes_at_once_but_by_a_ramp(verbs: Verbs) -> None:
    ramping(verbs)
    allowed = []
    for _ in range(5):
        names = [f"c{n}" for n in range(40)]
        allowed.append(why(ask(verbs, *names)).count("OK"))
        report(verbs, "cut", *names)
        pass_time(verbs, PLAIN.ramp_ms // 4)

    assert allowed == [2, 4, 8, 16, 40]
    assert phase(verbs) == "closed"


def test_without_a_ramp_it_closes_after_the_probes(verbs: Verbs) -> None:
    steep = replace(PLAIN, ramp_ms=0)
    ramping(verbs, steep)

    assert ask(verbs, *"abcdef", policy=steep) == [OK] * 6


def test_failures_in_a_row_open_it_on_the_ramp_too(verbs: Verbs) -> None:
    ramping(verbs)
    for name in "abc":
        call(verbs, "failed", name)

    assert phase(verbs) == "open"


def test_a_retry_after_closes_it_for_everybody_until_then(verbs: Verbs) -> None:
    ask(verbs, "a")
    report(verbs, "failed", "a", after_ms=50_000)

    (answer,) = ask(verbs, "b")
    assert answer[2] == "retry_after"
    assert 40_000 < answer[1] <= 50_000
    pass_time(verbs, 50_000)
    assert why(ask(verbs, *"bcd")) == ["OK", "OK", "probing"]


def test_the_longest_retry_after_counts(verbs: Verbs) -> None:
    ask(verbs, "a", "b", "c")
    for name, after_ms in (("a", 50_000), ("b", 90_000), ("c", 10_000)):
        report(verbs, "failed", name, after_ms=after_ms)

    assert ask(verbs, "d")[0][1] > 80_000


def test_a_retry_after_of_days_closes_it_for_an_hour(verbs: Verbs) -> None:
    ask(verbs, "a")
    report(verbs, "failed", "a", after_ms=86_400_000)

    assert ask(verbs, "b")[0][1] <= 3_600_000


def test_b46_retries_have_a_budget(verbs: Verbs) -> None:
    """A burst of ten, then one for every second first try."""
    names = [f"r{n}" for n in range(20)]
    assert why(ask(verbs, *names, again=True)) == ["OK"] * 10 + ["retry_budget"] * 10

    ask(verbs, *(f"f{n}" for n in range(6)))
    assert why(ask(verbs, *names, again=True)).count("OK") == 3


def test_b46_retries_without_first_tries_do_not_stand_still(verbs: Verbs) -> None:
    slow = replace(PLAIN, rate=0.02)
    assert why(ask(verbs, *(f"r{n}" for n in range(10)), again=True, policy=slow)) == ["OK"] * 10
    wait = ask(verbs, "r", again=True, policy=slow)[0]
    assert 40_000 < wait[1] <= 50_000, "fifty seconds a token"

    pass_time(verbs, 200_000)
    assert why(ask(verbs, *(f"s{n}" for n in range(20)), again=True, policy=slow)).count("OK") == 4


def test_b46_time_fills_the_budget_up_to_a_burst(verbs: Verbs) -> None:
    two = replace(PLAIN, rate=2)
    ask(verbs, *(f"r{n}" for n in range(10)), again=True, policy=two)
    pass_time(verbs, 3_600_000)

    assert why(ask(verbs, *(f"s{n}" for n in range(20)), again=True, policy=two)).count("OK") == 10


def test_b46_first_tries_of_long_ago_are_worth_no_retries(verbs: Verbs) -> None:
    ask(verbs, *(f"f{n}" for n in range(48)))
    pass_time(verbs, 600_000)

    assert why(ask(verbs, *(f"r{n}" for n in range(40)), again=True)).count("OK") == 10


def test_a_call_that_was_not_made_gives_its_token_back(verbs: Verbs) -> None:
    names = [f"r{n}" for n in range(10)]
    ask(verbs, *names, again=True)
    report(verbs, "unused", names[0], again=True)

    assert why(ask(verbs, "r", "s", again=True)) == ["OK", "retry_budget"]


def test_whoever_is_refused_takes_no_token(verbs: Verbs) -> None:
    probing(verbs)
    ask(verbs, "a", "b")
    ask(verbs, *(f"r{n}" for n in range(20)), again=True)
    report(verbs, "ok", "a", "b")
    pass_time(verbs, PLAIN.ramp_ms)

    assert why(ask(verbs, *(f"s{n}" for n in range(20)), again=True)).count("OK") == 10


def test_the_more_are_turned_away_the_later_they_come_again(verbs: Verbs) -> None:
    probing(verbs)
    ask(verbs, "a", "b")
    waits = [wait[1] for wait in ask(verbs, *(f"c{n}" for n in range(40)))]

    assert waits[0] == 110
    assert waits[-1] == 500
    assert waits == sorted(waits)


def test_what_the_last_second_turned_away_counts_in_the_next(verbs: Verbs) -> None:
    probing(verbs)
    ask(verbs, *(f"c{n}" for n in range(42)))
    turned = int(verbs.redis.hget(verbs.key("breaker:bank"), "turned"))
    assert turned == 40

    assert wait_after(verbs, turned, 1) == 500
    assert wait_after(verbs, turned, 5) == 110


def test_dependencies_know_nothing_of_each_other(verbs: Verbs) -> None:
    opened(verbs)

    assert ask(verbs, "a", name="post") == [OK]


def test_a_failed_item_never_fails_its_neighbours(verbs: Verbs) -> None:
    verbs.redis.set(verbs.key("breaker:broken"), "of another type")
    good = ("ask", "bank", "a", LASTS_MS, "", "", 0, PLAIN.text())
    bad = ("ask", "broken", "a", LASTS_MS, "", "", 0, PLAIN.text())
    first, broken, last = verbs.run("breaker", *good, *bad, *good)[1:]

    assert [first, broken[0], last] == [b"OK", b"ERROR", b"OK"]
