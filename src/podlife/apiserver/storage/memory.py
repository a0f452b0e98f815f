"""Store that lives as long as its process: for tests, and for the whole system under virtual time.

It has no thread and waits for nothing: changes are applied when `commit` returns.
"""

from __future__ import annotations

from collections.abc import Sequence

from podlife.apiserver.storage.state import StoreState
from podlife.apiserver.storage.store import Change, Record


class MemoryStore(StoreState):
    async def commit(self, *changes: Change) -> Sequence[Record]:
        self.refuse_when_closed()
        events = self.prepare(changes, self.revision)
        if events:
            self.apply(events)
        return [event.record for event in events]

    async def close(self) -> None:
        self.end()
