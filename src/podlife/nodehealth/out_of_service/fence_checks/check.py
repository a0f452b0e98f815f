"""Interface of a fence check, and what it receives about the node. These values come from the node and are untrusted:
they are only passed as values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

_MOST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class FenceSubject:
    name: str
    uid: str
    provider_id: str = ""
    internal_ips: tuple[str, ...] = ()
    not_ready_seconds: float = 0.0

    @property
    def arguments(self) -> tuple[str, str, str, str]:
        return self.name, self.uid, self.provider_id, ",".join(self.internal_ips)

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "PODLIFE_NODE_NAME": self.name,
            "PODLIFE_NODE_UID": self.uid,
            "PODLIFE_NODE_PROVIDER_ID": self.provider_id,
            "PODLIFE_NODE_INTERNAL_IPS": ",".join(self.internal_ips),
        }


class FenceResult(StrEnum):
    """Result of one fence check. Only the first is a confirmation."""

    DEAD = "dead"
    NOT_DEAD = "not-dead"
    TIMEOUT = "timeout"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FenceAnswer:
    """`check` is the name for messages, `text` explains a result other than DEAD."""

    check: str
    result: FenceResult
    text: str = ""


@dataclass(frozen=True, slots=True)
class FenceVerdict:
    """Answers of all fence checks about a node, from one run; times are the event loop's."""

    answers: tuple[FenceAnswer, ...]
    asked_at: float
    came_at: float

    @property
    def confirming(self) -> int:
        return sum(each.result is FenceResult.DEAD for each in self.answers)

    def is_confirmed(self, require: int | None) -> bool:
        needed = len(self.answers) if require is None else require
        return bool(self.answers) and self.confirming >= max(1, needed)


class FenceCheck(Protocol):
    """`kind` is the metric label, `name` is for messages."""

    @property
    def kind(self) -> str: ...

    @property
    def name(self) -> str: ...

    async def ask(self, subject: FenceSubject) -> FenceAnswer:
        """Never raises except when cancelled; returns within its timeout."""


def shown(text: bytes | str) -> str:
    """The first line of untrusted output, printable and bounded."""
    whole = text.decode(errors="replace") if isinstance(text, bytes) else text
    line = next((each.strip() for each in whole.splitlines() if each.strip()), "")
    return "".join(letter if letter.isprintable() else "?" for letter in line[:_MOST_SHOWN])
