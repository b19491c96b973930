"""Schedules, as a client and an operator see them: kept, refused with reasons, fired, paused, run by hand, removed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from dualloop.client import Client, ClientProblem
from shared import keys
from shared.clock import parse_rfc3339
from tests.stories.operating import Document, Hand, operated, told
from tests.stories.terminal import Terminal
from tests.waiting import eventually

SCHEDULES = "/v1/schedules"
SOON = "* * * * *"
RARE = "0 0 1 1 *"
NOOP = {"type": "test.noop", "payload": {"n": 1}}


@pytest.fixture
async def hand(redis_url: str, tmp_path: Path) -> AsyncIterator[Hand]:
    async with operated(redis_url, tmp_path) as hand:
        yield hand


async def add(hand: Hand, name: str = "s", status: int = 201, **more: Any) -> Document:
    body = {"name": name, "cron": RARE, "command": NOOP} | more
    return await hand.post(SCHEDULES, body, status)


def due_now(hand: Hand, name: str = "s", *, ago_s: float = 0) -> int:
    """Days pass: the instant that it waits for was so long ago. The instant, epoch ms."""
    with redis.Redis.from_url(hand.stack.redis_url) as client:
        now: Any = client.time()
        instant: int = now[0] * 1000 + now[1] // 1000 - round(ago_s * 1000)
        client.hset(keys.schedule(name), mapping={"next": instant, "due": instant})
        client.zadd(keys.SCHEDULES.replace("schedules", "schedule_dues"), {name: instant})
    return instant


async def until(hand: Hand, fits: Callable[[Document], object], name: str = "s") -> Document:
    async def look() -> Document | None:
        document = await hand.get(f"{SCHEDULES}/{name}")
        return document if fits(document) else None

    found: Document | None = await eventually(look, 60)
    assert found is not None
    return found


async def fired(hand: Hand, n: int = 1, name: str = "s") -> Document:
    return await until(hand, lambda told: told["fired"] == n, name)


async def test_what_is_sent_is_kept_with_its_next_instants(hand: Hand) -> None:
    body = {"name": "night.ly", "cron": "30 2 * * *", "zone": "Europe/Berlin", "command": NOOP, "by": "eve"}
    answer = await hand.http.post(SCHEDULES, json=body)
    document = told(answer, 201)
    assert answer.headers["location"] == f"{SCHEDULES}/night.ly"
    assert document["command"] == NOOP | {"payload_version": 1}
    defaults = ("misfire", "late_s", "daylight_saving", "jitter_s", "paused", "fired", "last_fired", "trouble")
    assert [document[name] for name in defaults] == ["once", 60, "once", 0, False, 0, None, None]
    assert len(document["next"]) == 5
    for ahead in document["next"]:
        assert ahead["local"][11:16] in {"02:30", "03:30"}
        assert parse_rfc3339(ahead["instant"]) == parse_rfc3339(ahead["local"])
    assert await hand.get(f"{SCHEDULES}/night.ly") == document
    again = await hand.http.post(SCHEDULES, json=body)
    assert told(again, 200) == document, "the very same one is one"
    other = await hand.post(SCHEDULES, body | {"cron": "31 2 * * *"}, 409)
    assert (other["code"], other["errors"][0]["pointer"]) == ("schedule_exists", "/name")


async def test_a_list_goes_on_where_it_ended(hand: Hand) -> None:
    for name in ("c", "a", "b.x", "B"):
        await add(hand, name)
    first = await hand.get(SCHEDULES, limit=3)
    assert ([row["name"] for row in first["schedules"]], first["cursor"]) == (["B", "a", "b.x"], "b.x")
    assert [len(row["next"]) for row in first["schedules"]] == [1, 1, 1]
    rest = await hand.get(SCHEDULES, limit=3, cursor=first["cursor"])
    assert ([row["name"] for row in rest["schedules"]], rest["cursor"]) == (["c"], None)
    found = await hand.get(SCHEDULES, q="x", limit=1)
    assert [row["name"] for row in found["schedules"]] == ["b.x"]
    await hand.get(SCHEDULES, 422, limit=0)


WRONG: list[tuple[Document, str, str]] = [
    ({"cron": "61 * * * *"}, "/cron", "bad minute"),
    ({"cron": "0 0 30 2 *"}, "/cron", "bad day-of-month"),
    ({"cron": "@daily"}, "/cron", "five fields"),
    ({"zone": "Mars/Olympus"}, "/zone", "no IANA time zone"),
    ({"name": "a/b"}, "/name", "pattern"),
    ({"misfire": "never"}, "/misfire", "'skip', 'once' or 'all'"),
    ({"late_s": 0}, "/late_s", "greater than 0"),
    ({"jitter_s": -1}, "/jitter_s", "greater than or equal to 0"),
    ({"daylight_saving": "spring"}, "/daylight_saving", "'skip', 'once' or 'both'"),
    ({"crom": "* * * * *"}, "/crom", "not permitted"),
    ({"command": []}, "/command", "dictionary"),
    ({"command": {}}, "/command/type", "required"),
    ({"command": {"type": "no.such"}}, "/command/type", "no worker knows"),
    ({"command": {"type": "test.slow", "payload": {"seconds": "x"}}}, "/command/payload/seconds", '"number"'),
    ({"command": NOOP | {"payload_version": 9}}, "/command/payload_version", "is known in payload version 1"),
    ({"command": NOOP | {"webhook": "http://x"}}, "/command/webhook", "not served"),
    ({"command": NOOP | {"on_disconnect": "cancel"}}, "/command/on_disconnect", "socket"),
    ({"command": NOOP | {"idempotency_key": "k"}}, "/command/idempotency_key", "follows from the name"),
    ({"command": NOOP | {"deadline_s": -1}}, "/command/deadline_s", "greater than 0"),
]


async def test_what_is_wrong_is_said_at_the_door(hand: Hand) -> None:
    for change, pointer, words in WRONG:
        problem = await add(hand, status=422, **change)
        assert problem["errors"][0]["pointer"] == pointer
        assert words in problem["errors"][0]["detail"]
    assert (await hand.get(SCHEDULES))["schedules"] == []


async def test_of_what_there_is_not_nothing_is_done(hand: Hand) -> None:
    for method, path in (
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        *(("POST", f"/{v}") for v in ("pause", "resume", "run")),
    ):
        problem = told(await hand.http.request(method, f"{SCHEDULES}/none{path}"), 404)
        assert problem["code"] == "no_schedule"
        assert "no schedule 'none'" in problem["detail"]


async def test_its_instant_has_come_and_the_mission_says_who_sent_it(hand: Hand) -> None:
    await add(
        hand,
        command={
            "type": "test.slow",
            "payload": {"seconds": 0.01, "entity": "light.a"},
            "priority": "urgent",
            "area": "hall",
        },
    )
    instant = due_now(hand)
    document = await fired(hand)
    last = document["last_fired"]
    assert parse_rfc3339(last["instant"]) == instant
    assert instant <= parse_rfc3339(last["at"]) < instant + 60_000
    assert (await hand.ended(last["task_id"]))["status"] == "SUCCEEDED"
    mission = await hand.mission(last["task_id"])
    envelope = mission["envelope"]
    assert envelope["schedule"] == {"name": "s", "instant": last["instant"]}
    assert (envelope["source"], envelope["target"], envelope["priority"], envelope["area"]) == (
        *("schedule", "light.a", "urgent", "hall"),
    )
    assert envelope["deadline"] > envelope["created_at"]
    assert envelope["traceparent"]
    assert (await hand.get(f"{SCHEDULES}/s"))["last_fired"]["status"] == "SUCCEEDED"
    assert parse_rfc3339(document["next"][0]["instant"]) > instant


async def test_a_new_one_is_fired_within_its_minute_as_the_clock_says(hand: Hand) -> None:
    """Nothing is moved here: the leader is told of it, and waits for its instant."""
    document = await add(hand, cron=SOON)
    first = parse_rfc3339(document["next"][0]["instant"])
    told = await until_long(hand, first)
    assert parse_rfc3339(told["last_fired"]["instant"]) == first
    assert 0 <= parse_rfc3339(told["last_fired"]["at"]) - first < 30_000
    assert first % 60_000 == 0


async def until_long(hand: Hand, instant: int) -> Document:
    async def look() -> Document | None:
        document = await hand.get(f"{SCHEDULES}/s")
        return document if document["fired"] else None

    found: Document | None = await eventually(look, 120, f"it is fired at {instant}")
    assert found is not None
    return found


async def test_a_paused_one_is_not_fired_and_goes_on_from_now(hand: Hand) -> None:
    await add(hand, paused=True)
    paused = await hand.get(f"{SCHEDULES}/s")
    assert (paused["paused"], paused["next"]) == (True, [])
    due_now(hand, ago_s=1)
    await add(hand, "other")
    due_now(hand, "other")
    await fired(hand, name="other")
    resumed = await hand.post(f"{SCHEDULES}/s/resume", {"by": "eve"}, 200)
    assert (resumed["paused"], resumed["fired"]) == (False, 0)
    assert parse_rfc3339(resumed["next"][0]["instant"]) > parse_rfc3339(resumed["created_at"])
    assert (await hand.post(f"{SCHEDULES}/s/resume", status=200))["rev"] == resumed["rev"]
    again = await hand.post(f"{SCHEDULES}/s/pause", status=200)
    assert (again["paused"], again["rev"]) == (True, resumed["rev"] + 1)
    assert (await hand.post(f"{SCHEDULES}/s/pause", status=200))["rev"] == again["rev"]


async def test_a_change_of_the_time_goes_on_from_now_and_of_the_command_leaves_it(hand: Hand) -> None:
    before = await add(hand)
    changed = told(await hand.http.patch(f"{SCHEDULES}/s", json={"command": NOOP | {"payload": {"n": 2}}}), 200)
    assert (changed["next"], changed["command"]["payload"]) == (before["next"], {"n": 2})
    changed = told(await hand.http.patch(f"{SCHEDULES}/s", json={"cron": "0 12 * * *", "zone": "Asia/Tokyo"}), 200)
    assert changed["next"][0]["local"].endswith("T12:00:00+09:00")
    assert changed["rev"] == before["rev"] + 2
    wrong = told(await hand.http.patch(f"{SCHEDULES}/s", json={"cron": "x"}), 422)
    assert wrong["errors"][0]["pointer"] == "/cron"
    wrong = told(await hand.http.patch(f"{SCHEDULES}/s", json={"late_s": -1}), 422)
    assert wrong["errors"][0]["pointer"] == "/late_s"
    wrong = told(await hand.http.patch(f"{SCHEDULES}/s", json={"command": {"type": "no.such"}}), 422)
    assert (wrong["code"], wrong["errors"][0]["pointer"]) == ("unknown_type", "/command/type")


async def test_changes_at_the_same_time_are_all_made(hand: Hand) -> None:
    await add(hand)
    changes: list[dict[str, object]] = [{"late_s": 5}, {"misfire": "all"}]
    answers = await asyncio.gather(*(hand.http.patch(f"{SCHEDULES}/s", json=change) for change in changes))
    assert {answer.status_code for answer in answers} == {200}
    document = await hand.get(f"{SCHEDULES}/s")
    assert (document["late_s"], document["misfire"]) == (5, "all")


async def test_run_now_is_a_mission_of_its_own(hand: Hand) -> None:
    before = await add(hand, paused=True)
    answer = await hand.http.post(f"{SCHEDULES}/s/run", json={"by": "eve"})
    ack = told(answer, 202)
    assert answer.headers["location"] == f"/v1/results/{ack['correlation_id']}"
    other = await hand.post(f"{SCHEDULES}/s/run")
    assert other["correlation_id"] != ack["correlation_id"], "a fresh id each time"
    assert (await hand.ended(ack["task_id"]))["result"] == {"n": 1}
    envelope = (await hand.mission(ack["task_id"]))["envelope"]
    assert (envelope["source"], envelope["schedule"]) == ("schedule", {"name": "s", "instant": None})
    document = await hand.get(f"{SCHEDULES}/s")
    assert (document["last_run"]["task_id"], document["last_run"]["by"]) == (other["task_id"], "operator")
    assert (document["fired"], document["paused"], document["rev"]) == (0, True, before["rev"])


async def test_run_now_under_a_key_is_one_run(hand: Hand) -> None:
    await add(hand)
    first, second = [await hand.http.post(f"{SCHEDULES}/s/run", headers={"idempotency-key": "k1"}) for _ in range(2)]
    assert first.json() == second.json()
    assert second.headers["idempotent-replayed"] == "true"


async def test_nobody_else_can_claim_to_be_a_schedule(hand: Hand) -> None:
    task_id = await hand.submit("test.noop", schedule={"name": "s", "instant": "now"})
    await hand.ended(task_id)
    assert (await hand.mission(task_id))["envelope"].get("schedule") is None


async def test_a_removed_one_is_gone_and_its_missions_stay(hand: Hand) -> None:
    await add(hand)
    due_now(hand)
    task_id = (await fired(hand))["last_fired"]["task_id"]
    assert await hand.delete(f"{SCHEDULES}/s", by="eve") == {"name": "s", "removed": True}
    await hand.get(f"{SCHEDULES}/s", 404)
    assert (await hand.ended(task_id))["status"] == "SUCCEEDED"
    await add(hand)


async def test_there_are_so_many_at_most(redis_url: str, tmp_path: Path) -> None:
    async with operated(redis_url, tmp_path, DUALLOOP_SCHEDULES="1") as hand:
        await add(hand, "a")
        problem = await add(hand, "b", 409)
        assert (problem["code"], "DUALLOOP_SCHEDULES" in problem["detail"]) == ("too_many_schedules", True)


async def test_b40_a_broken_schedule_says_why_and_stops_no_other(hand: Hand) -> None:
    names = ("no-plan", "no-hash", "no-type", "no-zone", "no-number")
    for name in (*names, "good"):
        await add(hand, name)
    with redis.Redis.from_url(hand.stack.redis_url) as client:
        client.hset(keys.schedule("no-plan"), "plan", "{")
        for name, part, other in (("no-type", "test.noop", "test.gone"), ("no-zone", '"UTC"', '"Mars"')):
            plan: Any = client.hget(keys.schedule(name), "plan")
            assert part in plan.decode()
            client.hset(keys.schedule(name), "plan", plan.decode().replace(part, other))
        for name in (*names, "good"):
            due_now(hand, name)
        client.hset(keys.schedule("no-number"), "next", "soon")
        client.delete(keys.schedule("no-hash"))
        client.set(keys.schedule("no-hash"), "x")
    await fired(hand, name="good")
    due_now(hand, "good")
    await fired(hand, 2, "good")
    trouble = (await until(hand, lambda told: told["trouble"], "no-type"))["trouble"]["detail"]
    assert trouble == "no live worker knows test.gone in payload version 1: start one that does"
    rows = (await hand.get(SCHEDULES))["schedules"]
    assert {row["name"] for row in rows} >= {"good", "no-type"}
    assert (await hand.get(f"{SCHEDULES}/no-plan", 409))["code"] == "schedule_changed"
    for name in names:
        await hand.delete(f"{SCHEDULES}/{name}")


async def test_b42_what_nobody_was_there_for_is_made_up_for_as_it_says(hand: Hand) -> None:
    """Three days of an hourly schedule in which no process was up."""
    await hand.stack.workers[0].stop()
    for misfire in ("skip", "once", "all"):
        await add(hand, misfire, cron="0 * * * *", misfire=misfire, late_s=1)
        due_now(hand, misfire, ago_s=3 * 86_400)
    await hand.stack.workers[0].start()
    everything = await until(hand, lambda told: told["fired"] >= 72, "all")
    assert everything["fired"] in {72, 73}
    once = await fired(hand, name="once")
    assert parse_rfc3339(once["last_fired"]["instant"]) % 3_600_000 == 0
    assert parse_rfc3339(once["last_fired"]["at"]) - parse_rfc3339(once["last_fired"]["instant"]) < 3_660_000
    skipped = await until(hand, lambda told: told["next"][0]["instant"] > told["changed_at"], "skip")
    assert skipped["fired"] == 0


async def test_the_client_keeps_schedules(hand: Hand) -> None:
    async with Client(hand.stack.url) as client:
        document = await client.schedules.add("s", RARE, NOOP, zone="Europe/Berlin", misfire=None, by="eve")
        assert document["zone"] == "Europe/Berlin"
        assert (await client.schedules.page())["schedules"][0]["name"] == "s"
        assert (await client.schedules.change("s", late_s=5))["late_s"] == 5
        assert (await client.schedules.pause("s", by="eve"))["paused"]
        assert not (await client.schedules.resume("s"))["paused"]
        ack = await client.schedules.run("s", note="once more")
        assert (await client.wait(ack["correlation_id"], 60))["status"] == "SUCCEEDED"
        assert (await client.schedules.look("s"))["last_run"]["status"] == "SUCCEEDED"
        assert (await client.schedules.remove("s"))["removed"]
        with pytest.raises(ClientProblem, match="no schedule 's'"):
            await client.schedules.look("s")


async def test_a_terminal_keeps_schedules(hand: Hand, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, DUALLOOP_URL=hand.stack.url)
    added = ("schedules", "add", "night", "--cron", "30 2 * * *", "--zone", "Asia/Tokyo", "--type", "test.noop")
    said = await terminal.run(*added, "--payload", '{"n": 1}', "--by", "eve")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("night  is fired at ")
    assert said.out.endswith("T02:30:00+09:00\n")
    refused = await terminal.run("schedules", "add", "x", "--cron", "30 2 30 2 *", "--type", "test.noop")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == "/cron: '30 2 30 2 *' is no cron expression: bad day-of-month.\n"
    listed = (await terminal.run("schedules", "ls")).out
    assert "night" in listed
    assert "Asia/Tokyo" in listed
    assert (await terminal.run("schedules", "pause", "night")).out == "night  paused\n"
    assert (await terminal.run("schedules", "resume", "night", "none")).code == 1
    ran = await terminal.run("schedules", "run", "night", "--json")
    task_id = ran.json["night"]["task_id"]
    assert (await hand.ended(task_id))["status"] == "SUCCEEDED"
    assert "by schedule night" in (await terminal.run("missions", "show", task_id)).out
    shown = (await terminal.run("schedules", "show", "night")).out
    assert task_id in shown
    assert "misfire" in shown.casefold()
    assert (await terminal.run("schedules", "rm", "night")).out == "night  removed\n"
    gone = await terminal.run("schedules", "show", "night")
    assert (gone.code, gone.err) == (1, "There is no schedule 'night'; they are listed by: dualloop schedules ls.\n")


async def test_while_no_type_is_known_no_schedule_is_taken(redis_url: str, tmp_path: Path) -> None:
    async with operated(redis_url, tmp_path, workers=0) as hand:
        assert (await add(hand, status=503))["code"] == "no_catalogue"
