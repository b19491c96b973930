"""`webhook.deliver`: give a JSON event to somebody else's URL, signed as Standard Webhooks has it, until it is taken.

All tries carry one `webhook-id`, by which the receiver knows what it has had: an answer may be lost, and then the event
is sent again. The body is the event, the same bytes each time; time and signature are those of the try. An answer of
success ends it. One that says no for good ends it `permanent`, and a 410 says that this URL wants no more of anything.
All else, redirects too, is tried again for a day and a half, further and further apart, or when `Retry-After` says.

Where a webhook may go is looked at in each try, on the address that is connected to (`backend_loop.webhooks`).
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

import httpx
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import to_json

from backend_loop.alias import alias
from backend_loop.mission import Mission, state
from backend_loop.outcomes import Fail, Go, Outcome
from backend_loop.retry import Retry as Policy
from backend_loop.services import ServiceRefused, ServiceUnavailable
from backend_loop.toolbox import Toolbox
from shared.clock import now_ms, rfc3339

TRY_S: Final = 15.0
"""A receiver that takes longer to answer is asked again: it should take the event first, and work afterwards."""

AGAIN: Final = Policy(tries=30, base_s=5, cap_s=7_200, max_elapsed_s=129_600)
"""Some ten times in the first hours, then every hour on average."""

URL: Final = r"^https?://[^\s/?#@\\]+([/?][^\s#\\]*)?$"
"""Without credentials, which belong into no log, and without a fragment, which is never sent."""


def _meant(url: str) -> str:
    """The URL, if it can be asked.

    Raises:
        ValueError: it cannot.
    """
    try:
        target = httpx.URL(url)
        host = target.host
    except (httpx.InvalidURL, UnicodeError) as error:  # the second one of a name that is no Punycode
        raise ValueError(f"no URL: {error}") from error
    if not host or target.userinfo:
        raise ValueError("no URL with a host, and without credentials")
    if target.port is not None and not 0 < target.port < 65_536:
        raise ValueError(f"no URL: {target.port} is no port from 1 to 65535")
    return url


class WebhookDeliver(Mission):
    """Deliver an event to a URL."""

    type = "webhook.deliver"
    deadline_s = 2 * 86_400.0
    concurrency = 20  # so that receivers that never answer do not take the slots of everybody else
    retryable = (ServiceUnavailable,)
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {"DELIVERING": {"delivered": "SUCCEEDED"}}

    class Payload(BaseModel):
        """What, and where to."""

        model_config = ConfigDict(extra="allow")

        url: Annotated[str, Field(max_length=2_048, pattern=URL), AfterValidator(_meant)] = Field(
            description="http or https, without credentials", examples=["https://example.com/hooks"]
        )
        event: dict[str, Any] = Field(
            min_length=1,
            description="the body; receivers expect type, timestamp and data",
            examples=[{"type": "order.shipped", "timestamp": "2026-11-29T16:00:00Z", "data": {"order": "A-1"}}],
        )

    @state("DELIVERING", acting=True, timeout_s=TRY_S + 5, retry=AGAIN)
    async def deliver(self, tools: Toolbox[Payload, BaseModel]) -> Outcome:
        """One try."""
        began = now_ms()
        try:
            status = await tools.deliver(tools.payload.url, to_json(tools.payload.event).decode(), within_s=TRY_S)
        except ServiceRefused as fault:
            return Fail(
                str(fault), result={"answer": fault.code, "gone": fault.code == "gone", "webhook_id": alias(tools.key)}
            )
        ended = now_ms()
        return Go(
            "delivered",
            result={
                "status": status,
                "delivered_at": rfc3339(ended),
                "took_ms": ended - began,
                "tries": tools.attempt,
                "webhook_id": alias(tools.key),
            },
        )
