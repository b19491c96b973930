"""What is said in words, over every transport, to real processes and a home: done, asked back, cancelled, answered."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from backend_loop.sessions import SAME_MS
from dualloop.client import Client
from shared.clock import parse_rfc3339
from tests.home import Home
from tests.stories.furnished import furnished
from tests.stories.pseudoterminal import shown
from tests.stories.speaker import Speaker, outcomes, text
from tests.stories.stack import Stack
from tests.stories.talk import talking
from tests.stories.terminal import Terminal

pytestmark = pytest.mark.usefixtures("unheard")

AC, LOCK = "climate.living_room", "lock.front_door"
KITCHEN, HALL, STUDY, BEDROOM = "light.kitchen", "light.hall", "light.study", "light.bedroom"
COOL = "打开客厅空调，调到26度"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(
    module_redis_url: str, shared_home: Home, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    folder = tmp_path_factory.mktemp("assistant")
    async with furnished(module_redis_url, folder, shared_home) as stack:
        yield stack


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=40) as client:
        yield client


@pytest.fixture
def speaker(client: httpx.AsyncClient, request: pytest.FixtureRequest) -> Speaker:
    return Speaker(client, request.node.name)


# Said and done


async def test_a_sentence_is_done_in_order_and_answered_by_what_was_seen(home: Home, client: httpx.AsyncClient) -> None:
    home.hand(AC, power="off", temperature=20)
    answer = await client.post("/v1/commands", json={"text": COOL, "locale": "zh-CN"}, headers={"prefer": "wait=30"})
    done = answer.json()
    assert (answer.status_code, done["status"], done["type"]) == (200, "SUCCEEDED", "assistant.command"), done
    assert (done["freshness"]["verified"], outcomes(done)) == (True, ["confirmed", "confirmed"])
    assert ("客厅空调" in text(done), "26" in text(done)) == (True, True)
    assert [act["action"] for act in home.acts(AC)][-2:] == ["turn_on", "set_temperature"]
    shown = home.look(AC)["value"]
    assert (shown["power"], shown["temperature"]) == ("on", 26)


async def test_the_same_over_a_socket_says_at_once_what_it_is_about_to_do(home: Home, stack: Stack) -> None:
    async with talking(stack.ws) as talk:
        await talk.say("submit", ref="s", command={"text": "turn on the kitchen light", "session": "socket"})
        ack = await talk.until(lambda frame: frame["op"] == "ack")
        done = await talk.result(ack["correlation_id"])
        events = talk.check(ack["correlation_id"])
    spoken = [event for event in events if "spoken" in (event["data"] or {})]
    assert [(event["state"], "kitchen light" in event["data"]["spoken"]) for event in spoken] == [("EXECUTING", True)]
    assert (done["status"], done["freshness"]["verified"], done["result"]["text"].isascii()) == (
        "SUCCEEDED",
        True,
        True,
    )
    assert home.look(KITCHEN)["value"]["power"] == "on"


async def test_several_at_once_each_with_an_answer_of_its_own(home: Home, client: httpx.AsyncClient) -> None:
    batch = [{"text": "打开厨房的灯"}, {"text": ""}, {"text": "turn on the hall light"}]
    told = (await client.post("/v1/commands:batch", json=batch)).json()
    assert told[1]["errors"][0]["pointer"] == "/text"
    ends = [await Speaker(client, "").end(told[n]["correlation_id"]) for n in (0, 2)]
    assert [end["status"] for end in ends] == ["SUCCEEDED", "SUCCEEDED"]
    assert (text(ends[0]).isascii(), text(ends[1]).isascii()) == (False, True)
    assert {home.look(lamp)["value"]["power"] for lamp in (KITCHEN, HALL)} == {"on"}


async def test_what_is_sent_twice_under_one_key_is_said_once(home: Home, client: httpx.AsyncClient) -> None:
    said, key = {"text": "turn on the kitchen light"}, {"idempotency-key": "said-once"}
    first, again = [await client.post("/v1/commands", json=said, headers=key) for _ in range(2)]
    assert (again.headers["idempotent-replayed"], again.json()) == ("true", first.json())
    other = await client.post("/v1/commands", json={"text": "turn off the kitchen light"}, headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    assert (await Speaker(client, "").end(first.json()["correlation_id"]))["status"] == "SUCCEEDED"
    assert len([act for act in home.acts(KITCHEN) if act["key"].startswith(first.json()["task_id"])]) <= 1


async def test_a_schedule_may_say_it_in_words(home: Home, client: httpx.AsyncClient) -> None:
    plan = {"name": "evening", "cron": "0 18 * * *", "zone": "UTC", "command": {"text": "turn on the hall light"}}
    answer = await client.post("/v1/schedules", json=plan)
    assert (answer.status_code, answer.json()["command"]["type"]) == (201, "assistant.command"), answer.text
    bad = {**plan, "name": "bad", "command": {"text": " "}}
    assert (await client.post("/v1/schedules", json=bad)).json()["errors"][0]["pointer"] == "/command/text"
    ack = (await client.post("/v1/schedules/evening/run")).json()
    assert (await Speaker(client, "").end(ack["correlation_id"]))["status"] == "SUCCEEDED"
    assert home.look(HALL)["value"]["power"] == "on"
    assert (await client.delete("/v1/schedules/evening")).status_code == 200


async def test_a_lamp_that_is_offline_is_said_to_be_out_of_reach(home: Home, speaker: Speaker) -> None:
    home.faults(KITCHEN, offline=True)
    english, chinese = await asyncio.gather(
        speaker.hear("switch the kitchen light on"), Speaker(speaker.client, "zh").hear("请打开厨房灯")
    )
    for done in (english, chinese):
        assert (done["status"], done["error"]["code"], outcomes(done)) == (
            "FAILED",
            "device_unreachable",
            ["device_unreachable"],
        )
    assert "kitchen light" in text(english)
    assert "厨房" in text(chinese)
    home.faults(KITCHEN)
    done = await speaker.hear("switch the kitchen light on")
    assert (done["status"], text(done) != text(english)) == ("SUCCEEDED", True)


# Cancel


async def test_cancel_that_cancels_the_last_command_of_the_session(home: Home, speaker: Speaker) -> None:
    home.hold(STUDY, "act", every=True)
    under_way = await speaker.say("turn on the study light")
    await asyncio.to_thread(home.when_held, STUDY)
    other = await Speaker(speaker.client, "somebody else").hear("cancel that")
    assert "cancelled" not in other["result"], "it is nothing of theirs"
    done = await speaker.hear("取消")
    assert (done["status"], done["result"]["cancelled"]) == ("SUCCEEDED", under_way)
    ended = await speaker.end(under_way)
    assert (ended["status"], ended["reason"]) == ("CANCELLED", "requested")


async def test_what_has_ended_cannot_be_cancelled_and_nothing_older_is(home: Home, speaker: Speaker) -> None:
    home.hold(BEDROOM, "act", every=True)
    older = await speaker.say("turn on the bedroom light")
    await asyncio.to_thread(home.when_held, BEDROOM)
    assert (await speaker.hear("switch on the hall light"))["status"] == "SUCCEEDED"
    assert "cancelled" not in (await speaker.hear("never mind"))["result"]
    home.release(BEDROOM)
    assert (await speaker.end(older))["status"] == "SUCCEEDED"


async def test_a_cancel_that_follows_at_once_never_comes_too_early(home: Home, speaker: Speaker) -> None:
    for room, lamp in (("hall", HALL), ("study", STUDY), ("bedroom", BEDROOM)):
        home.hold(lamp, "act", every=True)
        command, cancel = await speaker.say(f"turn the {room} light on"), await speaker.say("cancel that")
        assert (await speaker.end(cancel))["result"].get("cancelled") == command
        assert (await speaker.end(command))["status"] == "CANCELLED"
        home.release(lamp)


# Questions


async def test_the_next_utterance_of_the_session_answers_the_question(home: Home, speaker: Speaker) -> None:
    asking = await speaker.say("打开灯")
    assert not (await speaker.asks(asking)).isascii()
    stranger = await Speaker(speaker.client, "stranger").hear("厨房", locale="zh")
    assert stranger["result"]["problem"] == "not_understood"
    answer = await speaker.hear("厨房")
    assert (answer["status"], answer["result"]["answers"]) == ("SUCCEEDED", asking)
    done = await speaker.end(asking)
    assert (done["status"], done["freshness"]["verified"], "厨房" in text(done)) == ("SUCCEEDED", True, True)
    assert home.look(KITCHEN)["value"]["power"] == "on"
    assert home.look(HALL)["value"]["power"] == "off"


async def test_who_prefers_to_wait_for_the_end_is_told_at_once_that_he_is_asked(speaker: Speaker) -> None:
    command = {"text": "turn on the light", "session": speaker.session}
    answer = await speaker.client.post("/v1/commands", json=command, headers={"prefer": "wait=30"})
    asked = answer.json()
    assert (answer.status_code, asked["status"], asked["waiting_for"]) == (202, "WAITING", "event"), asked
    assert asked["progress"]["message"].startswith("In which room")
    assert asked["links"]["result"] == answer.headers["location"], "it is the ack all the same"
    assert (await speaker.hear("no"))["result"]["answers"] == asked["correlation_id"]
    ended = await speaker.end(asked["correlation_id"])
    assert (ended["status"], ended["reason"]) == ("CANCELLED", "requested")


async def test_no_sense_leaves_the_question_open_and_asks_again(home: Home, speaker: Speaker) -> None:
    asking = await speaker.say("switch on the light")
    question = await speaker.asks(asking)
    again = await speaker.hear("colourless green ideas")
    assert (again["result"]["problem"], again["result"]["asked_by"]) == ("not_understood", asking)
    assert question in text(again)
    assert (await speaker.hear("the bedroom"))["result"]["answers"] == asking
    assert (await speaker.end(asking))["status"] == "SUCCEEDED"
    assert home.look(BEDROOM)["value"]["power"] == "on"


async def test_another_command_takes_the_question_back(home: Home, speaker: Speaker) -> None:
    asking = await speaker.say("turn off the light")
    await speaker.asks(asking)
    done = await speaker.hear("switch on the study light")
    assert (done["status"], home.look(STUDY)["value"]["power"]) == ("SUCCEEDED", "on")
    ended = await speaker.end(asking)
    assert (ended["status"], ended["reason"]) == ("CANCELLED", "superseded")
    assert (await speaker.hear("the study"))["result"]["problem"] == "not_understood", "nothing is open any more"


async def test_of_two_questions_the_newer_one_is_open(home: Home, speaker: Speaker) -> None:
    first = await speaker.say("把灯打开")
    await speaker.asks(first)
    second = await speaker.say("关灯")
    await speaker.asks(second)
    assert (await speaker.end(first))["reason"] == "superseded"
    home.hand(STUDY, power="on")
    assert (await speaker.hear("书房"))["result"]["answers"] == second
    assert (await speaker.end(second))["status"] == "SUCCEEDED"
    assert home.look(STUDY)["value"]["power"] == "off"


async def test_the_question_of_a_command_that_was_cancelled_is_none(home: Home, speaker: Speaker) -> None:
    asking = await speaker.say("close the blind")
    await speaker.asks(asking)
    assert (await speaker.client.post(f"/v1/commands/{asking}/cancel")).status_code == 202
    assert (await speaker.end(asking))["status"] == "CANCELLED"
    assert (await speaker.hear("in the kitchen"))["result"]["problem"] == "not_understood"
    assert home.acts("cover.kitchen") == []


async def test_cancel_that_takes_the_question_along(home: Home, speaker: Speaker) -> None:
    asking = await speaker.say("open the blind")
    await speaker.asks(asking)
    assert (await speaker.hear("forget it"))["result"]["cancelled"] == asking
    assert (await speaker.end(asking))["status"] == "CANCELLED"
    assert home.acts("cover.bedroom") == []


async def test_a_client_may_answer_where_there_is_no_session(home: Home, client: httpx.AsyncClient) -> None:
    nobody = Speaker(client, "")
    asking = str((await client.post("/v1/commands", json={"text": "turn on the light"})).json()["correlation_id"])
    await nobody.asks(asking)
    told = {"event": "ANSWERED", "data": {"text": "the kitchen"}}
    assert (await client.post(f"/v1/commands/{asking}/events", json=told)).status_code == 202
    assert (await nobody.end(asking))["status"] == "SUCCEEDED"
    assert home.look(KITCHEN)["value"]["power"] == "on"


async def test_the_door_is_unlocked_after_a_yes_of_the_same_session_only(home: Home, speaker: Speaker) -> None:
    home.hand(LOCK, lock="locked")
    asking = await speaker.say("unlock the front door")
    await speaker.asks(asking)
    stranger = await Speaker(speaker.client, "stranger").hear("yes")
    assert "answers" not in stranger["result"]
    assert home.look(LOCK)["value"]["lock"] == "locked"
    assert (await speaker.hear("yes please"))["result"]["answers"] == asking
    assert (await speaker.end(asking))["status"] == "SUCCEEDED"
    assert home.look(LOCK)["value"]["lock"] == "unlocked"


async def test_the_door_stays_locked_after_a_no(home: Home, speaker: Speaker) -> None:
    home.hand(LOCK, lock="locked")
    asking = await speaker.say("打开大门的锁")
    await speaker.asks(asking)
    assert (await speaker.hear("不要"))["result"]["answers"] == asking
    ended = await speaker.end(asking)
    assert (ended["status"], ended["reason"]) == ("CANCELLED", "requested")
    assert home.look(LOCK)["value"]["lock"] == "locked"


# Where, and who heard it


@pytest.mark.usefixtures("home")
async def test_a_lamp_without_a_room_is_that_of_the_session(speaker: Speaker) -> None:
    await speaker.hear("what is the temperature", area="kitchen")
    assert (await speaker.hear("turn the light on"))["result"]["devices"][0]["entity"] == KITCHEN
    assert (await speaker.hear("turn the light on", area="hall"))["result"]["devices"][0]["entity"] == HALL


async def test_it_is_what_the_last_command_of_the_session_was_about(home: Home, speaker: Speaker) -> None:
    await speaker.hear("turn on the study light")
    off = await speaker.hear("turn it off again")
    assert (outcomes(off), "study light" in text(off), home.look(STUDY)["value"]["power"]) == (
        ["confirmed"],
        True,
        "off",
    )
    too = await speaker.hear("and the hall too")
    assert (too["result"]["devices"][0]["entity"], home.look(HALL)["value"]["power"]) == (HALL, "off")
    home.hand(LOCK, lock="locked")
    await speaker.hear("lock the front door")
    asking = await speaker.say("unlock it")
    await speaker.asks(asking)
    assert (await speaker.hear("no"))["result"]["answers"] == asking
    assert home.look(LOCK)["value"]["lock"] == "locked"


@pytest.mark.usefixtures("home")
async def test_the_language_of_a_session_is_that_of_its_speaker(speaker: Speaker) -> None:
    assert text(await speaker.hear("...", locale="en-GB")).isascii()
    assert text(await speaker.hear("。。。")).isascii()
    assert not text(await speaker.hear("!!!", locale="zh-CN")).isascii()
    assert not text(await speaker.hear("???")).isascii()


async def test_who_else_hears_an_answer_has_nothing_to_say(home: Home, speaker: Speaker) -> None:
    for _ in range(5):  # again where the machine was so slow that a second has passed between them
        asking = await speaker.say("would you turn on the light")
        await speaker.asks(asking)
        answer = await speaker.hear("in the hall")
        other = await Speaker(speaker.client, "the microphone next door").hear("In the hall.")
        if parse_rfc3339(other["created_at"]) - parse_rfc3339(answer["created_at"]) <= SAME_MS:
            break
    assert (other["result"]["same_as"], text(other)) == (answer["task_id"], "")
    assert (await speaker.end(asking))["status"] == "SUCCEEDED"
    assert home.look(HALL)["value"]["power"] == "on"


async def test_two_satellites_that_hear_one_utterance_give_one_command(home: Home, client: httpx.AsyncClient) -> None:
    satellites = [Speaker(client, f"satellite {n}") for n in range(2)]
    heard = ("Turn on the living room light!", "turn on the living room light")
    one, other = await asyncio.gather(*(by.hear(said) for by, said in zip(satellites, heard, strict=True)))
    same, first, satellite = (one, other, satellites[0]) if "same_as" in one["result"] else (other, one, satellites[1])
    assert (same["status"], same["result"]["same_as"], text(same)) == ("SUCCEEDED", first["task_id"], "")
    assert (first["status"], outcomes(first)) == ("SUCCEEDED", ["confirmed"])
    assert len(home.acts("light.living_room")) == 1
    assert text(await satellite.hear("cancel that")) == "That is done already.", "it means this command"


# The client and the command line


async def test_the_client_says_it_too(home: Home, stack: Stack) -> None:
    async with Client(stack.url) as client:
        ack = await client.say("turn the light off please", area="hall", locale="en", session=None)
        done = await client.wait(ack.correlation_id, timeout=60)
    assert (ack.type, done["status"], outcomes(done)) == ("assistant.command", "SUCCEEDED", ["already_done"])
    assert home.look(HALL)["value"]["power"] == "off"
    assert done["freshness"]["verified"] is False, "it was looked at, and nothing was done"


async def test_the_command_line_prints_what_is_said(home: Home, stack: Stack, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, DUALLOOP_URL=stack.url)
    said = await terminal.run("send", "打开书房灯", "--wait")
    lines = said.out.splitlines()
    assert (said.code, said.err) == (0, "")
    assert ("书房" in lines[0], "书房" in lines[1], lines[2].startswith("SUCCEEDED after")) == (True, True, True)
    home.faults(KITCHEN, offline=True)
    said = await terminal.run("send", "turn off the kitchen light", "--wait")
    assert (said.code, "kitchen light" in said.out) == (1, True)


@pytest.mark.parametrize("said", [("please switch on the light",), ("switch the light on", "--session", "at the desk")])
async def test_who_waits_at_a_terminal_is_asked_there(
    home: Home, stack: Stack, tmp_path: Path, said: tuple[str, ...]
) -> None:
    terminal = Terminal(tmp_path, DUALLOOP_URL=stack.url)
    screen = await shown(terminal, 100, "send", "--wait", *said, typed=(b"> ", b"the bedroom please\n"))
    assert screen.code == 0, screen.left
    asked, typed, acting, *_ = screen.left
    assert (asked.startswith("In which room: "), typed, "bedroom light" in acting) == (
        True,
        "> the bedroom please",
        True,
    )
    assert home.look(BEDROOM)["value"]["power"] == "on"


async def test_who_answers_on_the_command_line_sees_what_came_of_it(home: Home, stack: Stack, speaker: Speaker) -> None:
    terminal = Terminal(stack.folder, DUALLOOP_URL=stack.url)
    asking = await speaker.say("please turn on the light")
    await speaker.asks(asking)
    said = await terminal.run("send", "bedroom", "--session", speaker.session, "--wait")
    assert (said.code, "bedroom light" in said.out.lower(), asking in said.out) == (0, True, True), said.out
    assert home.look(BEDROOM)["value"]["power"] == "on"
