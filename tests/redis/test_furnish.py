"""furnish: one inventory for all, replaced as a whole, and only by who knows what it replaces."""

from typing import Any

from tests.redis.scripts_client import Verbs

NONE = "r0"
"""Stands for no inventory at all."""


def furnish(verbs: Verbs, revision: str, known: str = "", document: str = "{}") -> list[str]:
    answer: list[bytes] = verbs.run("furnish", known, NONE, revision, document)
    return [part.decode() for part in answer]


def home(verbs: Verbs) -> dict[str, str]:
    found: dict[bytes, bytes] = verbs.redis.hgetall(verbs.key("home"))
    return {field.decode(): value.decode() for field, value in found.items()}


def test_the_first_one_is_taken_and_told(verbs: Verbs) -> None:
    before = verbs.now()
    with verbs.hearing("furnished") as hear:
        word, at = furnish(verbs, "r1", document='{"v":1}')
        assert hear() == [b"r1"]
    assert word == "OK"
    assert before <= int(at) <= verbs.now()
    assert home(verbs) == {"revision": "r1", "document": '{"v":1}', "changed_at": at}


def test_the_same_one_again_is_no_change(verbs: Verbs) -> None:
    _, at = furnish(verbs, "r1")
    with verbs.hearing("furnished") as hear:
        assert furnish(verbs, "r1", document="other words for it") == ["SAME", at]
        assert hear(0.05) == []
    assert home(verbs)["document"] == "{}"


def test_it_replaces_only_what_its_writer_knows(verbs: Verbs) -> None:
    furnish(verbs, "r1")
    assert furnish(verbs, "r2", ",r0,r1,")[0] == "OK"
    before = home(verbs)
    with verbs.hearing("furnished") as hear:
        assert furnish(verbs, "r3", ",r1,") == ["CHANGED", "r2"]
        assert hear(0.05) == []
    assert home(verbs) == before


def test_a_revision_is_known_by_its_whole_name(verbs: Verbs) -> None:
    furnish(verbs, "r1")
    assert furnish(verbs, "r2", ",r11,xr1,")[0] == "CHANGED"


def test_a_writer_that_knows_of_none_furnishes_an_empty_home_only(verbs: Verbs) -> None:
    assert furnish(verbs, "r1", f",{NONE},")[0] == "OK"
    assert furnish(verbs, "r2", f",{NONE},") == ["CHANGED", "r1"]


def test_what_was_wrong_with_a_file_is_past_once_an_inventory_is_taken(verbs: Verbs) -> None:
    def in_trouble() -> Any:
        return "trouble" in home(verbs)

    furnish(verbs, "r1")
    for revision, known, past in (("r2", ",r9,", False), ("r1", "", True), ("r2", "", True)):
        verbs.redis.hset(verbs.key("home"), "trouble", "{}")
        furnish(verbs, revision, known)
        assert in_trouble() is not past, (revision, known)
