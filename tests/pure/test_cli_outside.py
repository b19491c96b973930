"""What the command line says of the outside services' answers, whatever was typed."""

from typing import Any

import httpx
import pytest

from dualloop.cli import outside
from dualloop.errors import Refusal

NOTHING = {"order": "A-9", "states": {}, "standing": {}, "journal": []}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs that were asked; nothing stands for any order."""
    urls = list[str]()

    def request(_method: str, url: str, **_: Any) -> httpx.Response:
        urls.append(str(httpx.URL(url)))
        return httpx.Response(200, json=NOTHING)

    monkeypatch.setenv("DUALLOOP_OUTSIDE_URL", "http://shop")
    monkeypatch.setattr(httpx, "request", request)
    return urls


def test_an_order_is_asked_for_whatever_it_is_called(asked: list[str]) -> None:
    outside.books("a b/../c?d", json=True)
    assert asked == ["http://shop/books/a%20b%2F..%2Fc%3Fd"]


@pytest.mark.parametrize("order", [".", ".."])
def test_no_order_is_another_path(asked: list[str], order: str) -> None:
    with pytest.raises(Refusal, match="No order is called so"):
        outside.books(order)
    assert asked == []


def test_that_nothing_was_done_is_said(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    outside.books("A-9")
    assert asked == ["http://shop/books/A-9"]
    assert "Nothing was done for order A-9." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (httpx.Response(404, json={"detail": "there is no A-9"}), "there is no A-9"),
        (httpx.Response(404, text="<html>"), "HTTP 404 from the outside services"),
        (httpx.Response(502, json=[]), "HTTP 502 from the outside services"),
        (httpx.Response(200, text="<html>"), "the outside services gave an answer that is no JSON"),
        (
            httpx.Response(422, json={"detail": [{"loc": ["body", "slow_s"], "msg": "too slow"}, {"msg": "?"}]}),
            "slow_s: too slow",
        ),
    ],
)
def test_a_refusal_is_a_sentence(answer: httpx.Response, sentence: str) -> None:
    with pytest.raises(Refusal) as refusal:
        outside._told(answer)
    assert str(refusal.value).lower().startswith(sentence.lower())
