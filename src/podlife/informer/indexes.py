"""Indexes of a cache: objects by the values that indexers return, updated at a cost proportional to the change.

An indexer is a pure function of the object: it is called again with the old object when that is replaced, so nothing
else is stored. Values without objects are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")

Key = tuple[str, str]
"""Namespace and name; the namespace is empty for cluster-scoped objects."""

Indexer = Callable[[T], Iterable[str]]

_NONE: frozenset[str] = frozenset()


class Indexes(Generic[T]):
    def __init__(self, indexers: Mapping[str, Indexer[T]]) -> None:
        self._indexers = dict(indexers)
        # Dictionaries instead of sets: their order makes runs reproducible.
        self._buckets: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in indexers}

    def keys(self, index: str, value: str) -> Iterable[Key]:
        """Raises KeyError for an unknown index."""
        return self._buckets[index].get(value, ())

    def replace(self, key: Key, old: T | None, new: T | None) -> None:
        changes = [
            (self._buckets[name], _values(indexer, old), _values(indexer, new))
            for name, indexer in self._indexers.items()
        ]
        # After all indexers ran, so that a failing one leaves all indexes unchanged.
        for buckets, before, after in changes:
            if before != after:
                _move(buckets, key, before - after, after - before)


def _values(indexer: Indexer[T], obj: T | None) -> frozenset[str]:
    return _NONE if obj is None else frozenset(indexer(obj))


def _move(
    buckets: dict[str, dict[Key, None]], key: Key, left: frozenset[str], entered: frozenset[str]
) -> None:
    for value in left:
        bucket = buckets[value]
        del bucket[key]
        if not bucket:
            del buckets[value]
    for value in entered:
        buckets.setdefault(value, {})[key] = None
