"""Which addresses a webhook may go to. Pure: a name is resolved elsewhere, once, and what comes out is judged here.

Whoever may send a command may name a URL, and must not reach by it what only this machine or its network can reach.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

NAT64: Final = IPv6Network("64:ff9b::/96")
GLOBAL: Final = IPv6Network("2000::/3")
"""All of IPv6 that is given out to be reached from anywhere; whatever else looks global is not."""

SPECIAL: Final[tuple[tuple[str, Network], ...]] = (
    ("a cloud's metadata", IPv4Network("168.63.129.16/32")),
    ("a protocol's own", IPv4Network("192.0.0.0/24")),  # one cloud's metadata, too
    ("a relay's", IPv4Network("192.88.99.0/24")),
    ("an example's", IPv6Network("3fff::/20")),
)
"""What `ipaddress` takes for global."""


class Allowed(NamedTuple):
    """What is allowed by configuration, whatever it is: hosts by name, networks by address."""

    hosts: frozenset[str]
    networks: tuple[Network, ...]

    @classmethod
    def read(cls, entries: Iterable[str]) -> "Allowed":
        """Names, addresses and CIDRs."""
        hosts, networks = set[str](), list[Network]()
        for entry in entries:
            try:
                networks.append(ip_network(entry))
            except ValueError:
                hosts.add(entry.lower().rstrip("."))
        return cls(frozenset(hosts), tuple(networks))

    def has_host(self, host: str) -> bool:
        """Whether wherever this name leads is fine."""
        return host.lower().rstrip(".") in self.hosts

    def has(self, address: Address) -> bool:
        """Whether this address is in one of the networks, by itself or by what it leads to."""
        return any(one in network for network in self.networks for one in (address, led_to(address)))


def led_to(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for: mapped, by 6to4, or by NAT64; else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def refused(address: Address, allowed: Allowed) -> str | None:
    """Whose address it is, if no webhook may go there; None: it may."""
    return None if allowed.has(address) else whose(led_to(address))


def whose(address: Address) -> str | None:
    """Why an address cannot be reached from everywhere, in a word or two; None: it can."""
    for word, network in SPECIAL:
        if address in network:
            return word
    words = {
        "a loopback": address.is_loopback,
        "a link-local": address.is_link_local,
        "a multicast": address.is_multicast,
        "the unspecified": address.is_unspecified,
        "a private": address.is_private,
        "a reserved": not address.is_global or (isinstance(address, IPv6Address) and address not in GLOBAL),
    }
    return next((word for word, is_so in words.items() if is_so), None)


def address_of(text: str) -> Address:
    """As the resolver gives it."""
    return ip_address(text)
