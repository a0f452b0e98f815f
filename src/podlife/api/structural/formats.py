"""String formats that schemas may name, checked as kube-openapi checks them. Other formats mean nothing."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from email.utils import parseaddr
from functools import partial
from urllib.parse import urlsplit

from podlife.api.durations import parse_go_duration

_LONGEST = 4096
_HEX = "[0-9a-fA-F]"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_HOST_LABEL = re.compile(r"[^\W_](?:[^\W_]|-)*")
_SHORT_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SCALA_DURATION = re.compile(r"([0-9]+)\s*([A-Za-zµ]+)")
_UNITS = (
    "ns nano",
    "us µs micro",
    "ms milli",
    "s sec",
    "m min",
    "h hr hour",
    "d day",
    "w wk week",
)
_PLAIN: dict[str, str] = {
    "bsonobjectid": f"{_HEX}{{24}}",
    "mac": f"{_HEX}{{2}}(?:[:-]{_HEX}{{2}}){{5}}(?:(?:[:-]{_HEX}{{2}}){{2}})?|(?:{_HEX}{{4}}\\.){{2,3}}{_HEX}{{4}}",
    "uuid": f"{_HEX}{{8}}-?(?:{_HEX}{{4}}-?){{3}}{_HEX}{{12}}",
    "uuid3": f"{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}",
    "uuid4": f"{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}",
    "uuid5": f"{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}",
    "ssn": r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}",
    "hexcolor": f"#?(?:{_HEX}{{3}}|{_HEX}{{6}})",
    "rgbcolor": r"rgb\(\s*(?:0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])\s*"
    r"(?:,\s*(?:0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])\s*){2}\)",
    "byte": r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})",
}


def _matches(rule: re.Pattern[str], text: str) -> bool:
    return rule.fullmatch(text) is not None


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_date_time(text: str) -> bool:
    day, separator, clock = text.lower().partition("t")
    match = _CLOCK.fullmatch(clock)
    if not separator or match is None or not _is_date(day):
        return False
    return match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    if parse_go_duration(text) is not None:
        return True
    return any(
        unit.lower() in names.split() or unit.lower().startswith(names.split()[-1])
        for _, unit in _SCALA_DURATION.findall(text)
        for names in _UNITS
    )


def _is_ip(version: int) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            address = ipaddress.ip_address(_without_leading_zeros(text))
        except ValueError:
            return False
        # An IPv4 address written as IPv6 is both.
        return "%" not in text and (("." in text) if version == 4 else address.version == 6 or ":" in text)

    return check


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    try:
        ipaddress.ip_interface(f"{_without_leading_zeros(address)}/{bits}")
    except ValueError:
        return False
    return bool(slash) and bits.isascii() and bits.isdigit()


def _without_leading_zeros(address: str) -> str:
    return (
        ".".join(part.lstrip("0") or part[:1] for part in address.split("."))
        if ":" not in address
        else address
    )


def _is_uri(text: str) -> bool:
    """As Go's url.ParseRequestURI: an absolute URI or an absolute path."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme and text.isprintable() and " " not in text) or text.startswith("/")


def _is_email(text: str) -> bool:
    _, address = parseaddr(text)
    local, at, domain = address.rpartition("@")
    return bool(local and at and domain)


def _is_hostname(text: str) -> bool:
    labels = text.split(".")
    if len(text.encode()) > 255 or any(len(label.encode()) > 63 for label in labels):
        return False
    if not all(_HOST_LABEL.fullmatch(label) and not label.endswith("-") for label in labels):
        return False
    return len(labels) == 1 or (len(labels[-1]) > 1 and labels[-1].isalpha())


def _is_short_name(text: str) -> bool:
    return len(text) <= 63 and _SHORT_NAME.fullmatch(text) is not None


def _is_long_name(text: str) -> bool:
    return len(text) <= 253 and all(_SHORT_NAME.fullmatch(part) for part in text.split("."))


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{9}X|[0-9]{10}", digits):
        return False
    return sum((at + 1) * (10 if d == "X" else int(d)) for at, d in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum(int(d) * (3 if at % 2 else 1) for at, d in enumerate(digits)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    total = 0
    for at, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (1 + at % 2)
        total += doubled - 9 if doubled > 9 else doubled
    return 13 <= len(digits) <= 19 and total % 10 == 0


_CHECKS: dict[str, Callable[[str], bool]] = {
    **{name: partial(_matches, re.compile(rule)) for name, rule in _PLAIN.items()},
    "uri": _is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": _is_ip(4),
    "ipv6": _is_ip(6),
    "cidr": _is_cidr,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "password": lambda text: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_date_time,
    "k8sshortname": _is_short_name,
    "k8slongname": _is_long_name,
}


def is_checked_format(name: str, types: tuple[str, ...]) -> bool:
    """Whether values of a schema with this format and these types are checked for it."""
    match types:
        case () | ("string",):
            return name.replace("-", "") in _CHECKS
        case ("integer",):
            return name in ("int32", "int64")
        case ("number",):
            return name in ("float", "double")
    return False


def has_format(text: str, name: str) -> bool:
    check = _CHECKS.get(name.replace("-", ""))
    # None of the formats has long values, but encoded bytes and passwords.
    return check is None or ((len(text) <= _LONGEST or name in ("byte", "password")) and check(text))
