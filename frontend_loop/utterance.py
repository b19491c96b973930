"""What is said in words, on every transport: ``{"text": …, "locale": …}`` is a command to the assistant."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from frontend_loop.reading import invalid, read_as
from shared.sessions import TYPE, target_of

Locale = Annotated[str, Field(max_length=35, pattern=r"^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$")]
"""BCP 47, or what people write for it."""


class Utterance(BaseModel):
    """The fields that stand in the place of `type` and `payload`."""

    text: Annotated[str, Field(min_length=1, max_length=1_000, pattern=r"\S")] = Field(
        description="what was said or typed", examples=["打开客厅空调，调到26度"]
    )
    locale: Locale | None = Field(
        None,
        description="language of the speaker, BCP 47; default: that of the session, else as the text looks",
        examples=["zh-CN"],
    )


def as_command(value: Any) -> Any:
    """A command as all others are; what is none in words comes back as it is, but for the order within its session.

    Raises:
        Problem: 422, with a pointer per fault.
    """
    if not isinstance(value, dict):
        return value
    if "text" in value:
        value = _from_words(value)
    if value.get("type") == TYPE and value.get("target") is None:
        session = value.get("session")
        if isinstance(session, str) and 0 < len(session) <= 200:  # else it is refused as any wrong field is
            return {**value, "target": target_of(session)}
    return value


def _from_words(value: dict[str, Any]) -> dict[str, Any]:
    doubled = "payload" if value.get("payload") is not None else "type" if value.get("type", TYPE) != TYPE else None
    if doubled is not None:
        detail = f"text says in words what type and payload say otherwise: leave out /{doubled}, or the text"
        raise invalid([{"pointer": "/text", "detail": detail}])
    said = read_as(Utterance, value)
    payload: dict[str, Any] = {"text": said.text}
    if said.locale is not None:
        payload["locale"] = said.locale
    rest = {name: one for name, one in value.items() if name not in {"text", "locale"}}
    return {**rest, "type": TYPE, "payload": payload}
