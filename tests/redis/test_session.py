"""session: what the commands of one speaker have in common, and whether two microphones have heard the same."""

from typing import Any

from tests.redis.audit import leftovers, read
from tests.redis.scripts_client import HOUR_MS, Verbs
from tests.waiting import until

WITHIN = 1_000


def say(verbs: Verbs, verb: str, *args: str | int, name: str = "a:s", keep_ms: int = HOUR_MS) -> Any:
    told = verbs.run("session", verb, name, keep_ms, *args)
    plain = [one.decode() if isinstance(one, bytes) else one for one in (told if isinstance(told, list) else [told])]
    return plain if isinstance(told, list) else plain[0]


def meet(verbs: Verbs, area: str = "", language: str = "", by: str = "new") -> list[Any]:
    told: list[Any] = say(verbs, "meet", area, language, by)
    return told


def hear(verbs: Verbs, task_id: str, session: str, at: int) -> str:
    told: str = say(verbs, "hear", task_id, session, at, WITHIN, name="a:lights on")
    return told


def test_what_a_speaker_said_of_himself_stays_until_he_says_otherwise(verbs: Verbs) -> None:
    assert meet(verbs) == ["", "", "", "", "", "", 0, ""]
    assert meet(verbs, "kitchen", "en")[:2] == ["kitchen", "en"]
    assert meet(verbs)[:2] == ["kitchen", "en"]
    assert meet(verbs, "hall")[:2] == ["hall", "en"]
    assert leftovers(read(verbs.redis)) == []


def test_the_last_commands_are_known_each_once(verbs: Verbs) -> None:
    for task_id in ("m1", "m2", "m1"):
        assert say(verbs, "did", task_id) == "OK"
    assert meet(verbs)[2] == "m2 m1"
    for n in range(20):
        say(verbs, "did", f"n{n}")
    assert meet(verbs)[2].split() == [f"n{n}" for n in range(19, 11, -1)]


def test_what_a_command_is_about_is_known_to_the_next_one_and_not_to_itself(verbs: Verbs) -> None:
    say(verbs, "did", "m", '"lamp"')
    assert meet(verbs, by="n")[7] == '"lamp"'
    say(verbs, "did", "n")
    assert (meet(verbs, by="n")[7], meet(verbs, by="o")[7]) == ('"lamp"', '"lamp"'), "it may be no command"
    for _ in range(2):
        say(verbs, "did", "n", '"blind"')
        assert meet(verbs, by="n")[7] == '"lamp"', "who died before he could write it down is told the same"
    assert meet(verbs, by="o")[7] == '"blind"'
    say(verbs, "did", "n", '"the blind, as it was answered"')
    assert (meet(verbs, by="n")[7], meet(verbs, by="o")[7]) == ('"lamp"', '"the blind, as it was answered"')


def test_what_an_older_command_is_about_is_not_the_last_any_more(verbs: Verbs) -> None:
    for task_id in ("m", "n"):
        say(verbs, "did", task_id, f'"{task_id}"')
    say(verbs, "did", "m", '"late"')
    assert meet(verbs, by="o")[7] == '"n"'


def test_what_was_no_command_is_none_of_the_last_ones(verbs: Verbs) -> None:
    assert say(verbs, "undid", "m1") == "OK"
    assert not verbs.redis.exists(verbs.key("session:a:s"))
    for task_id in ("m1", "m2", "m3"):
        say(verbs, "did", task_id)
    for _ in range(2):
        assert say(verbs, "undid", "m2") == "OK"
        assert meet(verbs)[2] == "m3 m1"


def test_a_question_is_open_until_somebody_takes_it_and_he_alone_has_it(verbs: Verbs) -> None:
    assert say(verbs, "ask", "m:1", HOUR_MS, '{"which": "area"}') == ["OK", ""]
    assert meet(verbs)[3:7] == ["m:1", '{"which": "area"}', "", 1]
    assert say(verbs, "take", "m:2", "b") == "NONE"
    assert say(verbs, "take", "m:1", "b") == "OK"
    assert meet(verbs)[3:7] == ["m:1", '{"which": "area"}', "b", 0]
    assert say(verbs, "take", "m:1", "c") == "NONE"
    assert say(verbs, "take", "m:1", "b") == "OK", "who died before he could write it down takes it again"


def test_who_asks_again_opens_nothing_that_was_taken(verbs: Verbs) -> None:
    say(verbs, "ask", "m:1", HOUR_MS, "{}")
    assert say(verbs, "ask", "m:1", HOUR_MS, "{}") == ["OK", ""]
    say(verbs, "take", "m:1", "b")
    assert say(verbs, "ask", "m:1", HOUR_MS, "{}") == ["TAKEN", ""]
    assert meet(verbs)[5:7] == ["b", 0]


def test_the_newest_question_takes_the_place_of_the_one_before(verbs: Verbs) -> None:
    say(verbs, "ask", "m:1", HOUR_MS, "{}")
    assert say(verbs, "ask", "n:1", HOUR_MS, "{}") == ["OK", "m:1"]
    assert say(verbs, "ask", "n:1", HOUR_MS, "{}") == ["OK", "m:1"], "and says so again"
    assert say(verbs, "take", "m:1", "b") == "NONE"
    assert say(verbs, "take", "n:1", "b") == "OK"
    assert say(verbs, "ask", "o:1", HOUR_MS, "{}") == ["OK", ""], "one that was taken is nobody's any more"
    assert say(verbs, "take", "o:1", "c") == "OK"


def test_a_question_is_open_for_its_time_only(verbs: Verbs) -> None:
    say(verbs, "ask", "m:1", 1, "{}")
    until(lambda: meet(verbs)[6] == 0, what="it is over")
    assert say(verbs, "take", "m:1", "b") == "NONE"


def test_a_session_is_forgotten_some_time_after_the_last_word(verbs: Verbs) -> None:
    for verb in (("meet", "hall", ""), ("did", "m"), ("ask", "m:1", HOUR_MS, "{}"), ("take", "m:1", "b")):
        say(verbs, *verb)
        assert 0 < verbs.redis.pttl(verbs.key("session:a:s")) <= HOUR_MS
    assert meet(verbs)[0] == "hall"
    say(verbs, "did", "m", keep_ms=1)
    say(verbs, "did", "n", keep_ms=1)
    until(lambda: not verbs.redis.exists(verbs.key("session:a:s")), what="it is forgotten")


def test_the_same_from_another_session_within_a_second_is_one_command(verbs: Verbs) -> None:
    assert hear(verbs, "m", "kitchen", 10_000) == "m"
    assert hear(verbs, "n", "hall", 11_000) == "m"
    assert hear(verbs, "late", "study", 11_001) == "late"
    assert hear(verbs, "early", "attic", 10_999) == "late"
    assert 0 < verbs.redis.pttl(verbs.key("heard:a:lights on")) <= HOUR_MS


def test_the_same_from_the_same_session_is_said_twice(verbs: Verbs) -> None:
    assert hear(verbs, "m", "kitchen", 10_000) == "m"
    assert hear(verbs, "n", "kitchen", 10_500) == "n"


def test_who_asks_twice_what_was_heard_is_told_the_same(verbs: Verbs) -> None:
    hear(verbs, "m", "kitchen", 10_000)
    assert hear(verbs, "n", "hall", 10_500) == "m"
    assert hear(verbs, "later", "hall", 60_000) == "later"
    assert (hear(verbs, "m", "kitchen", 10_000), hear(verbs, "n", "hall", 10_500)) == ("m", "m")


def test_what_was_heard_is_forgotten_however_often_it_is_said(verbs: Verbs) -> None:
    for n in range(20):
        hear(verbs, f"m{n}", "kitchen", n)
    assert verbs.redis.hlen(verbs.key("heard:a:lights on")) == 3, "the first to hear it, and no list of all who did"
    told = list(verbs.redis.scan_iter(verbs.key("heard_by:*")))
    assert (len(told), all(0 < verbs.redis.pttl(key) <= HOUR_MS for key in told)) == (20, True)
    assert leftovers(read(verbs.redis)) == []


def test_one_that_comes_late_is_nobodys_first(verbs: Verbs) -> None:
    hear(verbs, "m", "kitchen", 60_000)
    assert hear(verbs, "old", "hall", 10_000) == "old"
    assert hear(verbs, "n", "study", 60_100) == "m"
