"""Webhooks over real sockets: what is sent, what an answer means, and what is never connected to."""

import asyncio
import shutil
import socket
import ssl
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from backend_loop.alias import alias
from backend_loop.services import ServiceRefused, ServiceUnavailable
from backend_loop.webhooks import sender
from backend_loop.webhooks.sender import Webhooks
from tests.waiting import eventually
from tests.webhook_receiver import Answer, Receiver, endless, nonsense, receiving, reset, silence, status

SECRET, OLD = "whsec_" + "bmV3" * 8, "whsec_" + "b2xk" * 8
BODY = '{"type":"order.shipped","data":{"name":"Zoë 🎁"}}'
HERE = ("127.0.0.1",)


async def send(url: str, *, allow: tuple[str, ...] = HERE, within_s: float = 60, secrets: Any = (SECRET,)) -> int:
    return await Webhooks(secrets, allow).send(url, BODY, key="task:1:DELIVERING:1", within_s=within_s)


Resolved = list[str]


def resolve(monkeypatch: pytest.MonkeyPatch, *answers: str | list[str] | OSError) -> Resolved:
    """What names lead to, asked for the first time, the second time and so on; those that were asked for."""
    real, asked, left = socket.getaddrinfo, Resolved(), list(answers)

    def getaddrinfo(host: Any, port: Any, *more: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if not name.endswith(".test"):
            return real(host, port, *more, **named)
        asked.append(name)
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, OSError):
            raise answer
        addresses = [answer] if isinstance(answer, str) else answer
        return [found for address in addresses for found in real(address, port, type=socket.SOCK_STREAM)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


async def test_a_name_that_gets_no_answer_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither who wants a thread, nor the end of the process, which only waits for threads that are no daemons."""
    asked, answered, keeping = threading.Event(), threading.Event(), list[bool]()

    def getaddrinfo(*_: Any, **__: Any) -> Any:
        keeping.append(not threading.current_thread().daemon)
        asked.set()
        answered.wait()
        raise OSError("no answer")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with ThreadPoolExecutor(1) as one:
        asyncio.get_running_loop().set_default_executor(one)
        sending = asyncio.create_task(send("http://far.test/hooks"))
        try:
            await eventually(asked.is_set, 30)
            async with asyncio.timeout(30):
                assert await asyncio.to_thread(int, "7") == 7
            assert keeping == [False]
        finally:
            answered.set()
        with pytest.raises(ServiceUnavailable, match="leads anywhere now"):
            await sending


async def test_the_receivers_own_verifier_takes_it() -> None:
    async with receiving() as receiver:
        assert await send(receiver.url) == 204
    [one] = receiver.deliveries
    assert (one.line, one.body) == ("POST /hooks HTTP/1.1", BODY.encode())
    assert Webhook(SECRET).verify(one.body, one.headers) == {"type": "order.shipped", "data": {"name": "Zoë 🎁"}}
    assert one.headers["webhook-id"] == alias("task:1:DELIVERING:1")
    assert one.headers["content-type"] == "application/json"
    assert one.headers["host"] == f"127.0.0.1:{receiver.port}"


async def test_while_secrets_rotate_either_verifies_it() -> None:
    async with receiving() as receiver:
        await send(receiver.url, secrets=(SECRET, OLD))
    [one] = receiver.deliveries
    assert len(one.headers["webhook-signature"].split(" ")) == 2
    for secret in (SECRET, OLD):
        Webhook(secret).verify(one.body, one.headers)


async def test_nothing_is_sent_unsigned() -> None:
    async with receiving() as receiver:
        with pytest.raises(ServiceRefused, match="DUALLOOP_WEBHOOK_SECRET"):
            await send(receiver.url, secrets=())
        assert receiver.deliveries == []


@pytest.mark.parametrize(
    ("answer", "code"),
    [(status(410), "gone"), (status(400), "400"), (status(401), "401"), (status(404), "404"), (status(422), "422")],
)
async def test_a_no_for_good_is_one(answer: Answer, code: str) -> None:
    async with receiving() as receiver:
        receiver.answers.append(answer)
        with pytest.raises(ServiceRefused) as told:
            await send(receiver.url)
    assert told.value.code == code


@pytest.mark.parametrize(
    ("answer", "sentence", "after_s"),
    [
        (status(500), "answered 500", 0),
        (status(503, "retry-after: 7"), "answered 503", 7),
        (status(429, "retry-after: 30"), "answered 429", 30),
        (status(503, "retry-after: 99999999"), "answered 503", 86_400),
        (status(503, "retry-after: soon"), "answered 503", 0),
        (status(408), "answered 408", 0),
        (status(425), "answered 425", 0),
        (status(302, "location: http://127.0.0.1:1/"), "answered 302, and no webhook is sent on", 0),
        (reset, "gave no answer", 0),
        (nonsense, "gave no answer", 0),
        (silence, "gave no answer: out of time", 0),
    ],
)
async def test_all_else_may_be_tried_again(answer: Answer, sentence: str, after_s: float) -> None:
    async with receiving() as receiver:
        receiver.answers.append(answer)
        with pytest.raises(ServiceUnavailable, match=sentence) as told:
            await send(receiver.url, within_s=0.5 if answer is silence else 60)
    assert told.value.after_s == after_s


async def test_a_redirect_is_not_followed() -> None:
    async with receiving() as elsewhere, receiving() as receiver:
        receiver.answers.append(status(307, f"location: {elsewhere.url}"))
        with pytest.raises(ServiceUnavailable):
            await send(receiver.url)
        assert elsewhere.deliveries == []


async def test_of_a_body_without_end_a_little_is_read() -> None:
    async with receiving() as receiver:
        receiver.answers.append(endless)
        assert await send(receiver.url) == 200
    assert receiver.written < 16 * 1024 * 1024, "what the kernel buffers, and no more"


async def test_a_success_whose_body_never_ends_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "READ_S", 0.1)

    async def half(_: Receiver, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
        await silence(_, writer)

    async with receiving() as receiver:
        receiver.answers.append(half)
        assert await send(receiver.url) == 200


async def test_nobody_there_is_no_answer() -> None:
    async with receiving() as receiver:
        pass
    with pytest.raises(ServiceUnavailable, match="gave no answer"):
        await send(receiver.url)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "127.0.0.1.", "0"),
        *("[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::]", "10.0.0.1", "169.254.169.254"),
        *("[fe80::1%25eth0]", "224.0.0.1", "[ff02::1]", "[64:ff9b::7f00:1]"),
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_what_lies_within_is_not_connected_to_however_it_is_written(host: str, scheme: str) -> None:
    async with receiving("0.0.0.0") as receiver:  # noqa: S104  on all of them, to see that nothing comes
        with pytest.raises((ServiceRefused, ServiceUnavailable)) as told:
            await send(f"{scheme}://{host}:{receiver.port}/", allow=())
        assert receiver.deliveries == []
    if isinstance(told.value, ServiceRefused):
        assert told.value.code == "forbidden"
    else:
        assert "no name that leads anywhere" in str(told.value), "such as a spelling that the resolver does not take"


async def test_a_name_that_leads_within_is_refused_and_its_address_is_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve(monkeypatch, "10.20.30.40")
    with pytest.raises(ServiceRefused, match=r"^hooks\.test leads to a private address") as told:
        await send("https://hooks.test/")
    assert "10.20" not in str(told.value)


async def test_a_name_that_answers_otherwise_the_second_time_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: what was looked at is what is connected to."""
    async with receiving("127.0.0.2") as meant, receiving("127.0.0.1") as within:
        within.url, asked = f"http://hooks.test:{meant.port}/", resolve(monkeypatch, "127.0.0.2", "127.0.0.1")
        assert await send(within.url, allow=("127.0.0.2",)) == 204
        assert asked == ["hooks.test"], "nobody asks twice"
        [one] = meant.deliveries
        assert one.headers["host"] == f"hooks.test:{meant.port}"
        with pytest.raises(ServiceRefused, match="loopback"):
            await send(within.url, allow=("127.0.0.2",))
        assert within.deliveries == []


async def test_of_several_addresses_those_within_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving("127.0.0.2") as meant:
        resolve(monkeypatch, ["127.0.0.1", "127.0.0.2"])
        assert await send(f"http://hooks.test:{meant.port}/", allow=("127.0.0.2",)) == 204


async def test_of_several_addresses_the_next_one_is_tried_where_nobody_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving("127.0.0.3") as meant:
        resolve(monkeypatch, ["127.0.0.2", "127.0.0.3"])
        assert await send(f"http://hooks.test:{meant.port}/", allow=("127.0.0.0/8",)) == 204
        assert len(meant.deliveries) == 1


async def test_a_host_may_be_allowed_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving() as receiver:
        resolve(monkeypatch, "127.0.0.1")
        assert await send(f"http://Hooks.test:{receiver.port}/", allow=("hooks.test",)) == 204
        with pytest.raises(ServiceRefused):
            await send(f"http://other.test:{receiver.port}/", allow=("hooks.test",))


async def test_a_name_that_leads_nowhere_is_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, socket.gaierror(socket.EAI_AGAIN, "try again"))
    with pytest.raises(ServiceUnavailable, match="no name that leads anywhere now"):
        await send("https://hooks.test/")


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Of hooks.test, by an authority that is trusted here."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl here")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    name = ("-subj", "/CN=hooks.test", "-addext", "subjectAltName=DNS:hooks.test")
    subprocess.run([openssl, *made, *name, "-keyout", key, "-out", cert], check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


async def test_the_certificate_is_to_be_the_names_though_the_address_is_connected_to(
    certificate: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve(monkeypatch, "127.0.0.1")
    async with receiving(tls=certificate) as receiver:
        assert await send(f"https://hooks.test:{receiver.port}/") == 204
        with pytest.raises(ServiceUnavailable, match=r"(?i)certificate"):
            await send(f"https://other.test:{receiver.port}/")
        assert len(receiver.deliveries) == 1


async def test_no_proxy_of_the_environment_comes_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with receiving() as receiver:
        assert await send(receiver.url) == 204
