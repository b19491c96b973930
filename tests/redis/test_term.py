"""`term`: one leader in an office, by Redis' own clock, and a token that only rises."""

from typing import Any

from tests.redis.scripts_client import HOUR_MS, Verbs


def _campaign(verbs: Verbs, holder: str, ms: int = HOUR_MS, office: str = "audit") -> tuple[str, int, int]:
    word, term, left = verbs.run("term", office, "campaign", holder, ms)
    return word.decode(), term, left


def _resign(verbs: Verbs, holder: str) -> str:
    return str(verbs.run("term", "audit", "resign", holder, 0).decode())


def _lapse(verbs: Verbs) -> None:
    assert verbs.redis.hset(verbs.key("term:audit"), "until", verbs.now()) == 0


def _state(verbs: Verbs) -> dict[str, Any]:
    return {name.decode(): value.decode() for name, value in verbs.redis.hgetall(verbs.key("term:audit")).items()}


def test_the_first_to_campaign_leads_until_its_time_is_over(verbs: Verbs) -> None:
    before = verbs.now()
    word, term, left = _campaign(verbs, "a", 5000)
    assert (word, left) == ("LEADS", 5000)
    assert before <= term <= verbs.now()
    assert _state(verbs)["holder"] == "a"
    assert before + 5000 <= int(_state(verbs)["until"]) <= verbs.now() + 5000


def test_nobody_else_leads_meanwhile_and_hears_how_long(verbs: Verbs) -> None:
    _, term, _ = _campaign(verbs, "a", HOUR_MS)
    word, held, left = _campaign(verbs, "b")
    assert (word, held) == ("HELD", term)
    assert HOUR_MS - 60_000 < left <= HOUR_MS
    assert _state(verbs)["holder"] == "a"


def test_a_renewal_keeps_the_term_and_lengthens_it(verbs: Verbs) -> None:
    _, term, _ = _campaign(verbs, "a", 5000)
    assert _campaign(verbs, "a", HOUR_MS) == ("LEADS", term, HOUR_MS)
    assert int(_state(verbs)["until"]) > verbs.now() + HOUR_MS - 60_000


def test_a_lapsed_term_is_followed_by_the_next_one(verbs: Verbs) -> None:
    _, first, _ = _campaign(verbs, "a")
    _lapse(verbs)
    word, second, _ = _campaign(verbs, "b")
    assert word == "LEADS"
    assert second > first
    assert _campaign(verbs, "a")[:2] == ("HELD", second)


def test_a_gap_ends_a_term_though_nobody_else_came(verbs: Verbs) -> None:
    _, first, _ = _campaign(verbs, "a")
    _lapse(verbs)
    word, second, _ = _campaign(verbs, "a")
    assert word == "LEADS"
    assert second > first


def test_a_token_rises_though_the_clock_went_back(verbs: Verbs) -> None:
    ahead = verbs.now() + HOUR_MS
    verbs.redis.hset(verbs.key("term:audit"), mapping={"holder": "a", "term": ahead, "until": 0})
    assert _campaign(verbs, "b")[1] == ahead + 1


def test_a_token_rises_though_the_record_was_lost(verbs: Verbs) -> None:
    first = [_campaign(verbs, "a")[1]]
    while verbs.now() == first[0]:
        pass  # a token is a time of Redis: the next millisecond has to come
    verbs.redis.delete(verbs.key("term:audit"))
    assert _campaign(verbs, "b")[1] > first[0]


def test_a_resignation_frees_the_office_at_once_and_says_so(verbs: Verbs) -> None:
    _, first, _ = _campaign(verbs, "a")
    with verbs.hearing("vacant:audit") as hear:
        assert _resign(verbs, "a") == "OK"
        assert hear() == [str(first).encode()]
    word, second, _ = _campaign(verbs, "b")
    assert word == "LEADS"
    assert second > first


def test_nobody_resigns_for_another(verbs: Verbs) -> None:
    _, term, _ = _campaign(verbs, "a")
    assert _resign(verbs, "b") == "HELD"
    assert _campaign(verbs, "c")[:2] == ("HELD", term)


def test_offices_are_led_apart(verbs: Verbs) -> None:
    _campaign(verbs, "a")
    assert _campaign(verbs, "b", office="schedules")[0] == "LEADS"
