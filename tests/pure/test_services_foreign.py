"""What a service may send is bounded, and read with care: a worker holds the memory of a hundred missions."""

import gzip
from collections.abc import AsyncIterator

import httpx
import pytest

from backend_loop.model import Model
from backend_loop.services import MOST_BYTES, Services, ServiceUnavailable

TRACE = "00-" + "0" * 31 + "1-" + "0" * 15 + "1-01"
PIECE = b" " * 65_536


class Endless(httpx.AsyncByteStream):
    """Goes on for as long as somebody reads."""

    def __init__(self) -> None:
        self.sent, self.closed = 0, False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.sent += len(PIECE)
            assert self.sent < 100 * MOST_BYTES, "it is read without end"
            yield PIECE

    async def aclose(self) -> None:
        self.closed = True


async def asked(answer: httpx.Response) -> object:
    async with httpx.AsyncClient(transport=httpx.MockTransport(lambda _: answer)) as client:
        return await Services("http://shop", client).get("stock/items/lamp", within_s=60, traceparent=TRACE)


@pytest.mark.parametrize("status", [200, 404, 503])
async def test_an_answer_without_end_is_given_up_and_its_connection_with_it(status: int) -> None:
    body = Endless()
    with pytest.raises(ServiceUnavailable, match=f"stock gave an answer of more than {MOST_BYTES} bytes"):
        await asked(httpx.Response(status, stream=body))
    assert body.closed
    assert body.sent <= MOST_BYTES + len(PIECE)


async def test_what_is_packed_counts_unpacked() -> None:
    packed = gzip.compress(b" " * (4 * MOST_BYTES))
    with pytest.raises(ServiceUnavailable, match="more than"):
        await asked(httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(packed)))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"[" * 100_000, id="too deep"),
        pytest.param(b'{"n": 1' + b"0" * 5_000 + b"}", id="too long a number"),
        pytest.param(b'{"n": "\\ud800"}', id="half a character"),
        pytest.param(b'{"n": NaN}', id="no number"),
    ],
)
async def test_a_success_that_is_no_json_however_it_is_none_is_garbage(content: bytes) -> None:
    with pytest.raises(ServiceUnavailable, match="stock gave an answer that is no JSON object"):
        await asked(httpx.Response(200, content=content))


def badly_packed() -> httpx.Response:
    return httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip at all"))


async def test_what_cannot_be_unpacked_is_no_answer() -> None:
    with pytest.raises(ServiceUnavailable, match="stock gave no answer"):
        await asked(badly_packed())


async def test_nor_is_it_of_a_model() -> None:
    async with httpx.AsyncClient(transport=httpx.MockTransport(lambda _: badly_packed())) as client:
        with pytest.raises(ServiceUnavailable, match="the model gave no answer"):
            await Model("http://model", client).think([], within_s=60, key="m:1", traceparent=TRACE)


async def test_a_refusal_that_says_too_much_is_no_reason_to_give_a_mission_up() -> None:
    """Its words go into each try's line of the log: uncut they were too large for a commit, and that ended it."""
    detail = "down " * 300_000
    with pytest.raises(ServiceUnavailable) as fault:
        await asked(httpx.Response(503, json={"detail": detail}))
    assert str(fault.value).startswith("stock: down down")
    assert len(str(fault.value)) < 1_000
