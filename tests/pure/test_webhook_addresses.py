"""Which addresses a webhook may go to: none that only this machine or its network can reach, however it is written."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from backend_loop.webhooks.addresses import Allowed, address_of, led_to, refused

NOBODY = Allowed.read(())


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1",
        "127.255.255.254",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",  # metadata
        "168.63.129.16",  # metadata
        "100.100.100.200",  # metadata
        "192.0.0.192",  # metadata
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104  an address to be refused
        "0.1.2.3",
        "192.0.2.1",
        "198.18.0.1",
        "198.51.100.7",
        "203.0.113.7",
        "192.88.99.1",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%2",
        "fc00::1",
        "fd00:ec2::254",  # metadata
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "3fff::1",
        "2001::1",
        "100::1",
        "5f00::1",
        "::127.0.0.1",
        "::8.8.8.8",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::127.0.0.1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
    ],
)
def test_what_lies_within_is_refused(text: str) -> None:
    assert refused(address_of(text), NOBODY) is not None


@pytest.mark.parametrize(
    "text",
    [
        "1.1.1.1",
        "93.184.216.34",
        "172.32.0.1",
        "100.128.0.1",
        "169.253.0.1",
        "2606:4700:4700::1111",
        "2a00:1450:4001::1",
        "::ffff:1.1.1.1",
        "64:ff9b::1.1.1.1",
        "2002:101:101::1",
    ],
)
def test_what_all_can_reach_is_not(text: str) -> None:
    assert refused(address_of(text), NOBODY) is None


def test_it_is_said_whose_it_is() -> None:
    words = {text: refused(address_of(text), NOBODY) for text in ("127.0.0.1", "::ffff:10.0.0.1", "169.254.1.1")}
    assert words == {"127.0.0.1": "a loopback", "::ffff:10.0.0.1": "a private", "169.254.1.1": "a link-local"}


@given(some.ip_addresses(v=4))
def test_an_address_that_stands_for_another_is_judged_like_it(address: object) -> None:
    four = address_of(str(address))
    mapped, nat64 = address_of(f"::ffff:{four}"), address_of(f"64:ff9b::{four}")
    six_to_four = address_of(f"2002:{int(four) >> 16:x}:{int(four) & 0xFFFF:x}::1")
    assert {led_to(one) for one in (mapped, nat64, six_to_four)} == {four}
    assert {refused(one, NOBODY) for one in (mapped, nat64, six_to_four)} == {refused(four, NOBODY)}


def test_configuration_allows_networks_addresses_and_hosts() -> None:
    allowed = Allowed.read(("10.1.0.0/16", "127.0.0.1", "fd00::/8", "Hooks.Internal", "old.example."))
    inside = ["10.1.2.3", "127.0.0.1", "fd12::1", "::ffff:10.1.2.3"]
    outside = ["10.2.0.1", "127.0.0.2", "fe80::1", "::1"]
    assert [refused(address_of(text), allowed) for text in inside] == [None] * len(inside)
    assert all(refused(address_of(text), allowed) for text in outside)
    assert allowed.has_host("hooks.internal")
    assert allowed.has_host("OLD.example")
    assert not allowed.has_host("evil.hooks.internal")
