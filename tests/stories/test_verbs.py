"""Pause, resume, outside events and cancel by HTTP, whatever the mission does just then."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.stories.operating import Hand, events, operated
from tests.waiting import eventually


@pytest.fixture
async def hand(redis_url: str, tmp_path: Path) -> AsyncIterator[Hand]:
    async with operated(redis_url, tmp_path) as hand:
        yield hand


async def test_a_pause_waits_for_the_commit_of_a_handler_that_runs(hand: Hand) -> None:
    for seconds in (1, 10, 60):  # longer, where the handler had ended before it was told
        slow = await hand.submit("test.slow", {"seconds": seconds, "entity": "light.hall"})
        await hand.until(slow, lambda m: m["rev"] > 0 or m["place"] == "leased", "it runs")
        said = (await hand.http.post(f"/v1/commands/{slow}/pause", json={"by": "eve", "note": "lunch"})).json()
        if said["status"] == "RUNNING":
            break
        await hand.http.post(f"/v1/commands/{slow}/cancel")
    assert said == {"correlation_id": slow, "task_id": slow, "status": "RUNNING", "stopped": False}
    paused = await hand.in_state(slow, "CHECKING", "paused")
    assert (paused["status"], paused["hold"]["holder"]) == ("PAUSED", None)
    assert paused["paused_at"] > paused["started_at"]
    assert [event["by"] for event in events(paused, "paused")] == ["eve"]
    again = await hand.post(f"/v1/commands/{slow}/pause")
    assert (again["status"], again["stopped"]) == ("PAUSED", True)
    await hand.post(f"/v1/commands/{slow}/resume", {"by": "eve"})
    assert (await hand.ended(slow))["status"] == "SUCCEEDED"
    mission = await hand.mission(slow)
    assert [event["event"] for event in events(mission, "paused", "resumed")] == ["paused", "resumed"]
    assert mission["paused_at"] is None


async def test_what_waits_is_paused_at_once_and_keeps_its_time(hand: Hand) -> None:
    patient = await hand.submit("test.patient", {"sleep_s": 0.01, "wait_s": 300})
    waiting = await hand.in_state(patient, "LISTENING", "waiting")
    assert (await hand.post(f"/v1/commands/{patient}/resume"))["status"] == "WAITING"  # nothing to resume
    assert (await hand.post(f"/v1/commands/{patient}/pause", {"note": "for a look"}))["status"] == "PAUSED"
    paused = await hand.mission(patient)
    assert (paused["place"], paused["wake_at"]) == ("paused", waiting["wake_at"])
    assert events(paused, "paused") == [{"event": "paused", "by": "operator", "note": "for a look"}]
    assert (await hand.post(f"/v1/commands/{patient}/resume"))["status"] == "WAITING"
    resumed = await hand.mission(patient)
    assert (resumed["place"], resumed["wake_at"]) == ("waiting", waiting["wake_at"])
    await hand.post(f"/v1/commands/{patient}/events", {"event": "KNOCK", "data": {"loud": True}})
    assert (await hand.ended(patient))["result"] == {"received": {"loud": True}}
    for verb in ("pause", "resume"):
        refused = await hand.post(f"/v1/commands/{patient}/{verb}", status=409)
        assert (refused["code"], refused["correlation_id"]) == ("ended", patient)
    log = [json.loads(line) for line in hand.stack.foregrounds[0].log.read_text().splitlines()]
    assert [line["note"] for line in log if line.get("event") == "pause"] == ["for a look"]


async def test_an_event_may_be_early_late_or_doubled(hand: Hand) -> None:
    patient = await hand.submit("test.patient", {"sleep_s": 600, "wait_s": 300})
    await hand.in_state(patient, "SLEEPING", "waiting")
    path, loud = f"/v1/commands/{patient}/events", {"event": "KNOCK", "data": {"n": 2**70, "text": "\0 é 👋"}}
    first = await hand.post(path, loud | {"id": "knock-1"})
    assert (first["duplicate"], first["stopped"]) == (False, first["status"] != "RUNNING")
    assert (await hand.post(path, {"event": "KNOCK", "id": "knock-1"}))["duplicate"] is True
    by_header = await hand.post(path, {"event": "KNOCK"}, headers={"idempotency-key": "knock-1"})
    assert by_header["duplicate"] is True
    assert (await hand.post(path, {"event": "KNOCK", "id": "cancel"}))["duplicate"] is False  # no id of ours
    undeclared = await hand.post(path, {"event": "BELL"}, status=409)
    assert undeclared["code"] == "no_such_event"
    assert "KNOCK" in undeclared["detail"]
    assert (await hand.post(f"/v1/commands/{patient}/cancel", {"by": "eve"}))["correlation_id"] == patient
    cancelled = await hand.ended(patient)
    assert (cancelled["status"], cancelled["reason"]) == ("CANCELLED", "requested")
    late = await hand.post(path, loud, status=409)
    assert late["code"] == "ended"


async def test_an_early_event_is_there_when_it_is_waited_for(hand: Hand) -> None:
    for sleep_s in (1.5, 10, 60):  # longer, where it was late
        patient = await hand.submit("test.patient", {"sleep_s": sleep_s, "wait_s": 300})
        await hand.until(patient, lambda m: m["place"] == "waiting", "it sleeps")
        await hand.post(f"/v1/commands/{patient}/events", {"event": "KNOCK", "data": {"n": 2**70, "text": "\0 é 👋"}})
        if (await hand.mission(patient))["state"] == "SLEEPING":
            break
    result = await hand.ended(patient)
    assert result["result"] == {"received": {"n": 2**70, "text": "\0 é 👋"}}


async def test_an_inbox_that_nobody_reads_is_full_one_day(hand: Hand) -> None:
    await hand.stack.workers[0].stop()
    patient = await hand.submit("test.patient")
    for _ in range(64):
        await hand.post(f"/v1/commands/{patient}/events", {"event": "KNOCK"})
    answer = await hand.http.post(f"/v1/commands/{patient}/events", json={"event": "KNOCK"})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert answer.json()["code"] == "inbox_full"
    assert answer.json()["retryable"] is True
    assert (await hand.post(f"/v1/commands/{patient}/cancel"))["status"] == "CANCELLED"


async def test_b27_a_cancel_says_when_the_handler_has_really_stopped(hand: Hand) -> None:
    slow = await hand.submit("test.slow", {"seconds": 600})
    await hand.in_state(slow, "ACTING", "leased")
    hand.stack.workers[0].freeze()
    said = {"by": "eve", "note": "too long"}
    answer = await hand.http.post(f"/v1/commands/{slow}/cancel", json=said, headers={"prefer": "wait=0.3"})
    assert (answer.status_code, answer.headers["preference-applied"]) == (202, "wait=0.3")
    assert (answer.json()["status"], answer.json()["stopped"]) == ("RUNNING", False)
    hand.stack.workers[0].thaw()
    stopped = await hand.post(f"/v1/commands/{slow}/cancel", status=200, params={"wait": 30})
    assert (stopped["status"], stopped["task_id"]) == ("CANCELLED", slow)
    mission = await hand.mission(slow)
    assert mission["place"] == "ended"
    assert mission["history"][-1]["data"] == {"reason": "requested", "by": "eve", "note": "too long"}
    again = await hand.post(f"/v1/commands/{slow}/cancel")
    assert (again["status"], again["stopped"]) == ("CANCELLED", True)
    assert (await hand.post(f"/v1/commands/{slow}/cancel?wait=1", status=200))["status"] == "CANCELLED"


async def test_a_cancel_of_what_never_began_is_an_end_at_once(hand: Hand) -> None:
    await hand.stack.workers[0].stop()
    noop = await hand.submit("test.noop")
    said = await hand.post(f"/v1/commands/{noop}/cancel", {"by": "eve"})
    assert (said["status"], said["stopped"]) == ("CANCELLED", True)
    assert (await hand.mission(noop))["history"][-1]["data"] == {"reason": "requested", "by": "eve"}


async def test_a_pause_holds_where_nobody_works(hand: Hand) -> None:
    await hand.stack.workers[0].stop()
    noop = await hand.submit("test.noop", priority="bulk")
    assert (await hand.post(f"/v1/commands/{noop}/pause"))["status"] == "PAUSED"
    await hand.stack.workers[0].restart()
    other = await hand.submit("test.noop")
    await hand.ended(other)
    assert (await hand.mission(noop))["place"] == "paused"
    await hand.post(f"/v1/commands/{noop}/resume")
    assert (await hand.ended(noop))["status"] == "SUCCEEDED"


async def test_what_is_gone_is_gone_for_every_verb(redis_url: str, tmp_path: Path) -> None:
    async with operated(redis_url, tmp_path, DUALLOOP_RETENTION_S="0.5") as hand:
        noop = await hand.submit("test.noop")

        async def gone() -> bool:
            return (await hand.http.get(f"/v1/missions/{noop}")).status_code == 410

        await eventually(gone, 60, "it is retired")
        bodies = {"priority": {"priority": "bulk"}, "events": {"event": "KNOCK"}}
        for path in (
            *(f"/v1/commands/{{}}/{verb}" for verb in ("cancel", "pause", "resume", "events")),
            *(f"/v1/missions/{{}}/{verb}" for verb in ("priority", "skip", "complete")),
            "/v1/dead-letters/{}/replay",
        ):
            body = bodies.get(path.rpartition("/")[2], {})
            assert (await hand.post(path.format(noop), body, 410))["code"] == "expired"
            assert (await hand.post(path.format("0" * 40), body, 404))["code"] == "bad_id"
        await hand.delete(f"/v1/dead-letters/{noop}", 410)
        await hand.get(f"/v1/dead-letters/{noop}", 410)
