"""The order in which the containers of a pod with sidecars end (KO-01 to KO-04).

A sidecar serves the regular containers and the sidecars after it: it ends after the regular ones and after the sidecar
listed next. No container is waited for longer than the grace period.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from podlife.kubelet.pod_fields import Pod, containers_of, init_containers_of, is_sidecar


def whom_to_wait_for(pod: Pod, running: Collection[str]) -> Mapping[str, frozenset[str]]:
    """For each sidecar, the running containers that have to end before it is stopped; all others wait for nobody.
    Empty for a pod without sidecars."""
    regular = frozenset(each["name"] for each in containers_of(pod))
    waits: dict[str, frozenset[str]] = {}
    later: frozenset[str] = frozenset()
    for container in reversed(init_containers_of(pod)):
        if is_sidecar(container):
            waits[container["name"]] = (regular | later) & frozenset(running)
            later = frozenset((container["name"],))
    return waits


class TerminationOrder:
    """The turns of one pod that is being killed. `ended` has to be told of every container, stopped or failed to."""

    def __init__(self, pod: Pod, running: Collection[str]) -> None:
        self._waits = whom_to_wait_for(pod, running)
        self._ends = {name: asyncio.Event() for name in frozenset().union(*self._waits.values())}

    async def wait(self, name: str, grace_seconds: float) -> float:
        """Wait until it is this container's turn, or the grace is used up; answers how long that took."""
        ends = [self._ends[each] for each in self._waits.get(name, ())]
        if not ends or grace_seconds <= 0:
            return 0.0
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(grace_seconds):
                for end in ends:
                    await end.wait()
        except TimeoutError:
            pass
        return loop.time() - began

    def ended(self, name: str) -> None:
        if name in self._ends:
            self._ends[name].set()
