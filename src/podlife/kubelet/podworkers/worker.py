"""What belongs to a UID besides its state: whether it is queued, and the step that is running."""

from __future__ import annotations

import asyncio

from podlife.kubelet.podworkers.state import PodState
from podlife.kubelet.podworkers.step_transitions import StepWork


class PodWorker:
    __slots__ = ("has_stepped", "is_cancelled", "is_queued", "state", "stepped_at", "task", "uid", "work")

    def __init__(self, uid: str, state: PodState) -> None:
        self.uid = uid
        self.state = state
        # It stands in line for its next step.
        self.is_queued = False
        # The step that is running, if one is; its task, if it is waited for; whether that was cancelled from here.
        self.work: StepWork | None = None
        self.task: asyncio.Task[None] | None = None
        self.is_cancelled = False
        # The step itself was called: until then only the status for it was waited for.
        self.has_stepped = False
        # When its last step ended; the next one is to see what the runtime said after that.
        self.stepped_at: float | None = None

    @property
    def is_working(self) -> bool:
        return self.is_queued or self.work is not None
