"""Sets of completion indexes in the notation of a Job's status: `1,3-5,7`. Pure; cost is proportional to the ranges."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_RANGE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?")


@dataclass(frozen=True, slots=True)
class IndexRanges:
    """First and last index of each range, sorted, with gaps between them."""

    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, indexes: Iterable[int]) -> IndexRanges:
        return cls(tuple(_joined((index, index) for index in sorted(set(indexes)))))

    @classmethod
    def parse(cls, text: str, count: int) -> IndexRanges:
        """Leaves out indexes of `count` and above, as after a Job was scaled down, and invalid ranges."""
        found = []
        for part in text.split(","):
            match = _RANGE.fullmatch(part)
            if match is None:
                continue
            first, last = int(match[1]), int(match[2] or match[1])
            if first < count:
                found.append((first, min(last, count - 1)))
        return cls(tuple(_joined(found)))

    def __or__(self, other: IndexRanges) -> IndexRanges:
        return IndexRanges(tuple(_joined(sorted((*self.ranges, *other.ranges)))))

    def __contains__(self, index: int) -> bool:
        at = bisect_left(self.ranges, index, key=lambda each: each[1])
        return at < len(self.ranges) and self.ranges[at][0] <= index

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __str__(self) -> str:
        return ",".join(_shown(first, last) for first, last in self.ranges)

    def overlap(self, other: IndexRanges) -> int:
        """Number of indexes in both."""
        mine, theirs, both = 0, 0, 0
        while mine < len(self.ranges) and theirs < len(other.ranges):
            (first, last), (other_first, other_last) = self.ranges[mine], other.ranges[theirs]
            both += max(0, min(last, other_last) - max(first, other_first) + 1)
            if last <= other_last:
                mine += 1
            if other_last <= last:
                theirs += 1
        return both

    def missing_below(self, count: int) -> Iterator[int]:
        """The indexes below `count` that are missing, in order."""
        candidate = 0
        for first, last in self.ranges:
            yield from range(candidate, min(first, count))
            candidate = max(candidate, last + 1)
        yield from range(candidate, count)


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join adjacent and overlapping ranges, which are sorted by start."""
    result: list[tuple[int, int]] = []
    for first, last in ranges:
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], last))
        else:
            result.append((first, last))
    return result


def _shown(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
