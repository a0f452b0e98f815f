from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from podlife.apiserver.storage import SqliteStore
from podlife.apiserver.storage.database import Database
from podlife.apiserver.storage.records import Row


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def store(folder: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(folder)
    yield opened
    await opened.close()


class Gate:
    """Blocks writes to the disk while closed."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.opened.set()
        self.arrived = threading.Event()
        self.transactions: list[int] = []

    def shut(self) -> None:
        self.opened.clear()

    def open(self) -> None:
        self.opened.set()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    insert = Database.insert

    def gated(database: Database, rows: Sequence[Row]) -> None:
        gate.transactions.append(len(rows))
        gate.arrived.set()
        gate.opened.wait(timeout=60)
        insert(database, rows)

    monkeypatch.setattr(Database, "insert", gated)
    yield gate
    gate.open()
