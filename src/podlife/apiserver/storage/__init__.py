"""Storage of the API server's objects: a revisioned log of changes and the resulting state."""

from podlife.apiserver.storage.records import (
    DISK_FULL,
    Batch,
    Change,
    CompactedError,
    Delete,
    Event,
    EventType,
    Key,
    MismatchError,
    Put,
    Record,
    StoreError,
    StoreFullError,
    StoreLostError,
)
from podlife.apiserver.storage.sqlite import SqliteStore
from podlife.apiserver.storage.store import HistoryLimits, MemoryStore, Store
from podlife.apiserver.storage.watch_cache import Subscription

__all__ = [
    "DISK_FULL",
    "Batch",
    "Change",
    "CompactedError",
    "Delete",
    "Event",
    "EventType",
    "HistoryLimits",
    "Key",
    "MemoryStore",
    "MismatchError",
    "Put",
    "Record",
    "SqliteStore",
    "Store",
    "StoreError",
    "StoreFullError",
    "StoreLostError",
    "Subscription",
]
