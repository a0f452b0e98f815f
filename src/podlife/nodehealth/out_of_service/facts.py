"""Input of a decision about a node: frozen values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from podlife.nodehealth.out_of_service.record import TaintRecord, Whose


class FenceResult(StrEnum):
    """What became of one fence check. Only the first is a confirmation."""

    DEAD = "dead"
    NOT_DEAD = "not-dead"
    TIMEOUT = "timeout"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FenceAnswer:
    """`check` names it to people, `text` says why not."""

    check: str
    result: FenceResult
    text: str = ""


@dataclass(frozen=True, slots=True)
class FenceVerdict:
    """What all fence checks have said of a node, in one go; times are the loop's."""

    answers: tuple[FenceAnswer, ...]
    asked_at: float
    came_at: float

    @property
    def confirming(self) -> int:
        return sum(each.result is FenceResult.DEAD for each in self.answers)

    def is_confirmed(self, require: int | None) -> bool:
        needed = len(self.answers) if require is None else require
        return bool(self.answers) and self.confirming >= max(1, needed)


@dataclass(frozen=True, slots=True)
class NodeContents:
    """What the taint would free, or has not freed yet."""

    pods: int = 0
    attachments: int = 0

    def __bool__(self) -> bool:
        return bool(self.pods or self.attachments)

    def __str__(self) -> str:
        return " and ".join(_counted((self.pods, "pod"), (self.attachments, "VolumeAttachment")))


def _counted(*counts: tuple[int, str]) -> Sequence[str]:
    return [f"{number} {what}{'' if number == 1 else 's'}" for number, what in counts if number] or [
        "nothing"
    ]


@dataclass(frozen=True, slots=True)
class OutOfServiceFacts:
    name: str
    uid: str
    is_ready: bool
    # How long we have seen it so, and how long its agent has said nothing.
    not_ready_seconds: float = 0.0
    silent_seconds: float = 0.0
    # Lease duration: a shorter silence does not count.
    lease_seconds: float = 0.0
    is_control_plane: bool = False
    taint: Whose = Whose.NOBODYS
    record: TaintRecord | None = None
    # None: not looked at yet, or that cannot be read now.
    held: NodeContents | None = None
    # None: no check has run yet.
    verdict: FenceVerdict | None = None
