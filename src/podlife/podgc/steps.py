"""What comes before a deletion: something that must be done first (an archive), or must be so (the owner has seen the
end).

A step is asked about each victim just before it is marked or deleted. Whatever it answers but "" keeps the pod, and is
told to people as the reason; the pod is asked about again later. A step that cannot tell, or cannot do its work, keeps
the pod: nothing is deleted on a doubt.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from podlife.podgc.planner import Victim

__all__ = ["Stay", "Step", "reason_to_stay"]


class Stay(str):
    """A reason that ends by itself at a moment: the pod is asked about then, if not before."""

    __slots__ = ("until",)

    until: datetime

    def __new__(cls, why: str, until: datetime) -> Stay:
        made = super().__new__(cls, why)
        made.until = until
        return made


class Step(Protocol):
    async def __call__(self, victim: Victim) -> str:
        """Why the pod stays, or "". Bounded in time; may be asked about a pod more than once. Raises PodlifeError for
        what may pass; then the pod stays too."""


async def reason_to_stay(steps: Iterable[Step], victim: Victim) -> str:
    """What the first step says that does not let the victim go."""
    for step in steps:
        if why := await step(victim):
            return why
    return ""
