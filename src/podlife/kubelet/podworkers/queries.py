"""What other parts of the kubelet ask about a pod, by UID.

The answers about an unknown UID change once the node's configuration has been compared for the first time: before that
the pod may not have arrived yet, after it there is no such pod.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from podlife.kubelet.podworkers.state import PodState
from podlife.kubelet.podworkers.static_names import StaticNames
from podlife.kubelet.podworkers.sync_known_pods import KnownPod, known_pod
from podlife.kubelet.podworkers.worker import PodWorker


class Queries:
    def __init__(self) -> None:
        self._workers: dict[str, PodWorker] = {}
        self._names = StaticNames()
        self._has_synced = False

    def __len__(self) -> int:
        """How many UIDs are known."""
        return len(self._workers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._workers)

    @property
    def static_names(self) -> StaticNames:
        """Who holds which name, and who waits for it; for reading."""
        return self._names

    def state(self, uid: str) -> PodState | None:
        """All that is remembered of the pod; nothing if it is not known."""
        worker = self._workers.get(uid)
        return None if worker is None else worker.state

    def known_pods(self, desired: Container[str]) -> dict[str, KnownPod]:
        """What `sync_known_pods` would tell of each, without changing any."""
        return {
            uid: known_pod(each.state, is_orphan=uid not in desired) for uid, each in self._workers.items()
        }

    def is_working(self, uid: str) -> bool:
        """A step is running, or about to."""
        worker = self._workers.get(uid)
        return worker is not None and worker.is_working

    def is_known_terminated(self, uid: str) -> bool:
        """The workers saw that all its containers have stopped, and remember it (PW-170)."""
        state = self.state(uid)
        return state is not None and state.is_terminated

    def could_have_running_containers(self, uid: str) -> bool:
        """Not yet terminated; an unknown pod counts until the first SyncKnownPods (PW-171)."""
        state = self.state(uid)
        return not self._has_synced if state is None else not state.is_terminated

    def is_finished(self, uid: str) -> bool:
        """Its last step is done, or there is no such pod (PW-172)."""
        state = self.state(uid)
        return self._has_synced if state is None else state.is_finished

    def is_termination_requested(self, uid: str) -> bool:
        """It is to end; containers may still be starting (PW-173)."""
        state = self.state(uid)
        return state is not None and state.is_termination_requested

    def should_containers_be_terminating(self, uid: str) -> bool:
        """No container of it is started any more (PW-174)."""
        state = self.state(uid)
        return self._has_synced if state is None else state.is_acknowledged

    def should_runtime_be_removed(self, uid: str) -> bool:
        """What its containers used while they ran can go (PW-175)."""
        state = self.state(uid)
        return self._has_synced if state is None else state.is_terminated

    def should_content_be_removed(self, uid: str) -> bool:
        """What it left on disk can go: at once when it is evicted, to make room (PW-177), and once it has stopped when
        it is deleted (PW-176)."""
        state = self.state(uid)
        if state is None:
            return self._has_synced
        return state.is_evicted or (state.is_deleted and state.is_terminated)

    def is_static_pod_terminating(self, full_name: str) -> bool:
        """The static pod behind a mirror pod of that name is still being stopped (PW-178)."""
        holder = self._names.holder(full_name)
        state = None if holder is None else self.state(holder)
        return state is not None and state.is_termination_requested and not state.is_terminated
