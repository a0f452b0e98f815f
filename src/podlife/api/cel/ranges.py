"""Ranges of sizes and costs, which stop at the largest uint64."""

from __future__ import annotations

import math
from typing import NamedTuple

_LARGEST = 2**64 - 1


class Range(NamedTuple):
    least: int
    most: int

    def __add__(self, other: Range) -> Range:  # type: ignore[override]
        return Range(min(self.least + other.least, _LARGEST), min(self.most + other.most, _LARGEST))

    def times(self, other: Range) -> Range:
        return Range(min(self.least * other.least, _LARGEST), min(self.most * other.most, _LARGEST))

    def scaled(self, factor: float) -> Range:
        return Range(_scaled(self.least, factor), _scaled(self.most, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))


def _scaled(value: int, factor: float) -> int:
    product = float(value) * factor
    if product >= 2.0**64:
        return _LARGEST
    return min(math.ceil(product), _LARGEST)


def fixed(value: int) -> Range:
    return Range(value, value)


FREE = fixed(0)
UNKNOWN = Range(0, _LARGEST)
