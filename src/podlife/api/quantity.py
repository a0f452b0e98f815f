"""Quantities: `100m`, `1.5Gi`, `2e3`.

A quantity is a whole number of nanos (more precise input is rounded away from zero, as upstream does) and the notation
it was written in. Nanos compare and add as plain integers. The canonical form of a quantity is the text that
kube-apiserver stores.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from podlife.memory import cache_values

NANOS = 10**9
"""Nanos in one."""

_PATTERN = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_split = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII).fullmatch

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent // 10: suffix for suffix, exponent in _BINARY.items()}
_EXPONENT = re.compile(r"[eE][-+]?[0-9]+").fullmatch
# Far above realistic values, and low enough that a hostile exponent is cheap.
_LARGEST_EXPONENT = 300
_LARGEST_BINARY = (2**63 - 1) * NANOS
# More digits than realistic values have; parsed texts are cached, so they must be short.
_LONGEST = 1000


class Quantity(NamedTuple):
    """`style` is `decimal`, `binary` or `exponent`."""

    nanos: int
    style: str

    def __str__(self) -> str:
        if not self.nanos:
            return "0"
        whole, rest = divmod(self.nanos, NANOS)
        if self.style == "binary" and not rest and abs(whole) >= 1024:
            return _binary_text(whole)
        mantissa, exponent = _in_thousands(self.nanos)
        if self.style == "exponent":
            return f"{mantissa}e{exponent}" if exponent else str(mantissa)
        return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"


def _binary_text(whole: int) -> str:
    power = 0
    while whole % 1024 == 0 and power < 6:
        whole //= 1024
        power += 1
    return f"{whole}{_BINARY_SUFFIX.get(power, '')}"


def _in_thousands(nanos: int) -> tuple[int, int]:
    exponent = -9
    while nanos % 1000 == 0 and exponent < 18:
        nanos //= 1000
        exponent += 3
    return nanos, exponent


def _interpret(suffix: str) -> tuple[str, int]:
    if suffix in _DECIMAL:
        return "decimal", _DECIMAL[suffix]
    if suffix in _BINARY:
        return "binary", _BINARY[suffix]
    if _EXPONENT(suffix) and abs(exponent := int(suffix[1:])) <= _LARGEST_EXPONENT:
        return "exponent", exponent if suffix[1] != "-" else -abs(exponent)
    raise ValueError("unable to parse quantity's suffix")


def _parse(text: str) -> tuple[Quantity, bool]:
    """The quantity, and whether its text is already canonical."""
    if len(text) > _LONGEST:
        raise ValueError("unable to parse numeric part of quantity")
    match = _split(text) if text else None
    if match is None:
        raise ValueError(f"quantities must match the regular expression '{_PATTERN}'")
    sign, number, fraction, suffix = match.groups(default="")
    style, exponent = _interpret(suffix)
    digits = int(number + fraction or "0")
    scale = (exponent if style != "binary" else 0) - len(fraction)
    amount = (digits << exponent) * NANOS if style == "binary" else digits * NANOS
    nanos = amount * 10**scale if scale >= 0 else -(-amount // 10**-scale)
    if style == "binary":
        nanos = min(nanos, _LARGEST_BINARY)
        canonical = not fraction and bool(digits & 7)
        if 0 < nanos < NANOS:
            style = "decimal"
    else:
        shifted = (number or "0") + fraction
        canonical = scale % 3 == 0 and scale >= -9 and not shifted.endswith("000") and shifted[0] != "0"
    return Quantity(-nanos if sign == "-" else nanos, style), canonical


@cache_values
def parse_quantity(text: str) -> Quantity:
    """Read a quantity; raises ValueError in upstream's words."""
    return _parse(text)[0]


@cache_values
def parse_nanos(text: str) -> int:
    """The amount alone; raises ValueError in upstream's words."""
    return _parse(text)[0].nanos


@cache_values
def canonical_quantity(text: str) -> str:
    """The text that kube-apiserver stores: `1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`.

    Like upstream, it keeps a few texts that are not the shortest (`1.234`)."""
    quantity, canonical = _parse(text)
    return text if canonical else str(quantity)
