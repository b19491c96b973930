"""The socket: submit, watch, cancel, and what it answers to frames that make no sense."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
import websockets

from tests.stories.stack import Stack, running
from tests.stories.talk import SUBPROTOCOL, page, talking

FIVE = ["ONE", "TWO", "THREE", "FOUR", "FIVE", "SUCCEEDED"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    folder = tmp_path_factory.mktemp("ws")
    async with running(module_redis_url, folder, DUALLOOP_ALLOWED_ORIGINS="https://panel.example") as stack:
        yield stack


async def document(stack: Stack, correlation_id: str) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        answer = await http.get(f"{stack.url}/v1/results/{correlation_id}", params={"wait": 30})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


# What it is for


async def test_the_ack_then_every_transition_then_the_result(stack: Stack) -> None:
    async with talking(stack.ws) as talk:
        correlation_id = await talk.submit("test.five")
        result = await talk.result(correlation_id)
        ack = talk.frames[0]
        assert (ack["op"], ack["ref"], ack["status"], ack["type"]) == ("ack", "s1", "PENDING", "test.five")
        assert set(ack["links"]) >= {"result", "ws"}
        events = talk.check(correlation_id)
        assert [event["state"] for event in events] == FIVE
        assert set(events[0]) == {"op", "correlation_id", "seq", "at", "status", "state", "data"}
        assert {"op": "result", **await document(stack, correlation_id)} == result


async def test_hundreds_at_once_on_one_socket(stack: Stack) -> None:
    async with talking(stack.ws) as talk:
        for number in range(300):
            await talk.say("submit", ref=number, command={"type": "test.five", "payload": {"n": number}})
        ids: dict[int, str] = {}
        results = 0
        while results < 300:
            frame = await talk.next()
            assert frame["op"] in {"ack", "event", "result"}, frame
            results += frame["op"] == "result"
            if frame["op"] == "ack":
                ids[frame["ref"]] = frame["correlation_id"]
        assert sorted(ids) == list(range(300))
        for correlation_id in ids.values():
            talk.check(correlation_id)
            assert talk.about(correlation_id)[0]["op"] == "ack"


async def test_two_sockets_watch_one_mission(stack: Stack) -> None:
    async with talking(stack.ws) as one, talking(stack.ws) as other:
        correlation_id = await one.submit("test.patient", {"sleep_s": 0.01})
        await other.say("watch", correlation_id=correlation_id, after_seq=0)
        await other.until(lambda frame: frame.get("state") == "LISTENING")
        await other.say("cancel", correlation_id=correlation_id)
        assert await one.result(correlation_id) == await other.result(correlation_id)
        assert one.check(correlation_id) == other.check(correlation_id)


@pytest.mark.parametrize("after_seq", [None, 0, 1, 5, 6])
async def test_a_watch_after_the_end_gets_the_rest_and_the_result(stack: Stack, after_seq: int | None) -> None:
    async with talking(stack.ws) as talk:
        correlation_id = await talk.submit("test.five")
        await talk.result(correlation_id)
    async with talking(stack.ws) as late:
        given = {} if after_seq is None else {"after_seq": after_seq}
        await late.say("watch", correlation_id=correlation_id, **given)
        await late.result(correlation_id)
        assert len(late.check(correlation_id, after_seq or 0)) == 6 - (after_seq or 0)
        await late.say("ping", ref="p")
        assert await late.next() == {"op": "pong", "ref": "p"}


async def test_unwatch_ends_the_news_and_watch_goes_on(stack: Stack) -> None:
    async with talking(stack.ws) as talk, talking(stack.ws) as other:
        correlation_id = await talk.submit("test.patient", {"sleep_s": 0.01})
        await talk.until(lambda frame: frame.get("state") == "LISTENING")
        await talk.say("unwatch", ref="u", correlation_id=correlation_id)
        await talk.until(lambda frame: frame.get("ref") == "u")
        seen = talk.seen(correlation_id)
        await other.say("cancel", ref="c", correlation_id=correlation_id)
        assert (await other.next())["op"] == "ack"
        await document(stack, correlation_id)
        await talk.say("ping")
        assert (await talk.next())["op"] == "pong"
        await talk.say("watch", correlation_id=correlation_id, after_seq=seen)
        await talk.result(correlation_id)
        talk.check(correlation_id)


async def test_a_second_watch_of_the_same_mission_doubles_nothing(stack: Stack) -> None:
    async with talking(stack.ws) as talk:
        correlation_id = await talk.submit("test.patient", {"sleep_s": 0.01})
        await talk.until(lambda frame: frame.get("state") == "LISTENING")
        await talk.say("watch", ref="w", correlation_id=correlation_id, after_seq=0)
        await talk.until(lambda frame: frame.get("ref") == "w")
        await talk.say("cancel", correlation_id=correlation_id)
        await talk.result(correlation_id)
        talk.check(correlation_id)


async def test_cancel(stack: Stack) -> None:
    async with talking(stack.ws) as talk:
        correlation_id = await talk.submit("test.slow", {"seconds": 600})
        await talk.until(lambda frame: frame["op"] == "event")
        await talk.say("cancel", ref=7, correlation_id=correlation_id)
        result = await talk.result(correlation_id)
        assert (result["status"], result["reason"]) == ("CANCELLED", "requested")
        talk.check(correlation_id)
        if not any(frame.get("ref") == 7 for frame in talk.frames):  # it may be told sooner than answered
            assert (await talk.next())["ref"] == 7
        other = await talk.submit("test.noop")
        await talk.result(other)
        await talk.say("cancel", ref=8, correlation_id=other)
        assert (await talk.next())["problem"]["code"] == "ended"


async def test_a_missions_id_is_found_in_any_spelling(stack: Stack) -> None:
    async with talking(stack.ws) as talk:
        correlation_id = await talk.submit("test.noop")
        await talk.result(correlation_id)
    async with talking(stack.ws) as late:
        await late.say("watch", task_id=correlation_id.lower())
        await late.result(correlation_id)
        late.check(correlation_id)


async def test_text_comes_back_exactly(stack: Stack) -> None:
    payload = {"text": "NUL \0, שלום, 打开客厅空调, 🔥", "int": 10**40, "half": 0.5, "none": None, "nested": [[{}]]}
    async with talking(stack.ws) as talk:
        result = await talk.result(await talk.submit("test.echo", payload))
        assert result["result"] == payload


# Who may open one


async def test_the_subprotocol_is_negotiated(stack: Stack) -> None:
    async with talking(stack.ws) as talk:
        assert talk.socket.subprotocol == SUBPROTOCOL
    async with talking(stack.ws, subprotocols=["chat", SUBPROTOCOL]) as talk:
        assert talk.socket.subprotocol == SUBPROTOCOL
    async with talking(stack.ws, subprotocols=None) as talk:
        assert talk.socket.subprotocol is None
        await talk.say("ping")
        assert (await talk.next())["op"] == "pong"
    with pytest.raises(websockets.InvalidStatus) as refused:
        await talking(stack.ws, subprotocols=["chat"]).__aenter__()
    assert refused.value.response.status_code == 400
    assert json.loads(refused.value.response.body)["code"] == "bad_subprotocol"


async def test_pages_of_other_origins_are_refused(stack: Stack) -> None:
    port = stack.foregrounds[0].port
    for origin in (f"http://127.0.0.1:{port}", f"https://127.0.0.1:{port}", "https://panel.example"):
        async with talking(stack.ws, origin=page(origin)):
            pass
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{port + 1}", f"http://127.0.0.1:{port}.evil.com"):
        with pytest.raises(websockets.InvalidStatus) as refused:
            await talking(stack.ws, origin=page(origin)).__aenter__()
        assert refused.value.response.status_code == 403
        assert json.loads(refused.value.response.body)["code"] == "forbidden_origin"


async def test_a_page_that_rebinds_its_name_is_refused(stack: Stack) -> None:
    port = stack.foregrounds[0].port
    with pytest.raises(websockets.InvalidStatus) as refused:
        await talking(
            f"ws://evil.example:{port}/v1/ws", host="127.0.0.1", port=port, origin=page(f"http://evil.example:{port}")
        ).__aenter__()
    assert refused.value.response.status_code in {403, 421}


# What makes no sense is said, and the socket stays

DEEP = "[" * 5000 + "]" * 5000
SENSELESS: list[tuple[str | bytes, int, str]] = [
    ("", 400, "bad_json"),
    ("{", 400, "bad_json"),
    ('{"op":"ping"} {}', 400, "bad_json"),
    (b'{"op":"ping"}', 400, "bad_frame"),
    (b"\xff\x00", 400, "bad_frame"),
    ("[]", 400, "bad_frame"),
    ("null", 400, "bad_frame"),
    ("{}", 400, "bad_frame"),
    ('{"op":null}', 400, "bad_frame"),
    ('{"op":["submit"]}', 400, "bad_frame"),
    ('{"op":"dance"}', 400, "bad_frame"),
    ('{"op":"ping","ref":{}}', 400, "bad_frame"),
    ('{"op":"ping","ref":true}', 400, "bad_frame"),
    (json.dumps({"op": "ping", "ref": "x" * 201}), 400, "bad_frame"),
    (DEEP, 422, "too_deep"),
    (f'{{"op":"submit","command":{{"type":"test.echo","payload":{{"deep":{"[" * 70 + "]" * 70}}}}}}}', 422, "too_deep"),
    ('{"op":"submit","command":{"type":"test.echo","payload":{"n":NaN}}}', 422, "not_finite"),
    ('{"op":"submit","command":{"type":"test.echo","payload":{"n":1e400}}}', 422, "not_finite"),
    (r'{"op":"submit","command":{"type":"test.echo","payload":{"t":"\ud800"}}}', 400, "bad_json"),
    ('{"op":"submit"}', 422, "invalid"),
    ('{"op":"submit","command":[]}', 422, "invalid"),
    ('{"op":"submit","command":{}}', 422, "invalid"),
    ('{"op":"submit","command":{"type":"no.such.type"}}', 422, "unknown_type"),
    ('{"op":"submit","command":{"type":"test.slow","payload":{"seconds":"long"}}}', 422, "invalid"),
    ('{"op":"watch"}', 422, "invalid"),
    ('{"op":"watch","correlation_id":7}', 422, "invalid"),
    ('{"op":"watch","correlation_id":"no such mission"}', 404, "bad_id"),
    ('{"op":"watch","correlation_id":"0123456789ABCDEFGHJKMNPQRSTVWXYZ01234567"}', 404, "bad_id"),
    ('{"op":"unwatch","correlation_id":"x"}', 404, "bad_id"),
    ('{"op":"cancel","correlation_id":"x"}', 404, "bad_id"),
]


async def test_what_makes_no_sense_is_answered_and_the_socket_stays(stack: Stack) -> None:
    async with talking(stack.ws) as talk:
        for message, status, code in SENSELESS:
            await talk.raw(message)
            frame = await talk.next()
            shown = message[:100]
            assert (frame["op"], frame["ref"]) == ("error", None), shown
            assert (frame["problem"]["status"], frame["problem"]["code"]) == (status, code), (shown, frame)
            assert frame["problem"]["detail"], shown
        await talk.result(await talk.submit("test.noop"))


async def test_an_error_names_the_ref_and_points_at_the_fault(stack: Stack) -> None:
    async with talking(stack.ws) as talk:
        await talk.say("submit", ref="42", command={"type": "test.slow", "payload": {"seconds": -1}})
        frame = await talk.next()
        assert (frame["op"], frame["ref"]) == ("error", "42")
        assert frame["problem"]["errors"][0]["pointer"] == "/payload/seconds"


@pytest.mark.parametrize("after_seq", [-1, 1.5, "1", True, [], 2**60])
async def test_a_seq_is_a_whole_number(stack: Stack, after_seq: object) -> None:
    async with talking(stack.ws) as talk:
        correlation_id = await talk.submit("test.noop")
        await talk.result(correlation_id)
        await talk.say("watch", ref="w", correlation_id=correlation_id, after_seq=after_seq)
        frame = await talk.next()
        assert (frame["op"], frame["ref"], frame["problem"]["status"]) == ("error", "w", 422)


async def test_nobody_waits_for_events_that_never_were(stack: Stack) -> None:
    async with talking(stack.ws) as talk, talking(stack.ws) as other:
        correlation_id = await talk.submit("test.patient", {"sleep_s": 0.01})
        await talk.until(lambda frame: frame.get("state") == "LISTENING")
        await other.say("watch", ref="w", correlation_id=correlation_id, after_seq=99)
        frame = await other.next()
        assert (frame["problem"]["code"], frame["problem"]["errors"][0]["pointer"]) == ("invalid", "/after_seq")
        await other.say("cancel", correlation_id=correlation_id)
        await talk.result(correlation_id)
        await other.say("ping")
        assert (await other.next())["op"] == "pong", "what was refused is not watched"


async def test_too_big_a_frame_closes_the_socket(stack: Stack) -> None:
    async with talking(stack.ws) as talk:
        await talk.say("submit", ref=1, command={"type": "test.echo", "payload": {"text": "x" * 250_000}})
        await talk.until(lambda frame: frame["op"] == "result")
        await talk.raw(json.dumps({"op": "ping", "ref": "x" * 300_000}))
        closed = await talk.rest()
        assert closed.rcvd is not None
        assert closed.rcvd.code == 1009
    async with talking(stack.ws) as talk, asyncio.timeout(60):
        await talk.say("ping")
        assert (await talk.next())["op"] == "pong"
