"""Only pages of this host, and those that were allowed, may open a socket; what is no page may always."""

import pytest

from frontend_loop.origins import may_open

PANEL = ("https://panel.example", "http://kiosk:8080/")


def headers(origin: str | None, host: str = "127.0.0.1:8000") -> list[tuple[bytes, bytes]]:
    given = [(b"host", host.encode())]
    return given if origin is None else [*given, (b"origin", origin.encode())]


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (None, "127.0.0.1:8000"),
        ("http://127.0.0.1:8000", "127.0.0.1:8000"),
        ("https://127.0.0.1:8000", "127.0.0.1:8000"),
        ("http://LOCALHOST:8000", "localhost:8000"),
        ("http://[::1]:8000", "[::1]:8000"),
        ("https://home.example", "home.example"),
        ("https://home.example", "home.example:443"),
        ("http://home.example", "home.example:80"),
        ("https://panel.example", "127.0.0.1:8000"),
        ("http://kiosk:8080", "127.0.0.1:8000"),
    ],
)
def test_it_may(origin: str | None, host: str) -> None:
    assert may_open(headers(origin, host), PANEL)


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "http://evil.example",
        "http://127.0.0.1",
        "http://127.0.0.1:8001",
        "http://127.0.0.1:8000.evil.example",
        "http://localhost:8000",
        "ftp://127.0.0.1:8000",
        "file://",
        "127.0.0.1:8000",
        "http://panel.example",
        "https://panel.example:8443",
        "https://panel.example.evil.example",
        "chrome-extension://abc",
    ],
)
def test_it_may_not(origin: str) -> None:
    assert not may_open(headers(origin), PANEL)


def test_two_origins_are_none_that_can_be_trusted() -> None:
    assert not may_open([*headers("http://127.0.0.1:8000"), (b"origin", b"http://evil.example")], PANEL)


def test_all_may_where_that_was_said() -> None:
    assert may_open(headers("http://evil.example"), ("*",))


def test_a_request_without_a_host_has_no_pages() -> None:
    assert not may_open([(b"origin", b"http://")], ())
