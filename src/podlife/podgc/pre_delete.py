"""Pre-delete steps: work that must be done (an archive) or a condition that must hold (the owner wait) before a
deletion.

Steps run for each victim immediately before it is marked or deleted. A step returns "" to allow the deletion, or the
reason why the pod stays; the pod is tried again later. A step that fails keeps the pod.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from podlife.podgc.plan import Victim


class Stay(str):
    """A reason that ends at a known time: the pod is tried again then at the latest."""

    __slots__ = ("until",)

    until: datetime

    def __new__(cls, why: str, until: datetime) -> Stay:
        made = super().__new__(cls, why)
        made.until = until
        return made


class PreDeleteStep(Protocol):
    async def __call__(self, victim: Victim) -> str:
        """The reason why the pod stays, or "". Bounded in time; may run more than once for a pod. Raises PodlifeError
        for transient failures; the pod stays then too."""


async def reason_to_stay(steps: Iterable[PreDeleteStep], victim: Victim) -> str:
    """The reason of the first step that keeps the victim, or ""."""
    for step in steps:
        if why := await step(victim):
            return why
    return ""
