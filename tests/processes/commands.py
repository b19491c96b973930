"""A client of one foreground, for tests that kill things: plain HTTP, no retries of its own."""

from typing import Any

import httpx

from tests.stories.stack import Part


class Front:
    """What a test asks of a foreground."""

    def __init__(self, part: Part) -> None:
        self.client = httpx.AsyncClient(base_url=part.url, trust_env=False, timeout=40)

    async def send(self, type_: str, **command: Any) -> str:
        """Submit; the correlation_id."""
        answer = await self.client.post("/v1/commands", json={"type": type_, **command})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["correlation_id"])

    async def result(self, correlation_id: str, wait: float = 30) -> dict[str, Any]:
        """The result document, as of now or after so many seconds at most."""
        answer = await self.client.get(f"/v1/results/{correlation_id}", params={"wait": wait})
        assert answer.status_code in {200, 202}, answer.text
        return dict(answer.json())

    async def cancel(self, correlation_id: str) -> httpx.Response:
        """Ask for an end."""
        return await self.client.post(f"/v1/commands/{correlation_id}/cancel")

    async def state(self, correlation_id: str) -> tuple[str, str]:
        """Status and state as of now."""
        document = await self.result(correlation_id, wait=0)
        return document["status"], document["state"]
