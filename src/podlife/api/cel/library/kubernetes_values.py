"""Quantities, semantic versions and URLs of Kubernetes' CEL library."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, ClassVar

from podlife.api.cel.errors import EvaluationError
from podlife.api.cel.values import Meter
from podlife.api.quantity import NANOS, parse_nanos


@dataclass(frozen=True, slots=True, order=True)
class QuantityValue:
    nanos: int

    type_name: ClassVar[str] = "kubernetes.Quantity"
    has_unit_equality: ClassVar[bool] = True


def _quantity(_meter: Meter, text: str) -> QuantityValue:
    try:
        return QuantityValue(parse_nanos(text))
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _as_integer(_meter: Meter, quantity: QuantityValue) -> int:
    whole, rest = divmod(quantity.nanos, NANOS)
    if rest or not -(2**63) <= whole < 2**63:
        raise EvaluationError("cannot convert value to integer")
    return whole


def _is_integer(meter: Meter, quantity: QuantityValue) -> bool:
    try:
        _as_integer(meter, quantity)
    except EvaluationError:
        return False
    return True


def _nanos(value: QuantityValue | int) -> int:
    return value.nanos if isinstance(value, QuantityValue) else value * NANOS


def _compare(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class SemverValue:
    numbers: tuple[int, int, int]
    prerelease: tuple[int | str, ...]

    type_name: ClassVar[str] = "kubernetes.Semver"
    has_unit_equality: ClassVar[bool] = True

    @property
    def _rank(self) -> tuple[Any, ...]:
        # A release follows its prereleases; numbers precede words.
        parts = tuple((isinstance(part, str), part) for part in self.prerelease)
        return self.numbers, not self.prerelease, parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SemverValue) and self._rank == other._rank

    def __lt__(self, other: SemverValue) -> bool:
        return self._rank < other._rank

    def __hash__(self) -> int:
        return hash(self._rank)


def _semver(_meter: Meter, text: str, normalize: bool = False) -> SemverValue:
    if normalize:
        text = _normalized(text)
    if not text:
        raise EvaluationError("Version string empty")
    pieces = text.split(".", 2)
    if len(pieces) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    core, plus, build = pieces[2].partition("+")
    patch, dash, prerelease = core.partition("-")
    numbers = [
        _version_number(piece, name)
        for piece, name in ((pieces[0], "major"), (pieces[1], "minor"), (patch, "patch"))
    ]
    parsed = tuple(_prerelease(part) for part in prerelease.split(".")) if dash else ()
    for part in build.split(".") if plus else ():
        if not part:
            raise EvaluationError("Build meta data is empty")
        if not re.fullmatch(r"[0-9A-Za-z-]+", part, re.ASCII):
            raise EvaluationError(f"Invalid character(s) found in build meta data {json.dumps(part)}")
    return SemverValue((numbers[0], numbers[1], numbers[2]), parsed)


def _version_number(text: str, name: str) -> int:
    if not re.fullmatch(r"[0-9]*", text, re.ASCII):
        raise EvaluationError(f"Invalid character(s) found in {name} number {json.dumps(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{name.title()} number must not contain leading zeroes {json.dumps(text)}")
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) >= 2**64:
        raise EvaluationError(f"strconv.ParseUint: parsing {json.dumps(text)}: value out of range")
    return int(text)


def _prerelease(part: str) -> int | str:
    if not part:
        raise EvaluationError("Prerelease is empty")
    if re.fullmatch(r"[0-9]+", part, re.ASCII):
        if len(part) > 1 and part[0] == "0":
            raise EvaluationError(
                f"Numeric PreRelease version must not contain leading zeroes {json.dumps(part)}"
            )
        return _version_number(part, "prerelease")
    if not re.fullmatch(r"[0-9A-Za-z-]+", part, re.ASCII):
        raise EvaluationError(f"Invalid character(s) found in prerelease {json.dumps(part)}")
    return part


def _normalized(text: str) -> str:
    pieces = text.removeprefix("v").split(".", 2)
    for index, piece in enumerate(pieces):
        if len(piece) > 1:
            stripped = piece.lstrip("0")
            pieces[index] = stripped if stripped[:1].isdigit() else f"0{stripped}"
    if len(pieces) < 3:
        if any(sign in pieces[-1] for sign in "+-"):
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        pieces += ["0"] * (3 - len(pieces))
    return ".".join(pieces)


@dataclass(frozen=True, slots=True)
class URLValue:
    scheme: str
    host: str
    path: str
    query: str

    type_name: ClassVar[str] = "kubernetes.URL"
    has_unit_equality: ClassVar[bool] = True


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(.*)", re.DOTALL | re.ASCII).fullmatch
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_BAD_HOST = re.compile(r"[\x00-\x20\"<>\\^`{|}\x7f]")


def parse_url(text: str) -> URLValue:
    """An absolute URL or path, as Go's ParseRequestURI takes it. Raises ValueError with its text."""
    quoted = f"parse {json.dumps(text, ensure_ascii=False)}"
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError(f"{quoted}: net/url: invalid control character in URL")
    if not text:
        raise ValueError(f"{quoted}: empty url")
    scheme, rest = "", text
    if match := _SCHEME(text):
        scheme, rest = match[1].lower(), match[2]
    elif text[0] == ":":
        raise ValueError(f"{quoted}: missing protocol scheme")
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if not scheme:
            raise ValueError(f"{quoted}: invalid URI for request")
        return URLValue(scheme, "", "", query)
    host = ""
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        host = authority.rpartition("@")[2]
        _check_host(host, quoted)
    if bad := _BAD_ESCAPE.search(rest):
        raise ValueError(f"{quoted}: invalid URL escape {json.dumps(bad[0])}")
    return URLValue(scheme, host, rest, query)


def _check_host(host: str, quoted: str) -> None:
    if host.startswith("[") and "]" not in host:
        raise ValueError(f"{quoted}: missing ']' in host")
    port = host.rpartition("]")[2] if host.startswith("[") else host[host.rfind(":") :] if ":" in host else ""
    if port and not re.fullmatch(r":[0-9]*", port, re.ASCII):
        raise ValueError(f'{quoted}: invalid port "{port}" after host')
    if bad := _BAD_HOST.search(host):
        raise ValueError(f"{quoted}: invalid character {json.dumps(bad[0])} in host name")


def _url(_meter: Meter, text: str) -> URLValue:
    try:
        return parse_url(text)
    except ValueError as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None


def _is_url(_meter: Meter, text: str) -> bool:
    try:
        parse_url(text)
    except ValueError:
        return False
    return True


def _host_and_port(host: str) -> tuple[str, str]:
    match = re.fullmatch(r"(\[[^\]]*\]|[^:]*|.*?)(?::([0-9]*))?", host, re.DOTALL)
    name, port = (match[1], match[2] or "") if match else (host, "")
    return name.strip("[]") if name.startswith("[") else name, port


def _query(_meter: Meter, url: URLValue) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        key, _, value = pair.partition("=")
        if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
            continue
        found.setdefault(urllib.parse.unquote_plus(key), []).append(urllib.parse.unquote_plus(value))
    return found


KUBERNETES: dict[str, Callable[..., Any]] = {
    "quantity": _quantity,
    "isQuantity": lambda meter, text: _is_valid(_quantity, meter, text),
    "sign": lambda _meter, quantity: _compare(quantity.nanos, 0),
    "asInteger": _as_integer,
    "isInteger": _is_integer,
    "asApproximateFloat": lambda _meter, quantity: quantity.nanos / NANOS,
    "add": lambda _meter, one, other: QuantityValue(one.nanos + _nanos(other)),
    "sub": lambda _meter, one, other: QuantityValue(one.nanos - _nanos(other)),
    "isGreaterThan": lambda _meter, one, other: one > other,
    "isLessThan": lambda _meter, one, other: one < other,
    "compareTo": lambda _meter, one, other: _compare(one, other),
    "semver": _semver,
    "isSemver": lambda meter, *args: _is_valid(_semver, meter, *args),
    "major": lambda _meter, version: version.numbers[0],
    "minor": lambda _meter, version: version.numbers[1],
    "patch": lambda _meter, version: version.numbers[2],
    "url": _url,
    "isURL": _is_url,
    "getScheme": lambda _meter, url: url.scheme,
    "getHost": lambda _meter, url: url.host,
    "getHostname": lambda _meter, url: _host_and_port(url.host)[0],
    "getPort": lambda _meter, url: _host_and_port(url.host)[1],
    "getEscapedPath": lambda _meter, url: urllib.parse.quote(url.path, safe="/%:@&=+$,;~!*'()[]-_."),
    "getQuery": _query,
}


def _is_valid(parse: Callable[..., Any], meter: Meter, *args: Any) -> bool:
    try:
        parse(meter, *args)
    except EvaluationError:
        return False
    return True
