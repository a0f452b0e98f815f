"""Static pods with the same full name: one runs at a time, and they start in the order of arrival.

A static pod whose manifest changes is another pod with the same name; it waits until its predecessor has ended. A freed
name starts no pod: the first in the queue is admitted at its next attempt (PW-134).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence


class StaticAdmission(enum.Enum):
    NOW = "now"
    LATER = "later"
    NEVER = "never"


NOW, LATER, NEVER = StaticAdmission


class StaticNames:
    def __init__(self) -> None:
        self._holders: dict[str, str] = {}
        self._waiting: dict[str, list[str]] = {}
        # The name of each pod that holds one or is queued for one.
        self._names: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._names)

    def holder(self, name: str) -> str | None:
        return self._holders.get(name)

    def waiting(self, name: str) -> Sequence[str]:
        return tuple(self._waiting.get(name, ()))

    def enqueue(self, name: str, uid: str) -> None:
        self._waiting.setdefault(name, []).append(uid)
        self._names[uid] = name

    def admit(self, name: str, uid: str, is_alive: Callable[[str], bool]) -> StaticAdmission:
        """Whether the pod may start; if so it gets the name. `is_alive`: the UID is known and not terminating."""
        if not is_alive(uid):
            return NEVER
        holder = self._holders.get(name)
        if holder is not None:
            return NOW if holder == uid else LATER
        queue = self._waiting.pop(name, [])
        position = next((position for position, each in enumerate(queue) if is_alive(each)), len(queue))
        if position < len(queue) and queue[position] != uid:
            self._waiting[name] = queue[position:]
            return LATER
        if rest := queue[position + 1 :]:
            self._waiting[name] = rest
        self._holders[name] = uid
        self._names[uid] = name
        return NOW

    def release(self, uid: str) -> None:
        """Free the name of a pod that has ended. `admit` skips its queue entry (PW-133)."""
        name = self._names.get(uid)
        if name is not None and self._holders.get(name) == uid:
            del self._holders[name]

    def forget(self, uid: str) -> None:
        self.release(uid)
        name = self._names.pop(uid, None)
        if name is None or name not in self._waiting:
            return
        if rest := [each for each in self._waiting[name] if each != uid]:
            self._waiting[name] = rest
        else:
            del self._waiting[name]
