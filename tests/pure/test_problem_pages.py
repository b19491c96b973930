"""What the foreground says of a page that there is not: where those are that there are."""

import httpx
import pytest
from fastapi import FastAPI

from frontend_loop.problems import install


@pytest.mark.parametrize(
    ("method", "path", "status", "detail"),
    [
        ("GET", "/", 404, "nothing is here: /docs lists all that there is"),
        ("GET", "/v1/nowhere", 404, "nothing is here: /docs lists all that there is"),
        ("DELETE", "/v1/commands", 405, "DELETE is not taken here, but POST"),
    ],
)
async def test_a_page_that_there_is_not(method: str, path: str, status: int, detail: str) -> None:
    app = FastAPI()
    install(app)
    app.post("/v1/commands")(lambda: None)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        answer = await client.request(method, path)
    assert (answer.status_code, answer.json()["detail"]) == (status, detail)
    assert answer.headers["content-type"] == "application/problem+json"
