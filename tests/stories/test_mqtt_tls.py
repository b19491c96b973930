"""A broker over TLS: with a certificate that is trusted all goes as without, with another one nobody is told a word."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from backend_loop.devices.protocol import Command, DeviceUnreachable
from dualloop.doctor.broker import broker as findings
from shared.settings import Settings
from tests.mqtt import running_mosquitto
from tests.mqtt_lamp import devices_on, lamp_on, soon
from tests.waiting import eventually

LAMP = "light.kitchen_lamp"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of 127.0.0.1, by nobody but itself; and its key."""
    openssl = shutil.which("openssl")
    assert openssl is not None, "these tests want openssl, to make a certificate"
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    made = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    name = ("-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run([openssl, *made, *name, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


@pytest.fixture(scope="module")
def secure(certificate: tuple[Path, Path]) -> Iterator[str]:
    """URL of a broker that speaks TLS alone."""
    cert, key = map(str, certificate)
    with running_mosquitto(certfile=cert, keyfile=key) as broker:
        yield broker.url.replace("mqtt://", "mqtts://")


async def test_a_broker_whose_certificate_is_trusted_is_as_any_other(
    secure: str, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    async with lamp_on(secure) as lamp, devices_on(secure) as devices:
        before = await devices.observe(LAMP, deadline=soon(30))
        await devices.act(Command(entity=LAMP, action="turn_on"), key="k", fence=1, deadline=soon(30))
        after = await devices.observe(LAMP, deadline=soon(30))
    assert [reading.value["power"] for reading in (before, after)] == ["off", "on"]
    assert lamp.sets == [{"state": "ON"}]


async def test_one_that_is_not_trusted_hears_nothing_and_it_is_said_what_to_do(secure: str) -> None:
    async with devices_on(secure) as devices:
        await eventually(lambda: "not connected yet" not in devices._hub.trouble)
        with pytest.raises(DeviceUnreachable, match=r"certificate is not trusted \(self-signed.*SSL_CERT_FILE"):
            await devices.observe(LAMP, deadline=soon(1))


def test_the_doctor_says_so_too(secure: str) -> None:
    (finding,) = findings(Settings(_env_file=None, mqtt_url=SecretStr(secure)))
    assert "certificate is not trusted (self-signed" in finding.detail
