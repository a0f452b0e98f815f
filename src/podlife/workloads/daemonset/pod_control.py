"""Creates and deletes daemon pods, up to a burst of each, and records expectations for them.

Guarantees:
* Each created pod is for a different node.
* A delete carries the UID of the pod that was examined.
* Only requests that were sent and not refused are expected, except in a terminating namespace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence

from podlife.errors import NotFoundError, PodlifeError
from podlife.informer.indexes import Key
from podlife.podcontrol import (
    CreateUntilTerminating,
    Owner,
    PodOperations,
    UidTrackedExpectations,
    slow_start,
)
from podlife.workloads.daemonset.pod_template import for_node
from podlife.workloads.views import Template, WorkloadPod

_FIRST_SECONDS = 1.0
_MOST_SECONDS = 15 * 60.0
_RESET_SECONDS = 2 * _MOST_SECONDS


class DaemonPodControl:
    """Do not call `change` for a key before its `expectations` are met. Failed creations go to `on_failures`."""

    def __init__(self, control: PodOperations, burst: int) -> None:
        self.expectations = UidTrackedExpectations()
        self.on_failures: Callable[[Key, Sequence[Exception]], None] | None = None
        self._control = control
        self._burst = burst

    async def change(
        self, owner: Owner, template: Template, create_on: Sequence[str], delete: Sequence[WorkloadPod]
    ) -> None:
        """Create pods for these nodes and delete those pods. Raises the first error."""
        create_on, delete = create_on[: self._burst], delete[: self._burst]
        if not create_on and not delete:
            return
        uids = [pod.metadata.uid for pod in delete]
        self.expectations.expect(_key(owner), creations=len(create_on), deletions=uids)
        failed = await self._create(owner, template, create_on)
        errors = await asyncio.gather(*(self._delete(owner, pod) for pod in delete))
        for error in (failed, *errors):
            if error is not None:
                raise error

    async def _create(self, owner: Owner, template: Template, nodes: Sequence[str]) -> Exception | None:
        reference, targets = owner.controller_ref(), iter(nodes)

        async def create() -> None:
            pod = for_node(template, next(targets))
            await self._control.create_pods(owner.namespace, pod, owner, reference)

        made = await slow_start(len(nodes), CreateUntilTerminating(create))
        # Refused and skipped requests are not expected.
        self.expectations.add(_key(owner), creations=made.succeeded - len(nodes))
        if made.errors and self.on_failures is not None:
            self.on_failures(_key(owner), made.errors)
        return made.errors[0] if made.errors else None

    async def _delete(self, owner: Owner, pod: WorkloadPod) -> PodlifeError | None:
        name, uid = pod.metadata.name, pod.metadata.uid
        try:
            await self._control.delete_pod(owner.namespace, name, owner, uid=uid)
        except PodlifeError as error:
            self.expectations.observe_deletion(_key(owner), uid)
            return None if isinstance(error, NotFoundError) else error
        return None


def _key(owner: Owner) -> Key:
    return (owner.namespace, owner.name)


class FailedPodsBackoff:
    """Delays the deletion of failed daemon pods, by node and DaemonSet: one that fails immediately would otherwise be
    recreated in a loop. The delay doubles from one second to 15 minutes and starts over after 30 minutes without a
    failure. Times are the caller's, in seconds."""

    def __init__(self) -> None:
        # Start and length, ordered by start, so that expired entries come first.
        self._waits: dict[Hashable, tuple[float, float]] = {}

    def seconds_left(self, key: Hashable, now: float) -> float:
        """Time until a failed pod may be deleted."""
        since, seconds = self._waits.get(key, (now, 0.0))
        return max(0.0, since + seconds - now)

    def note(self, key: Hashable, now: float) -> None:
        self._forget_before(now - _RESET_SECONDS)
        last = self._waits.pop(key, None)
        self._waits[key] = now, _FIRST_SECONDS if last is None else min(2 * last[1], _MOST_SECONDS)

    def _forget_before(self, time: float) -> None:
        while self._waits and self._waits[oldest := next(iter(self._waits))][0] < time:
            del self._waits[oldest]

    def __len__(self) -> int:
        return len(self._waits)
