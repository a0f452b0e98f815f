"""Lives that have ended, up to a number, a size and an age.

They are kept as JSON, which takes a third of the memory of their objects and is what a page is sent.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from podlife.ui.life import Life

MOST_ENDED, MOST_BYTES = 5_000, 32 << 20
_MOST_MS = 60 * 60 * 1000


@dataclass(slots=True)
class _Ended:
    to: int
    kind: type[Life]
    data: bytes


class EndedLives:
    def __init__(self) -> None:
        # In the order of their ends.
        self._kept: dict[str, _Ended] = {}
        self._bytes = 0

    def __contains__(self, uid: str) -> bool:
        return uid in self._kept

    @property
    def uids(self) -> list[str]:
        return list(self._kept)

    def put(self, life: Life) -> None:
        """Keep the life as it is now."""
        before = self._kept.get(life.uid)
        # A copy: an encoded object keeps the room that it was written into, up to half as much again.
        data = bytes(memoryview(msgspec.json.encode(life)))
        self._kept[life.uid] = _Ended(life.to or 0, type(life), data)
        self._bytes += len(data) - (0 if before is None else len(before.data))

    def get(self, uid: str) -> Life | None:
        """A copy."""
        found = self._kept.get(uid)
        return None if found is None else msgspec.json.decode(found.data, type=found.kind)

    def record(self, uid: str) -> msgspec.Raw | None:
        found = self._kept.get(uid)
        return None if found is None else msgspec.Raw(found.data)

    def forget_old(self, now: int) -> list[str]:
        """Drop what is too much or too old. The UIDs of what was dropped."""
        forgotten: list[str] = []
        for uid, each in self._kept.items():
            is_full = len(self._kept) - len(forgotten) > MOST_ENDED or self._bytes > MOST_BYTES
            if not is_full and now - each.to < _MOST_MS:
                break
            forgotten.append(uid)
            self._bytes -= len(each.data)
        for uid in forgotten:
            del self._kept[uid]
        return forgotten
