"""What the tests of a durable store share: a store for a block, values, and access to its file."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from podlife.apiserver.storage import HistoryLimits, SqliteStore


@asynccontextmanager
async def opened(folder: Path, *, limits: HistoryLimits | None = None) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(folder, limits=limits)
    try:
        yield store
    finally:
        await store.close()


def value(content: str | int = "x") -> Callable[[int], bytes]:
    """An object that carries its own revision, with a text, or with one of this length."""
    text = content.encode() if isinstance(content, str) else b"v" * content
    return lambda revision: b'{"metadata":{"resourceVersion":"%d"},"x":"%s"}' % (revision, text)


def execute(store: Path, statement: str) -> Any:
    """The first value of the result, if there is one, of a statement on a data folder or a file."""
    with closing(sqlite3.connect(store / "store.db" if store.is_dir() else store)) as connection, connection:
        row = connection.execute(statement).fetchone()
    return row and row[0]
