"""Checks that many validators share, and the difference of two objects as errors show it.

Messages are built only for errors. Where every pod passes, callers test first and build the path afterwards.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any

from podlife.api.codec import Object
from podlife.api.excerpt import excerpt_json
from podlife.api.field_errors import FieldError, bad_value, duplicate, not_supported, required, too_long
from podlife.api.names import check_dns_subdomain
from podlife.api.patch import go_format
from podlife.memory import cache_values

PROTOCOLS = ("SCTP", "TCP", "UDP")
PORT_RANGE = "must be between 1 and 65535, inclusive"
IP_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
# Of all expressions in one object: compiling the worst of them takes 2 seconds.
MOST_EXPRESSION_BYTES = 64 * 1024
_EXPRESSIONS = frozenset({"expression", "messageExpression", "rule", "valueExpression"})
_LARGEST_INT32 = 2**31 - 1
_LONGEST_IP = 64
_LONGEST_DRIVER = 63
# Of a difference that an error shows.
_MOST_LINES = 20
_LONGEST_VALUE = 300


def bounded_expressions(path: str, value: Any) -> list[FieldError]:
    """The expressions in a value are short enough to be compiled."""
    is_too_long = _expression_bytes(value) > MOST_EXPRESSION_BYTES
    return [too_long(path, MOST_EXPRESSION_BYTES)] if is_too_long else []


def _expression_bytes(value: Any) -> int:
    total, pending = 0, [value]
    while pending:
        here = pending.pop()
        if isinstance(here, dict):
            for key, each in here.items():
                if isinstance(each, str):
                    total += len(each.encode(errors="surrogatepass")) if key in _EXPRESSIONS else 0
                else:
                    pending.append(each)
        elif isinstance(here, list):
            pending += here
    return total


def one_of(path: str, value: str | None, choices: Collection[str]) -> list[FieldError]:
    """A choice that may be absent (None), but not empty."""
    return [] if value is None or value in choices else [not_supported(path, value, choices)]


def required_choice(path: str, value: str, choices: Collection[str]) -> list[FieldError]:
    return one_of(path, value, choices) if value else [required(path)]


def check_at(path: str, value: str, check: Callable[[str], list[str]]) -> list[FieldError]:
    return [bad_value(path, value, problem) for problem in check(value)]


def require_at(path: str, value: str, check: Callable[[str], list[str]]) -> list[FieldError]:
    return check_at(path, value, check) if value else [required(path)]


def non_negative(path: str, value: int | None) -> list[FieldError]:
    return (
        [] if value is None or value >= 0 else [bad_value(path, value, "must be greater than or equal to 0")]
    )


def positive(path: str, value: int) -> list[FieldError]:
    return [] if value > 0 else [bad_value(path, value, "must be greater than zero")]


def at_most_int32(path: str, value: int | None, *, least: int = 0) -> list[FieldError]:
    if value is None or least <= value <= _LARGEST_INT32:
        return []
    return [bad_value(path, value, f"must be between {least} and {_LARGEST_INT32}, inclusive")]


def port_number(path: str, port: int) -> list[FieldError]:
    return [] if 1 <= port <= 65535 else [bad_value(path, port, PORT_RANGE)]


def driver_name(path: str, name: str) -> list[FieldError]:
    """The name of a driver, of volumes or of devices."""
    if not name:
        return [required(path)]
    errors = [too_long(path, _LONGEST_DRIVER)] if len(name.encode()) > _LONGEST_DRIVER else []
    return errors + [bad_value(path, name, problem) for problem in check_dns_subdomain(name.lower())]


def unique(path: str, value: Hashable, seen: set[Any]) -> list[FieldError]:
    """A value that was not seen before; it is seen from now on."""
    errors = [duplicate(path, value)] if value in seen else []
    seen.add(value)
    return errors


def immutable(path: str, new: Any, old: Any) -> list[FieldError]:
    return [] if new == old else [bad_value(path, new, "field is immutable")]


def check_backsteps(target: str) -> list[str]:
    """A path without `..` among its parts."""
    return ["must not contain '..'"] if ".." in target and ".." in target.split("/") else []


def check_ip(text: str) -> list[str]:
    return [] if is_ip(text) else [IP_RULE]


def is_ip(text: str) -> bool:
    # Long texts are neither parsed nor cached.
    return len(text) <= _LONGEST_IP and _is_ip(text)


@cache_values
def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def check_canonical_ip(name: str, *, prefix: bool = False) -> list[str]:
    """The name of an object that is an address, as Go writes it."""
    if not is_ip(name):
        return [IP_RULE]
    address = ipaddress.ip_address(name)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return ["must not be an IPv4-mapped IPv6 address"]
    return [] if name == str(address) else [f'must be in canonical form ("{address}")']


Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface


def parse_cidr(text: str) -> Interface | None:
    """An address and the length of its prefix, in which Go forgives leading zeros."""
    address, slash, bits = text.partition("/")
    if ":" not in address:
        address = ".".join(part.lstrip("0") or part[:1] for part in address.split("."))
    is_plain = bits.isascii() and bits.isdigit() and "%" not in text
    if len(text) > _LONGEST_IP + 4 or not slash or not is_plain:
        return None
    try:
        return ipaddress.ip_interface(f"{address}/{int(bits)}")
    except ValueError:
        return None


def cidr_problem(text: str) -> tuple[Network | None, str]:
    """The network, if it can be parsed at all, and what is wrong with it."""
    interface = parse_cidr(text)
    if interface is None:
        return None, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
    address, _, bits = text.partition("/")
    has_zeros = interface.version == 4 and address != str(interface.ip)
    if has_zeros or bits != str(int(bits)):
        return interface.network, "must not have leading 0s in IP or prefix length"
    if isinstance(interface, ipaddress.IPv6Interface) and interface.ip.ipv4_mapped is not None:
        return interface.network, "must not have an IPv4-mapped IPv6 address"
    is_network = interface.ip == interface.network.network_address
    return interface.network, "" if is_network else "must not have bits set beyond the prefix length"


def containers_of(spec: Object, path: str) -> Iterator[tuple[Object, str]]:
    """Every container of a pod's spec, with its path."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field, ())):
            yield container, f"{path}.{field}[{index}]"


def show_times(status: Object, *fields: str) -> None:
    """Times in conditions that upstream shows even if they are not set."""
    for condition in status.get("conditions", ()):
        for field in fields:
            condition.setdefault(field, None)


def accessed(obj: Object, path: str, wanted: type) -> tuple[Any, str]:
    """The value at a path in dot notation, and what is wrong with the way to it, in Go's words."""
    found: Any = obj
    for name in path.removeprefix(".").split("."):
        if found is None:
            return None, ""
        if not isinstance(found, dict):
            return None, _no_access(path, found, "map[string]interface{}")
        if name not in found:
            return None, ""
        found = found[name]
    if type(found) is not wanted:
        return None, _no_access(path, found, "int64" if wanted is int else "string")
    return found, ""


def _no_access(path: str, found: Any, wanted: str) -> str:
    return f"{path} accessor error: {go_format(found)} is of the type {_go_type(found)}, expected {wanted}"


def _go_type(value: Any) -> str:
    names = {bool: "bool", str: "string", int: "int64", float: "float64", list: "[]interface {}"}
    return names.get(type(value), "map[string]interface {}")


def describe_difference(old: Any, new: Any, path: str = "") -> str:
    """One line per changed value, `path: old -> new`, cut after a screenful."""
    lines: list[str] = []
    for line in _walk(old, new, path):
        if len(lines) == _MOST_LINES:
            lines.append("...")
            break
        lines.append(line)
    return "".join(f"{line}\n" for line in lines)


def _walk(old: Any, new: Any, path: str) -> Iterator[str]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _walk(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _walk(before, after, f"{path}[{index}]")
    else:
        yield f"{path}: {excerpt_json(old, _LONGEST_VALUE)} -> {excerpt_json(new, _LONGEST_VALUE)}"
