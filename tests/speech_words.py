"""What an OpenAI-compatible speech server says that tests play."""

from pydantic_core import to_json

from tests.webhook_receiver import Answer, status

CLEAR, DOUBTFUL = -0.05, -1.5
"""Log-probabilities, as a speech server tells them."""


def hears(text: str, sure: float = CLEAR) -> Answer:
    """The answer of an OpenAI-compatible speech server."""
    body = to_json({"text": text, "segments": [{"avg_logprob": sure}]})
    return status(200, "content-type: application/json", body=body)
