"""IP addresses and CIDRs of Kubernetes' CEL library, with the errors of Go's netip."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from podlife.api.cel.errors import EvaluationError
from podlife.api.cel.values import Meter

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class IP:
    address: _Address

    type_name: ClassVar[str] = "net.IP"
    has_unit_equality: ClassVar[bool] = True

    @property
    def cel_size(self) -> int:
        return self.address.max_prefixlen // 8

    def __str__(self) -> str:
        return str(self.address)


@dataclass(frozen=True, slots=True)
class CIDR:
    address: _Address
    bits: int

    type_name: ClassVar[str] = "net.CIDR"
    has_unit_equality: ClassVar[bool] = True

    @property
    def cel_size(self) -> int:
        return -(-self.bits // 8)

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network((self.address, self.bits), strict=False)

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


def _parse(text: str) -> _Address:
    """Raises ValueError with the text of Go's netip."""
    shown = f"ParseAddr({json.dumps(text, ensure_ascii=False)})"
    first = next((char for char in text[:_LONGEST] if char in ".:%"), "")
    if first in ("", "%"):
        raise ValueError(f"{shown}: {'missing IPv6 address' if first else 'unable to parse IP'}")
    try:
        return ipaddress.ip_address(text[:_LONGEST])
    except ValueError:
        reason = _ipv4_reason(text) if first == "." else _ipv6_reason(text)
        raise ValueError(f"{shown}: {reason}") from None


def _ipv4_reason(text: str) -> str:
    fields = text.split(".")
    for position, octet in enumerate(fields):
        if octet == "":
            return f'IPv4 field must have at least one digit (at "{".".join(fields[position:])}")'
        if not re.fullmatch(r"[0-9]+", octet, re.ASCII):
            bad = re.sub(r"^[0-9]*", "", ".".join(fields[position:]))
            return f'unexpected character (at "{bad}")'
        if len(octet) > 1 and octet[0] == "0":
            return "IPv4 field has octet with leading zero"
        if int(octet[:9]) > 255:
            return "IPv4 field has value >255"
        if position == 4:
            return "IPv4 address too long"
    return "IPv4 address too short" if len(fields) < 4 else "IPv4 address too long"


def _ipv6_reason(text: str) -> str:
    if (double := text.find("::")) >= 0 and (second := text.find("::", double + 2)) >= 0:
        return f'multiple :: in address (at "{text[second + 1 :]}")'
    for position, piece in enumerate(pieces := text.split(":")):
        if piece and not re.match(r"[0-9a-fA-F]", piece):
            rest = ":".join(pieces[position:])
            return f'each colon-separated field must have at least one digit (at "{rest}")'
        if len(piece) > 4 and "." not in piece:
            return f'each group must have 4 or less digits (at "{":".join(pieces[position:])}")'
    return "address string too short" if text.count(":") < 7 else "trailing garbage after address"


def _checked(text: str) -> _Address:
    try:
        address = _parse(text)
    except ValueError as error:
        quoted = json.dumps(text, ensure_ascii=False)
        raise EvaluationError(
            f"IP Address {quoted} parse error during conversion from string: {error}"
        ) from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
        if address.ipv4_mapped is not None:
            raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return address


def _cidr(_meter: Meter, text: str) -> CIDR:
    prefix = "network address parse error during conversion from string"
    shown = f"{prefix}: {prefix}: netip.ParsePrefix({json.dumps(text, ensure_ascii=False)})"
    before, slash, bits = text.rpartition("/")
    if not slash:
        raise EvaluationError(f"{shown}: no '/'")
    try:
        address = _parse(before)
    except ValueError as error:
        raise EvaluationError(f"{shown}: {error}") from None
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        raise EvaluationError(f"{shown}: IPv6 zones cannot be present in a prefix")
    if not re.fullmatch(r"0|[1-9][0-9]*", bits, re.ASCII) or len(bits) > 9:
        raise EvaluationError(f'{shown}: bad bits after slash: "{bits}"')
    if int(bits) > address.max_prefixlen:
        raise EvaluationError(f"{shown}: prefix length out of range")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f'{prefix}: IPv4-mapped IPv6 address "{text}" is not allowed')
    return CIDR(address, int(bits))


def _ip(_meter: Meter, value: Any) -> IP:
    return IP(value.address) if isinstance(value, CIDR) else IP(_checked(value))


def _succeeds(parse: Callable[..., Any]) -> Callable[..., bool]:
    def function(meter: Meter, text: str) -> bool:
        try:
            parse(meter, text)
        except EvaluationError:
            return False
        return True

    return function


def _contains_ip(meter: Meter, cidr: CIDR, other: Any) -> bool:
    try:
        inner = _ip(meter, other) if isinstance(other, str) else other
    except EvaluationError:
        raise EvaluationError("no such overload") from None
    return inner.address in cidr.network


def _contains_cidr(meter: Meter, cidr: CIDR, other: Any) -> bool:
    inner = _cidr(meter, other) if isinstance(other, str) else other
    return inner.address in cidr.network and inner.bits >= cidr.bits


def _is_global_unicast(_meter: Meter, ip: IP) -> bool:
    address = ip.address
    is_broadcast = str(address) == "255.255.255.255"
    return not (
        is_broadcast
        or address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )


def _is_link_local_multicast(_meter: Meter, ip: IP) -> bool:
    if isinstance(ip.address, ipaddress.IPv4Address):
        return ip.address in ipaddress.IPv4Network("224.0.0.0/24")
    return ip.address.packed[0] == 0xFF and ip.address.packed[1] & 0x0F == 2


NETWORKS: dict[str, Callable[..., Any]] = {
    "ip": _ip,
    "isIP": _succeeds(_ip),
    "ip.isCanonical": lambda _meter, text: str(_checked(text)) == text,
    "family": lambda _meter, ip: ip.address.version,
    "isUnspecified": lambda _meter, ip: ip.address.is_unspecified,
    "isLoopback": lambda _meter, ip: ip.address.is_loopback,
    "isLinkLocalMulticast": _is_link_local_multicast,
    "isLinkLocalUnicast": lambda _meter, ip: ip.address.is_link_local,
    "isGlobalUnicast": _is_global_unicast,
    "cidr": _cidr,
    "isCIDR": _succeeds(_cidr),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "masked": lambda _meter, cidr: CIDR(cidr.network.network_address, cidr.bits),
    "prefixLength": lambda _meter, cidr: cidr.bits,
}
