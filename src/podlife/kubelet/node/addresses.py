"""The addresses that a node tells others to find it at."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import ip_address

from podlife.errors import ConfigError

__all__ = ["check_addresses", "find_addresses"]

# Addresses that are nobody's, by family: which way a packet to them would take is all that is asked.
_SOMEWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))


def find_addresses() -> tuple[str, ...]:
    """The one that this machine has on its way to others; loopback where there is no way. Nothing is sent."""
    for family, address in _SOMEWHERE:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((address, 9))
                return (str(probe.getsockname()[0]),)
        except OSError:
            continue
    return ("127.0.0.1",)


def check_addresses(texts: Sequence[str]) -> tuple[str, ...]:
    """Addresses that a user gave, one of each family at most. Raises `ConfigError`."""
    found: dict[int, str] = {}
    for text in texts:
        try:
            address = ip_address(text.strip())
        except ValueError:
            raise ConfigError(f"{text!r} is no IP address: give one like 192.0.2.1") from None
        if address.is_unspecified or address.is_multicast:
            raise ConfigError(f"{text} is nobody's own address: give one that this machine has")
        if address.version in found:
            said = f"{found[address.version]} and {text}"
            raise ConfigError(f"a node has one address of each family, not both {said}: leave one out")
        found[address.version] = str(address)
    return tuple(found.values())
