"""Whatever is sent to the verbs: a problem with a sentence, and never an error of ours."""

import asyncio
import itertools
import json
import random
from pathlib import Path
from typing import Any, Final

import httpx

from tests.stories.operating import Hand, operated

SEED: Final = 20_261_129

LONG: Final = "x" * 5_000
ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1.5, 1e308, 2**70, -(2**70), 10**400),
    *("", " ", "\0", "\n", "é👋", "urgent", "failed_state", "same", "KNOCK", LONG, "1e400"),
    *([], {}, [[]], [None], {"": None}, {"a": {"b": [1]}}, [1] * 1_000),
)
NAMES: Final = (
    *("by", "note", "event", "data", "id", "priority", "state", "result", "from", "key", "payload", "deadline_s"),
    *("filter", "cursor", "limit", "unknown", ""),
)
RAW: Final = (
    *(b"{", b"[]", b"7", b"null", b'"text"', b"\xff\xfe", b'{"by":"\\ud800"}', b"\0", b"{}{}", b'{"by":1,"by":2}'),
    *(b'{"deadline_s":NaN}', b'{"deadline_s":1e999}', b'{"data":{"n":Infinity}}', b'{"result":{"n":-1e999}}'),
    *(b"[" * 2_000, b'{"data":' * 100 + b"1" + b"}" * 100, b'{"note":"' + b"x" * 300_000 + b'"}'),
)
QUERIES: Final = (
    *("wait=-1", "wait=nan", "wait=x", "cursor=%00", "cursor=AAAA", "cursor=WyJ4Il0", "limit=0", "limit=1e9"),
    *("code=none", "type=", "q=" + LONG, "unknown=1", "q=%ff%00", "by=" + LONG, "note=%ff", "cursor=Wzk5OTk5OSwgMV0"),
)


def paths(ids: list[str]) -> list[str]:
    verbs = ("cancel", "pause", "resume", "events")
    return [
        *(f"/v1/commands/{id_}/{verb}" for id_ in ids for verb in verbs),
        *(f"/v1/missions/{id_}/{verb}" for id_ in ids for verb in ("priority", "skip", "complete")),
        *(f"/v1/dead-letters/{id_}/replay" for id_ in ids),
        "/v1/dead-letters/replay",
    ]


def check(answer: httpx.Response) -> None:
    """A problem says what is wrong, and none of it is ours."""
    asked = (answer.request.method, str(answer.request.url)[:200], answer.request.content[:300])
    assert answer.status_code < 500, (asked, answer.text)
    document = answer.json()
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json", asked
        assert document["code"] != "internal", asked
        assert document["detail"], asked
        if answer.status_code == 422 and document["code"] == "invalid":
            assert document["errors"], asked


async def ids(hand: Hand) -> list[str]:
    """Missions in all kinds of places, and what is none."""
    patient = await hand.submit("test.patient", {"sleep_s": 600})
    slow = await hand.submit("test.slow", {"seconds": 600, "entity": "light.hall"})
    waiter = await hand.submit("test.slow", {"seconds": 600, "entity": "light.hall"})
    parcel = await hand.submit("test.parcel", {"depot": "closed"})
    done = await hand.submit("test.noop")
    await hand.ended(done)
    await hand.ended(parcel)
    await hand.in_state(slow, "ACTING", "leased")
    return [patient, slow, waiter, parcel, done, "0" * 40, "%00", "x" * 3_000, "%2e%2e", "é"]


async def test_no_body_is_an_error_of_ours(redis_url: str, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    async with operated(redis_url, tmp_path) as hand:
        asked = paths(await ids(hand))
        head = {"content-type": "application/json"}
        bodies = [json.dumps({name: value}).encode() for name, value in itertools.product(NAMES, ODD)]
        for _ in range(300):
            several = {name: chance.choice(ODD) for name in chance.sample(NAMES, 4)}
            bodies.append(json.dumps(several).encode())
        requests = [(chance.choice(asked), body) for body in bodies]
        requests += [(path, body) for path in chance.sample(asked, 12) for body in RAW]
        gate = asyncio.Semaphore(16)

        async def ask(path: str, body: bytes) -> None:
            async with gate:
                check(await hand.http.post(path, content=body, headers=head))

        await asyncio.gather(*(ask(path, body) for path, body in requests))
        log = hand.stack.foregrounds[0].log.read_text()
        assert '"unexpected"' not in log


async def test_no_query_and_no_header_is_an_error_of_ours(redis_url: str, tmp_path: Path) -> None:
    async with operated(redis_url, tmp_path) as hand:
        known = await ids(hand)
        for query in QUERIES:
            check(await hand.http.get(f"/v1/dead-letters?{query}"))
            check(await hand.http.get(f"/v1/missions?{query}"))
            for id_ in known[3:]:
                check(await hand.http.delete(f"/v1/dead-letters/{id_}?{query}"))
                check(await hand.http.post(f"/v1/commands/{id_}/cancel?{query}"))
        for header in ("wait=nan", "wait=-1", "wait", "wait=", ",,;", 'wait="0.01"', "respond-async", "wait=1e999"):
            check(await hand.http.post(f"/v1/commands/{known[4]}/cancel", headers={"prefer": header}))
        for header in ("", "x" * 300, "a b", '"'):
            said = {"idempotency-key": header}
            check(await hand.http.post(f"/v1/commands/{known[0]}/events", json={"event": "KNOCK"}, headers=said))
        plain = await hand.http.post(
            f"/v1/commands/{known[0]}/pause", content=b"{}", headers={"content-type": "text/plain"}
        )
        assert plain.status_code == 415
        check(plain)
        for id_ in known:
            check(await hand.http.get(f"/v1/dead-letters/{id_}"))
            check(await hand.http.put(f"/v1/dead-letters/{id_}"))
