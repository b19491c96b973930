"""`webhook.deliver` as data: URLs that are refused at the door, and secrets that no text shows."""

from typing import Any

import jsonschema_rs
import pytest
from pydantic import ValidationError

from backend_loop.missions.webhook_deliver import WebhookDeliver
from shared.settings import Settings

DEFINITION = WebhookDeliver.definition
DOOR = jsonschema_rs.Draft202012Validator(DEFINITION.row().payload_schema)
EVENT = {"type": "order.shipped", "data": {"order": "A-1"}}
GOOD, LONG = "whsec_" + "bmV3" * 8, "whsec_" + "bmV3" * 16


def accepted(payload: dict[str, Any]) -> bool:
    try:
        WebhookDeliver.Payload.model_validate(payload)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("url", "door", "model"),
    [
        ("https://example.com/hooks", True, True),
        ("http://example.com", True, True),
        ("https://example.com:8443/a/b?c=d@e", True, True),
        ("https://[2606:4700::1111]/", True, True),
        ("https://bücher.example/", True, True),
        ("https://user:secret@example.com/", False, False),
        ("https://user@example.com/", False, False),
        ("https://example.com\\@127.0.0.1/", False, False),
        ("https://example.com/#there", False, False),
        ("https://example.com/a b", False, False),
        ("https://example.com/\r\nx-injected: 1", False, False),
        ("ftp://example.com/", False, False),
        ("file:///etc/passwd", False, False),
        ("gopher://example.com/", False, False),
        ("javascript:alert(1)", False, False),
        ("//example.com/", False, False),
        ("https://", False, False),
        ("https:///path", False, False),
        ("", False, False),
        ("https://example.com/" + "x" * 2_048, False, False),
        ("https://0177.0.0.1/", True, False),
        ("https://example.com:0/", True, False),
        ("https://example.com:99999/", True, False),
    ],
)
def test_urls(url: str, door: bool, model: bool) -> None:
    payload = {"url": url, "event": EVENT}
    assert (DOOR.is_valid(payload), accepted(payload)) == (door, model)


@pytest.mark.parametrize("event", [None, {}, [EVENT], "order.shipped"], ids=str)
def test_an_event_is_an_object_with_something_in_it(event: Any) -> None:
    payload = {"url": "https://example.com/", "event": event}
    assert (DOOR.is_valid(payload), accepted(payload)) == (False, False)


def test_it_is_tried_for_a_day_and_a_half_and_its_deadline_is_later() -> None:
    row = DEFINITION.row()
    retry = row.states["DELIVERING"]["retry"]
    assert retry["max_elapsed_s"] == 36 * 3_600
    assert (row.deadline_s or 0) > retry["max_elapsed_s"] + 60
    assert row.concurrency is not None


def test_secrets_come_by_comma_and_are_not_shown() -> None:
    settings = Settings(webhook_secret=f"{GOOD}, {LONG}", _env_file=None)
    assert settings.webhook_secrets == (GOOD, LONG)
    assert GOOD not in repr(settings) + str(settings.model_dump()) + settings.model_dump_json()
    assert Settings(**settings.opened(), _env_file=None).webhook_secrets == (GOOD, LONG), "by the pipe to a child"
    assert Settings(_env_file=None).webhook_secrets == ()


@pytest.mark.parametrize(
    "secret", ["hunter2", "whsec_c2hvcnQ=", "whsec_not base64 at all!", f"{GOOD},hunter2", "bmV3" * 8]
)
def test_a_secret_that_is_none_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(ValidationError) as told:
        Settings(webhook_secret=secret, _env_file=None)
    assert "openssl rand" in str(told.value)
    assert secret not in str(told.value) + repr(told.value)


@pytest.mark.parametrize("entry", ["10.0.0.0/33", "10.0.0.5/8", "300.1.1.1", "hooks_internal", "http://hooks", "a b"])
def test_what_is_allowed_is_a_host_an_address_or_a_network(entry: str) -> None:
    with pytest.raises(ValidationError, match="hosts, addresses and CIDRs"):
        Settings(webhook_allow=(entry,), _env_file=None)
    fine = Settings(webhook_allow="hooks.internal, 10.0.0.0/8,::1,fd00::/8", _env_file=None)
    assert fine.webhook_allow == ("hooks.internal", "10.0.0.0/8", "::1", "fd00::/8")
