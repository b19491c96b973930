"""The hand switch at the foreground's door, against a real home."""

import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request, Response

from frontend_loop.ingress.home import home_router
from shared.errors import Problem
from shared.settings import Settings
from tests.home import Home

LAMP = "light.bedroom"
DEVICES = "/v1/home/devices"


async def door(home_url: str | None) -> AsyncIterator[httpx.AsyncClient]:
    """The routes alone, with problems told as the whole foreground tells them."""
    app = FastAPI()
    app.include_router(home_router(Settings(home_url=home_url, _env_file=None)))

    @app.exception_handler(Problem)
    async def tell(request: Request, problem: Problem) -> Response:
        headers = {name.decode(): value.decode() for name, value in problem.headers()}
        return Response(problem.body(request.url.path), problem.status, headers)

    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client,
    ):
        yield client


@pytest.fixture
async def front(home: Home) -> AsyncIterator[httpx.AsyncClient]:
    async for client in door(home.url):
        yield client


async def test_live_state_of_all_and_of_one(home: Home, front: httpx.AsyncClient) -> None:
    home.hand(LAMP, power="on")
    everything = (await front.get(DEVICES)).json()["devices"]
    assert {"light.living_room", "climate.living_room", "cover.living_room", "lock.front_door"} <= {
        device["entity"] for device in everything
    }
    lamp = (await front.get(f"{DEVICES}/{LAMP}")).json()
    assert lamp["value"]["power"] == "on"
    assert (lamp["changed_by"], lamp["reachable"]) == ("hand", True)
    assert {"version", "observed_at", "actions", "faults"} <= lamp.keys()


async def test_the_hand_switch_and_the_faults(home: Home, front: httpx.AsyncClient) -> None:
    answer = await front.post(f"{DEVICES}/{LAMP}", json={"hand": {"power": "on"}, "faults": {"offline": True}})
    assert answer.json()["value"]["power"] == "on"
    assert home.http.get(f"/devices/{LAMP}").status_code == 503
    lamp = (await front.get(f"{DEVICES}/{LAMP}")).json()
    assert (lamp["reachable"], lamp["faults"]["offline"]) == (False, True), "a person sees it all the same"
    assert (await front.post(f"{DEVICES}/{LAMP}", json={"faults": {}})).json()["reachable"]


@pytest.mark.parametrize("name", ["light.nowhere", "..%2Flivez", "%F0%9F%92%A1"])
async def test_an_unknown_device_is_404(front: httpx.AsyncClient, name: str) -> None:
    for answer in (await front.get(f"{DEVICES}/{name}"), await front.post(f"{DEVICES}/{name}", json={"hand": {}})):
        assert answer.status_code == 404


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"hand": {"power": "half"}}, "/hand"),
        ({"hand": {"smell": 1}}, "/hand"),
        ({"faults": {"latency_ms": -1}}, "/faults/latency_ms"),
        ({"faults": {"gremlins": True}}, "/faults/gremlins"),
    ],
    ids=str,
)
async def test_what_makes_no_sense_is_422_and_says_where(
    home: Home, front: httpx.AsyncClient, body: Any, pointer: str
) -> None:
    before = home.look(LAMP)["version"]
    answer = await front.post(f"{DEVICES}/{LAMP}", json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert home.look(LAMP)["version"] == before


async def test_text_that_is_not_unicode_is_422(front: httpx.AsyncClient) -> None:
    body = b'{"hand": {"power": "\\ud800"}}'
    answer = await front.post(f"{DEVICES}/{LAMP}", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422


def nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("url", [None, "here", "http://[", nobody()], ids=["none", "nonsense", "broken", "nobody"])
async def test_a_home_that_is_away_is_503_and_says_when_to_come_again(url: str | None) -> None:
    async for front in door(url):
        for answer in (await front.get(DEVICES), await front.post(f"{DEVICES}/{LAMP}", json={"hand": {}})):
            assert (answer.status_code, answer.json()["code"]) == (503, "home_unavailable")
            assert answer.json()["retryable"]
            assert int(answer.headers["retry-after"]) >= 1
