"""Who says things in one session, and what is told to him."""

from typing import Any

import httpx

from tests.waiting import eventually

Document = dict[str, Any]


class Speaker:
    """Says things in one session."""

    def __init__(self, client: httpx.AsyncClient, session: str) -> None:
        self.client, self.session = client, session

    async def say(self, text: str, **more: Any) -> str:
        """The correlation_id of what was said."""
        command = {"text": text, "session": self.session, **more}
        answer = await self.client.post("/v1/commands", json=command)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["correlation_id"])

    async def hear(self, text: str, **more: Any) -> Document:
        """Its result document."""
        return await self.end(await self.say(text, **more))

    async def end(self, correlation_id: str) -> Document:
        answer = await self.client.get(f"/v1/results/{correlation_id}", params={"wait": 30})
        assert answer.status_code == 200, answer.text
        document: Document = answer.json()
        return document

    async def asks(self, correlation_id: str) -> str:
        """What it asks, once it waits for the answer."""

        async def asked() -> str | None:
            document = (await self.client.get(f"/v1/results/{correlation_id}")).json()
            assert document["finished_at"] is None, document
            waits = (document["state"], document["waiting_for"]) == ("ASKING", "event")
            return document["progress"]["message"] if waits else None

        found = await eventually(asked, what=f"{correlation_id} asks")
        assert found is not None
        return found


def text(document: Document) -> str:
    return str(document["result"]["text"])


def outcomes(document: Document) -> list[str]:
    return [row["outcome"] for row in document["result"]["devices"]]
