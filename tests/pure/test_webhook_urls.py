"""What is said of a URL that passes the schema and is none after all."""

import pytest
from pydantic import ValidationError

from backend_loop.missions.webhook_deliver import WebhookDeliver


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://h:99999/", "no URL: 99999 is no port from 1 to 65535"),
        ("http://h:0/", "no URL: 0 is no port from 1 to 65535"),
        ("http://xn--/", "no URL: "),
        ("http://\uff2c/", "no URL: "),
        ("http://:80/", "no URL with a host"),
    ],
)
def test_it_is_said_what_is_wrong_with_it(url: str, sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        WebhookDeliver.Payload(url=url, event={"type": "x"})
    (error,) = refused.value.errors()
    assert error["msg"].startswith(f"Value error, {sentence}"), error["msg"]
