"""on_disconnect cancel: what a socket submitted ends when nobody watches it any more, whatever dies meanwhile (P19)."""

from pathlib import Path

import httpx
import redis

from shared import keys
from tests.stories.stack import running
from tests.stories.talk import Talk, talking
from tests.waiting import eventually

GRACE = "1"
SLOW = {"seconds": 600}


async def ends_by_disconnecting(talk: Talk, correlation_id: str) -> None:
    result = await talk.result(correlation_id)
    assert (result["status"], result["reason"]) == ("CANCELLED", "disconnected")
    talk.check(correlation_id)


def result_of(redis_url: str, correlation_id: str) -> bool:
    with redis.Redis.from_url(redis_url) as client:
        return bool(client.exists(keys.result(0, correlation_id)))


async def test_only_what_was_to_end_with_its_socket_does(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, DUALLOOP_DISCONNECT_GRACE_S=GRACE) as stack:
        async with talking(stack.ws) as talk:
            ends = await talk.submit("test.slow", SLOW, on_disconnect="cancel")
            goes_on = await talk.submit("test.slow", SLOW, on_disconnect="continue")
            done = await talk.submit("test.noop", on_disconnect="cancel")
            assert (await talk.result(done))["status"] == "SUCCEEDED"
        await eventually(lambda: result_of(redis_url, ends), what="it is cancelled")
        async with talking(stack.ws) as late:
            await late.say("watch", correlation_id=ends)
            await ends_by_disconnecting(late, ends)
            await late.say("watch", correlation_id=goes_on)
            await late.say("cancel", correlation_id=goes_on)
            assert (await late.result(goes_on))["reason"] == "requested"


async def test_who_watches_in_time_keeps_it(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, foregrounds=2, DUALLOOP_DISCONNECT_GRACE_S=GRACE) as stack:
        first, second = stack.foregrounds
        async with talking(first.ws) as talk:
            kept = await talk.submit("test.slow", SLOW, on_disconnect="cancel")
            ends = await talk.submit("test.slow", SLOW, on_disconnect="cancel")
            async with talking(second.ws) as other:
                await other.say("watch", ref="w", correlation_id=kept)
                await other.until(lambda frame: frame.get("ref") == "w")
                await talk.socket.close()
                await eventually(lambda: result_of(redis_url, ends), what="the one that nobody watches is cancelled")
                assert not result_of(redis_url, kept)
                await other.say("unwatch", correlation_id=kept)
                await eventually(lambda: result_of(redis_url, kept), what="then the other one too")


async def test_two_sockets_of_one_foreground_are_two_watchers(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, DUALLOOP_DISCONNECT_GRACE_S=GRACE) as stack, talking(stack.ws) as other:
        async with talking(stack.ws) as talk:
            kept = await talk.submit("test.slow", SLOW, on_disconnect="cancel")
            ends = await talk.submit("test.slow", SLOW, on_disconnect="cancel")
            await other.say("watch", ref="w", correlation_id=kept)
            await other.until(lambda frame: frame.get("ref") == "w")
        await eventually(lambda: result_of(redis_url, ends), what="the one that nobody watches is cancelled")
        assert not result_of(redis_url, kept)


async def test_a_foreground_that_was_killed_need_not_say_so(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, foregrounds=2, DUALLOOP_DISCONNECT_GRACE_S=GRACE) as stack:
        first, second = stack.foregrounds
        async with talking(first.ws) as talk:
            ends = await talk.submit("test.slow", SLOW, on_disconnect="cancel")
            first.kill()
        with redis.Redis.from_url(redis_url) as client:
            lapsed = (client.hget(keys.mission(0, ends), "watchers") or b"").split()[0]
            client.hset(keys.mission(0, ends), "watchers", lapsed + b" 1")  # its minute is over
            client.zadd(keys.prefix(0) + "attended", {ends: 1})
        async with talking(second.ws) as late:
            await eventually(lambda: result_of(redis_url, ends), what="it is cancelled")
            await late.say("watch", correlation_id=ends)
            await ends_by_disconnecting(late, ends)


async def test_without_a_socket_there_is_nothing_to_go_by(redis_url: str, tmp_path: Path) -> None:
    async with (
        running(redis_url, tmp_path, DUALLOOP_DISCONNECT_GRACE_S=GRACE) as stack,
        httpx.AsyncClient(trust_env=False, timeout=60) as http,
    ):
        command = {"type": "test.noop", "on_disconnect": "cancel"}
        answer = await http.post(f"{stack.url}/v1/commands", json=command)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/on_disconnect"
