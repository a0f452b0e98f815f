"""The state of a local cluster, kept up to date by two watches: nodes, pods by state and node, pods that are
terminating or were removed, and why.

Pods are counted as events arrive, so that reading the state costs the same however many there are.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter, deque
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from podlife.client import NODES, PODS, Client
from podlife.clock import Clock
from podlife.explain import AuditCollection, AuditedRequest, find_deletion, phrase
from podlife.informer import Informer
from podlife.localcluster.views import DisplayedNode, DisplayedPod

_MOST_GONE = 50
_MOST_AUDITED = 5_000
_POLL_SECONDS = 0.5
# More than this of the audit log between two polls is skipped: the view shows the last pods, not all of them.
_MOST_LOG_BYTES = 4 << 20


class RemovedPod(msgspec.Struct):
    """The reason is determined when it is displayed: most never are."""

    pod: DisplayedPod
    at: datetime
    why: str = ""
    # How many audit events were known when the reason was determined.
    audited: int = -1


class ClusterState:
    """Updated through its handlers `of_nodes` and `of_pods`. `changes` counts updates, so that a display knows when to
    redraw."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        # Times on the wire are in whole seconds.
        self._started_at = clock.now().replace(microsecond=0)
        self.nodes: dict[str, DisplayedNode] = {}
        # By node ("" for none) and state.
        self.pods: Counter[tuple[str, str]] = Counter()
        self.terminating: dict[str, DisplayedPod] = {}
        self.gone: deque[RemovedPod] = deque(maxlen=_MOST_GONE)
        self.gone_count = 0
        # The last requests that deleted pods or changed their owners.
        self.audited: deque[AuditedRequest] = deque(maxlen=_MOST_AUDITED)
        self._audited_count = 0
        self.changes = 0
        # Whether the watches are current.
        self.is_live = True
        self.of_nodes = _Nodes(self)
        self.of_pods = _Pods(self)

    def note_audited(self, requests: Sequence[AuditedRequest]) -> None:
        """New requests of the audit log."""
        self.audited.extend(requests)
        self._audited_count += len(requests)
        self.changes += bool(requests)

    def why_gone(self, gone: RemovedPod) -> str:
        """The reason as far as it is known: the audit log is written shortly after the removal."""
        if gone.audited != self._audited_count:
            gone.why, gone.audited = _why_gone(gone.pod, self.audited), self._audited_count
        return gone.why

    def is_ready(self, node: str) -> bool:
        return node in self.nodes and self.nodes[node].is_ready

    def is_at_work(self, node: str) -> bool:
        """Whether it is ready and has reported since this run began."""
        if not self.is_ready(node):
            return False
        reported_at = self.nodes[node].ready.last_heartbeat_time
        return reported_at is not None and reported_at >= self._started_at

    @property
    def states(self) -> Counter[str]:
        """Pods by state."""
        states: Counter[str] = Counter()
        for (_, state), count in self.pods.items():
            states[state] += count
        return states

    def on_node(self, node: str) -> Counter[str]:
        return Counter({state: count for (name, state), count in self.pods.items() if name == node})


class AuditTail:
    """Follows an audit log while it is written, to show who deleted a pod.

    It starts at the end of the file, continues across rotations, and reads a bounded amount at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = 0
        self._offset = 0
        self._rest = b""
        self._stat()
        self._offset = self._size

    def poll(self) -> Sequence[AuditedRequest]:
        """Requests logged since the last poll; none when the log cannot be read."""
        inode = self._inode
        self._stat()
        if self._inode != inode or self._size < self._offset:
            self._offset, self._rest = 0, b""
        found = AuditCollection()
        *lines, self._rest = (self._rest + self._read()).split(b"\n")
        for line in lines:
            found.add(line + b"\n")
        return found.requests

    def _stat(self) -> None:
        try:
            status = self._path.stat()
        except OSError:
            self._size = 0
            return
        self._inode, self._size = status.st_ino, status.st_size

    def _read(self) -> bytes:
        if self._size - self._offset > _MOST_LOG_BYTES:
            self._offset, self._rest = self._size - _MOST_LOG_BYTES, b""
        if self._size <= self._offset:
            return b""
        try:
            with self._path.open("rb") as file:
                os.lseek(file.fileno(), self._offset, os.SEEK_SET)
                data = os.read(file.fileno(), self._size - self._offset)
        except OSError:
            return b""
        self._offset += len(data)
        return data


async def follow(state: ClusterState, client: Client, audit: AuditTail | None = None) -> None:
    """Keep the state up to date until cancelled."""
    nodes = Informer(client, NODES, view=DisplayedNode)
    pods = Informer(client, PODS, view=DisplayedPod)
    nodes.add_handler(state.of_nodes)
    pods.add_handler(state.of_pods)
    async with asyncio.TaskGroup() as group:
        group.create_task(nodes.run(), name="nodes")
        group.create_task(pods.run(), name="pods")
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            has_begun = nodes.has_synced and pods.has_synced
            state.is_live = not has_begun or (nodes.is_live and pods.is_live)
            if audit is not None:
                state.note_audited(audit.poll())


class _Nodes:
    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def on_add(self, node: DisplayedNode) -> None:
        self._state.nodes[node.metadata.name] = node
        self._state.changes += 1

    def on_update(self, old: DisplayedNode, new: DisplayedNode) -> None:
        self._state.nodes[new.metadata.name] = new
        self._state.changes += old.state != new.state or old.spec != new.spec

    def on_delete(self, node: DisplayedNode) -> None:
        self._state.nodes.pop(node.metadata.name, None)
        self._state.changes += 1


class _Pods:
    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def on_add(self, pod: DisplayedPod) -> None:
        self._count(pod, 1)
        self._state.changes += 1

    def on_update(self, old: DisplayedPod, new: DisplayedPod) -> None:
        before, after = (old.spec.node_name, old.state), (new.spec.node_name, new.state)
        if before != after:
            self._count(old, -1)
            self._count(new, 1)
            self._state.changes += 1
        elif new.metadata.uid in self._state.terminating:
            self._state.terminating[new.metadata.uid] = new

    def on_delete(self, pod: DisplayedPod) -> None:
        state = self._state
        self._count(pod, -1)
        state.gone.append(RemovedPod(pod, state.clock.now()))
        state.gone_count += 1
        state.changes += 1

    def _count(self, pod: DisplayedPod, by: int) -> None:
        key = (pod.spec.node_name, pod.state)
        pods = self._state.pods
        pods[key] += by
        if not pods[key]:
            del pods[key]
        if pod.state != "Terminating":
            return
        if by > 0:
            self._state.terminating[pod.metadata.uid] = pod
        else:
            self._state.terminating.pop(pod.metadata.uid, None)


def _why_gone(pod: DisplayedPod, audited: Sequence[AuditedRequest]) -> str:
    """In order of precedence: a user's request, the pod's condition, the controller that deleted it."""
    found = find_deletion(tuple(audited), pod.identity)
    if found is not None and (found.is_asked_for or not pod.disruption):
        # Pod GC writes a condition for every other reason.
        is_excess = found.is_pod_gc and pod.has_ended
        return "collected by pod GC: too many ended pods" if is_excess else phrase(found)
    if pod.disruption:
        return pod.disruption
    return f"removed after it had ended ({pod.status.phase})" if pod.has_ended else "deleted"


def why_terminating(pod: DisplayedPod, state: ClusterState) -> str:
    """What a terminating pod is waiting for; the most important reason first."""
    metadata = pod.metadata
    if metadata.finalizers and (metadata.deletion_grace_period_seconds or 0) == 0:
        return f"held by the finalizer {metadata.finalizers[0]}"
    node = pod.spec.node_name
    cause = f"; {pod.disruption}" if pod.disruption else ""
    if node and node not in state.nodes:
        return f"its node {node} is gone: pod GC collects it after the quarantine{cause}"
    if node and not state.is_ready(node):
        return f"its node {node} does not respond, and only the node can report that it has ended{cause}"
    assert metadata.deletion_timestamp is not None
    left = (metadata.deletion_timestamp - state.clock.now()).total_seconds()
    if left > 0:
        return f"has {left:.0f} s of its grace left{cause}"
    return f"its grace is over: its node ends it{cause}"
