"""`assistant.command` with a recording, on the bench: what was heard is done like what was typed, or asked back."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from backend_loop.missions.assistant_command import AssistantCommand
from backend_loop.missions.device_control import DeviceControl
from backend_loop.missions.device_query import DeviceQuery
from backend_loop.missions.scene_run import SceneRun
from backend_loop.missions.speech_transcribe import TYPE, SpeechTranscribe
from backend_loop.testing import Bench, failed, succeeded
from backend_loop.testing.door import RefusedError
from backend_loop.testing.ends import End, Ends
from shared.status import ErrorCode, Status
from tests.pure.test_assistant import DEVICES, INVENTORY, LAMP, acts, answered, result, spoken

AUDIO: Final = {"audio": {"bytes": 3, "kind": "WAV", "rate": None}}
ENGLISH: Final = {**AUDIO, "locale": "en"}
ON: Final = "turn on the kitchen light"


def heard(text: str, confidence: float | None = 0.9, **more: Any) -> End:
    told = {"text": text, "heard": text, "confidence": confidence, "engine": "sphinx", "took_ms": 80}
    return succeeded({**told, **more})


def unheard(problem: str) -> End:
    error = {"code": ErrorCode.PERMANENT, "message": f"as the test says: {problem}"}
    return End(Status.FAILED, {"problem": problem}, error)


def bench(*ends: Ends) -> Bench:
    types = (DeviceControl, DeviceQuery, SceneRun)
    return Bench(AssistantCommand, *types, home=DEVICES, inventory=INVENTORY, children={TYPE: ends})


def test_what_was_heard_is_done_like_what_was_typed() -> None:
    mission = bench(heard(ON)).run(ENGLISH)
    assert (mission.status, acts(mission)) == ("SUCCEEDED", [(LAMP, "turn_on", None)]), mission.told()
    told = result(mission)
    assert (told["heard"], told["speech"]["engine"], told["meaning"]["confidence"]) == (ON, "sphinx", 0.9)
    assert mission.freshness is not None
    assert mission.freshness["verified"] is True


def test_what_was_put_right_says_so() -> None:
    mission = bench(heard(ON, heard="turn on the kitten light", repaired=True)).run(ENGLISH)
    assert acts(mission) == [(LAMP, "turn_on", None)]
    told = result(mission)
    assert (told["heard"], told["speech"]["text"]) == ("turn on the kitten light", ON)
    assert told["meaning"]["repaired"] is True


@pytest.mark.parametrize(("confidence", "asks"), [(0.3, True), (0.49, True), (0.5, False), (0.9, False), (None, False)])
def test_what_may_have_been_something_else_is_asked_before_it_is_done(confidence: float | None, asks: bool) -> None:
    mission = bench(heard(ON, confidence)).run(ENGLISH)
    assert (mission.state == "ASKING", acts(mission) == []) == (asks, asks)
    if asks:
        assert "kitchen light" in spoken(mission)[-1]
        mission.event("ANSWERED", {"text": "yes"})
        assert acts(mission.run()) == [(LAMP, "turn_on", None)]


def test_a_look_harms_nobody_however_unsure() -> None:
    mission = bench(heard("is the kitchen light on", 0.2)).run(ENGLISH)
    assert (mission.status, acts(mission)) == ("SUCCEEDED", [])


@pytest.mark.parametrize("confidence", [0.4, 1.0, None])
def test_what_is_dangerous_is_asked_however_sure(confidence: float | None) -> None:
    mission = bench(heard("unlock the front door", confidence)).run(ENGLISH)
    assert (mission.state, acts(mission)) == ("ASKING", [])


def test_no_answer_leaves_the_door_as_it_is() -> None:
    mission = bench(heard("unlock the front door")).run(ENGLISH)
    answered("no")(mission)
    assert (mission.run().status, acts(mission)) == ("CANCELLED", [])
    assert mission.calls == []


def test_nothing_was_said() -> None:
    silence = heard("", None, engine=None)
    mission = bench(silence).run(ENGLISH)
    assert (mission.status, result(mission)["problem"]) == ("SUCCEEDED", "nothing_heard")
    assert result(mission)["text"] == "I did not hear anything."
    assert result(bench(silence).run({**AUDIO, "locale": "zh-CN"}))["text"].startswith("我没有听到")


def test_something_was_said_of_which_the_engine_made_nothing() -> None:
    mission = bench(heard("", 0.0)).run(ENGLISH)
    assert (mission.status, result(mission)["problem"]) == ("SUCCEEDED", "not_understood")
    assert result(mission)["text"] == "Sorry, I did not understand that."


@pytest.mark.parametrize(
    ("end", "code", "problem", "text"),
    [
        (unheard("unreadable"), "permanent", "unreadable", "I cannot listen to that recording."),
        (unheard("no_recording"), "permanent", "no_recording", "I cannot listen to that recording."),
        (unheard("language_not_spoken"), "permanent", "language_not_spoken", "I cannot hear that language here."),
        (failed(code=ErrorCode.RETRIES_EXHAUSTED), "child_failed", "cannot_hear_now", "I cannot hear just now."),
    ],
)
def test_what_could_not_be_heard_ends_with_a_sentence(end: End, code: str, problem: str, text: str) -> None:
    mission = bench(end).run(ENGLISH)
    assert (mission.status, (mission.error or {})["code"], acts(mission)) == ("FAILED", code, []), mission.told()
    told = result(mission)
    assert (told["problem"], told["text"].startswith(text), told["heard"]) == (problem, True, None)


@pytest.mark.parametrize(
    ("end", "command"),
    [
        (heard(ON), True),
        (heard("turn on the light"), True),
        (heard("", None, engine=None), False),
        (heard("pink elephants"), False),
        (heard("yes"), False),
        (heard("cancel that"), False),
        (unheard("unreadable"), False),
    ],
)
def test_a_recording_is_what_cancel_that_means_until_it_is_heard_to_be_none(end: End, command: bool) -> None:
    last = list[str]()

    def listens(_payload: Mapping[str, Any]) -> End:
        last.append(commands())
        return end

    mission = bench(listens).accept(ENGLISH, session="s")

    def commands() -> str:
        (session,) = mission._world.sessions.sessions.values()
        return str(session["commands"])

    mission.run()
    assert last == [mission.task_id]
    assert commands() == (mission.task_id if command else "")


@pytest.mark.parametrize(("said", "language"), [({"locale": "zh-CN"}, "zh"), ({"locale": "en-GB"}, "en"), ({}, "en")])
def test_who_listens_is_told_the_language_of_the_speaker(said: dict[str, str], language: str) -> None:
    asked = list[Any]()

    def listens(payload: Mapping[str, Any]) -> End:
        asked.append((payload["language"], payload["rate"]))
        return heard(ON)

    bench(listens).run({"audio": {"bytes": 3, "kind": "PCM", "rate": 8_000}, **said})
    assert asked == [(language, 8_000)]


@pytest.mark.parametrize("payload", [{}, {"text": ""}, {**AUDIO, "text": ON}, {"audio": {"bytes": 3, "kind": "MP3"}}])
def test_a_command_is_text_or_a_recording(payload: dict[str, Any]) -> None:
    with pytest.raises(RefusedError):
        bench().run(payload)


def test_a_recording_that_is_not_there_is_no_riddle() -> None:
    types = (DeviceControl, SpeechTranscribe)
    mission = Bench(AssistantCommand, *types, home=DEVICES, inventory=INVENTORY).run(ENGLISH)
    assert (mission.status, result(mission)["problem"]) == ("FAILED", "no_recording")
    assert "say it again" in (mission.error or {})["message"]


def test_a_kill_anywhere_does_it_once() -> None:
    for mission in bench(heard(ON)).killed_everywhere(ENGLISH):
        assert mission.status == "SUCCEEDED", mission.told()
        assert len({call.body["key"] for call in mission.calls if call.path.endswith("/act")}) == 1
