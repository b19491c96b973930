"""What the session's last command was about, to the command after it: for a while, and where it still is there."""

import asyncio
from typing import Any

import pytest

from backend_loop.missions.assistant_talk import IT_S, MOST_SPOKEN_OF, about, spoken_of
from backend_loop.testing import Trial
from backend_loop.testing.sessions import KitSessions
from tests.pure.meant import demonstration, interpreter
from tests.pure.test_assistant import LAMP, LOCK, acts, answered, bench, result

LIT = interpreter().interpret("turn on the kitchen light", "en")
LOCKED = interpreter().interpret("lock the front door", "en")


async def after(last: Any, text: str, *, session: str = "s") -> Trial:
    mission = bench().accept({"text": text}, session=session)
    kept = about(last, mission._world.time.now_ms() - 1000)
    await KitSessions(mission._world).did("default", "s", "before", kept)
    await asyncio.to_thread(mission.run)
    return mission


async def test_it_is_the_device_of_the_command_before_in_this_session() -> None:
    mission = await after(LIT, "turn it off again")
    assert (mission.status, mission.waiting_for) == ("SUCCEEDED", None), mission.told()
    assert result(mission)["devices"][0]["entity"] == LAMP
    assert "kitchen light" in result(mission)["text"], "he hears whose light it was"


async def test_in_another_session_nothing_was_said() -> None:
    mission = await after(LIT, "turn it off again", session="somebody else's")
    assert result(mission)["problem"] == "not_understood"


async def test_what_is_dangerous_is_confirmed_by_whatever_word_it_is_called() -> None:
    mission = await after(LOCKED, "unlock it")
    assert (mission.state, acts(mission)) == ("ASKING", [])
    answered("yes")(mission)
    await asyncio.to_thread(mission.run)
    assert acts(mission) == [(LOCK, "unlock", None)]


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("turn on the kitchen light", [LAMP]),
        ("turn on the light", []),
        ("turn it off", []),
        ("are the lights on", []),
    ],
)
async def test_what_another_microphone_has_heard_is_it_where_it_can_mean_nothing_else(text: str, means: Any) -> None:
    mission = bench().accept({"text": text}, session="s", area="hall")
    sessions, now_ms = KitSessions(mission._world), mission._world.time.now_ms()
    await sessions.did("default", "s", "before", about(LOCKED, now_ms - 1000))
    await sessions.hear("default", f"{text} ", "another microphone", "theirs", now_ms)
    await asyncio.to_thread(mission.run)
    assert (result(mission)["same_as"], acts(mission)) == ("theirs", [])
    session = await sessions.meet("default", "s", "the next", area=None, language=None)
    assert [wish["entity"] for wish in session.last["wishes"]] == means


async def test_who_dies_and_reads_it_again_means_the_same() -> None:
    mission = await after(LIT, "the hall too")
    (kept,) = mission._world.sessions.sessions.values()
    assert result(mission)["devices"][0]["entity"] == "light.hall"
    session = await KitSessions(mission._world).meet("default", "s", mission.task_id, area=None, language=None)
    assert [wish["entity"] for wish in session.last["wishes"]] == [LAMP], kept
    session = await KitSessions(mission._world).meet("default", "s", "the next", area=None, language=None)
    assert [wish["entity"] for wish in session.last["wishes"]] == ["light.hall"], kept


def test_what_was_asked_back_is_about_what_was_answered() -> None:
    mission = bench().run({"text": "turn on the light"}, session="s")

    def last() -> list[Any]:
        sessions = KitSessions(mission._world)
        session = asyncio.run(sessions.meet("default", "s", "the next", area=None, language=None))
        return [wish["entity"] for wish in session.last["wishes"]]

    assert last() == []
    mission.event("ANSWERED", {"text": "the kitchen"}).run()
    assert last() == [LAMP]


def test_it_is_forgotten_once_others_may_have_come() -> None:
    kept = about(LIT, 1_000_000)
    assert spoken_of(kept, 1_000_000 + round(IT_S * 1000), demonstration()) == LIT.wishes
    assert spoken_of(kept, 1_000_001 + round(IT_S * 1000), demonstration()) == []
    assert spoken_of(kept, 999_999 - round(IT_S * 1000), demonstration()) == [], "the clock was put back since"


@pytest.mark.parametrize("text", ["good night", "turn on the light", "pink elephants"])
def test_of_a_scene_and_of_a_question_there_is_no_it(text: str) -> None:
    assert about(interpreter().interpret(text, "en"), 0)["wishes"] == []


def test_of_a_crowd_there_is_no_it() -> None:
    crowd = LIT.model_copy(update={"wishes": LIT.wishes * (MOST_SPOKEN_OF + 1)})
    assert about(crowd, 0)["wishes"] == []


@pytest.mark.parametrize(
    "kept",
    [
        None,
        7,
        [],
        {},
        {"at": "now", "wishes": []},
        {"at": 0, "wishes": 7},
        {"at": 0, "wishes": [{"mission": "device.dance"}]},
        {"at": 0, "wishes": [{**LIT.wishes[0].model_dump(), "entity": "light.of_last_year"}]},
    ],
)
def test_what_another_version_or_another_home_has_left_is_nothing(kept: Any) -> None:
    assert spoken_of(kept, 0, demonstration()) == []
