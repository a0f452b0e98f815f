"""Backoff before a failed pod is replaced: 10 s, doubled after each consecutive failure, at most 10 minutes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from podlife.workloads.job.pods import all_failures_of_index, finished_at
from podlife.workloads.views import WorkloadPod

_FIRST = timedelta(seconds=10)
_MOST = timedelta(minutes=10)
# Ten seconds doubled so often are more than the most.
_MOST_DOUBLINGS = 6
_NONE = timedelta(0)


@dataclass(frozen=True, slots=True)
class PodBackoff:
    """The failures of a Job since a pod of it last succeeded."""

    failures: int = 0
    last_failure: datetime | None = None

    def after(self, succeeded: Sequence[WorkloadPod], failed: Sequence[WorkloadPod]) -> PodBackoff:
        """With the pods that have finished since."""
        ends = sorted(finished_at(pod) for pod in failed)
        if not succeeded:
            return PodBackoff(self.failures + len(ends), ends[-1]) if ends else self
        last_success = max(finished_at(pod) for pod in succeeded)
        since = [end for end in ends if end > last_success]
        return PodBackoff(len(since), since[-1] if since else None)

    def wait(self, now: datetime) -> timedelta:
        return _wait(self.failures, self.last_failure, now)


def wait_of_index(replaced: WorkloadPod | None, now: datetime) -> timedelta:
    """The same for one index that has failures of its own, where this pod was the last to fail."""
    if replaced is None:
        return _NONE
    return _wait(all_failures_of_index(replaced) + 1, finished_at(replaced), now)


def _wait(failures: int, last_failure: datetime | None, now: datetime) -> timedelta:
    if failures == 0 or last_failure is None:
        return _NONE
    factor: int = 2 ** min(failures - 1, _MOST_DOUBLINGS)
    whole = min(_FIRST * factor, _MOST)
    return max(_NONE, whole - (now - last_failure))
