"""Doubles as Go prints them."""

from __future__ import annotations

import math
from decimal import Decimal


def double_text(value: float) -> str:
    """The shortest text that reads back, with an exponent below 1e-4 and from 1e6 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    if not text:
        return "-0" if sign else "0"
    power = len(digits) - 1 + int(exponent)
    prefix = "-" if sign else ""
    if not -4 <= power < 6:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        return f"{prefix}{text[0]}{fraction}e{'-' if power < 0 else '+'}{abs(power):02}"
    if power < 0:
        return f"{prefix}0.{'0' * (-power - 1)}{text}"
    whole, fraction = text[: power + 1].ljust(power + 1, "0"), text[power + 1 :]
    return f"{prefix}{whole}{f'.{fraction}' if fraction else ''}"
