"""Updates of DaemonSets on nodes that do what they like: no decision takes away more than is allowed, and every update
comes to its end. The controller's pure decisions are played against pods that come, serve, fail and go at random."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from podlife.podcontrol import OwnedPodCondition, is_available
from podlife.workloads.daemonset.placement import NodeFit
from podlife.workloads.daemonset.plan import DaemonRevision, by_node, plan_nodes
from podlife.workloads.daemonset.pod_template import HASH_LABEL
from podlife.workloads.daemonset.rolling_update import RolloutLimits, replace_next
from podlife.workloads.views import WorkloadMetadata, WorkloadPod, WorkloadPodSpec, WorkloadPodStatus

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
MIN_READY = 3


class Cluster:
    def __init__(self, nodes: int, limits: RolloutLimits) -> None:
        self.names = [f"n{number}" for number in range(nodes)]
        self.fits = dict.fromkeys(self.names, NodeFit.SHOULD_RUN)
        self.limits = limits
        self.now = BEGIN
        self.pods: dict[str, WorkloadPod] = {}
        self.revision = DaemonRevision("1", min_ready_seconds=MIN_READY, is_surging=limits.max_surge > 0)
        self._made = 0

    # What the controller does

    def decide(self) -> None:
        pods = by_node(self.pods.values())
        plan = plan_nodes(pods, self.fits, self.revision, self.now)
        gone = plan.delete + [pod for _, pod in plan.failed]
        if gone or plan.create_on:
            for pod in gone:
                self.check_surplus(pod)
        else:
            replacement = replace_next(pods, self.fits, self.revision, self.limits, self.now)
            gone, plan.create_on = replacement.delete, replacement.create_on
            self.check_update(gone, plan.create_on)
        for pod in gone:
            pod.metadata.deletion_timestamp = self.now
        for name in plan.create_on:
            self.create(name)
        self.check_nodes()

    def check_surplus(self, gone: WorkloadPod) -> None:
        """A pod that serves goes only where another one serves."""
        if not self.serves(gone):
            return
        others = [pod for pod in self.on(gone.spec.node_name) if pod is not gone]
        assert any(self.serves(pod) for pod in others)

    def check_update(self, gone: list[WorkloadPod], create_on: list[str]) -> None:
        serving = [pod for pod in gone if self.serves(pod)]
        assert all(pod.metadata.labels[HASH_LABEL] != self.revision.hash for pod in gone)
        if self.limits.max_surge == 0:
            assert not create_on
            unserved = sum(1 for name in self.names if not any(map(self.serves, self.on(name))))
            assert not serving or unserved + len(serving) <= self.limits.max_unavailable
            return
        for pod in serving:
            self.check_surplus(pod)
        surging = [name for name in self.names if len(self.on(name)) > 1]
        beside = [name for name in create_on if any(map(self.serves, self.on(name)))]
        assert not beside or len(surging) + len(beside) <= self.limits.max_surge

    def check_nodes(self) -> None:
        most = 2 if self.revision.is_surging else 1
        assert all(len(self.on(name)) <= most for name in self.names)

    def create(self, name: str) -> None:
        self._made += 1
        metadata = WorkloadMetadata(
            name=f"p{self._made:04}",
            uid=str(self._made),
            labels={HASH_LABEL: self.revision.hash},
            creation_timestamp=self.now,
        )
        self.pods[metadata.uid] = WorkloadPod(
            metadata, WorkloadPodSpec(node_name=name), WorkloadPodStatus(phase="Running")
        )

    # What nodes do

    def happen(self, choice: int, which: int) -> None:
        if choice == 0:
            self.now += timedelta(seconds=1 + which % 3)
        elif self.pods:
            pod = list(self.pods.values())[which % len(self.pods)]
            if pod.metadata.deletion_timestamp is not None:
                del self.pods[pod.metadata.uid]
            elif choice == 1:
                self.ready(pod)
            elif choice == 2:
                pod.status.conditions = ()
            elif choice == 3:
                pod.status.phase, pod.status.conditions = "Failed", ()

    def ready(self, pod: WorkloadPod) -> None:
        if pod.status.phase == "Running" and not pod.status.conditions:
            pod.status.conditions = (OwnedPodCondition("Ready", "True", self.now),)

    def calm(self) -> None:
        """Nothing goes wrong any more: what is going goes, and what runs becomes ready."""
        self.now += timedelta(seconds=MIN_READY)
        for pod in list(self.pods.values()):
            if pod.metadata.deletion_timestamp is not None:
                del self.pods[pod.metadata.uid]
            else:
                self.ready(pod)

    def on(self, name: str) -> list[WorkloadPod]:
        """Those that are wanted there still."""
        return [
            pod
            for pod in self.pods.values()
            if pod.spec.node_name == name
            and pod.metadata.deletion_timestamp is None
            and pod.status.phase == "Running"
        ]

    def serves(self, pod: WorkloadPod) -> bool:
        return pod.metadata.deletion_timestamp is None and is_available(pod, MIN_READY, self.now)

    def is_done(self) -> bool:
        return len(self.pods) == len(self.names) and all(
            pod.metadata.labels[HASH_LABEL] == self.revision.hash and self.serves(pod)
            for pod in self.pods.values()
        )


limits = st.one_of(
    st.integers(1, 4).map(lambda count: RolloutLimits(count, 0)),
    st.integers(1, 4).map(lambda count: RolloutLimits(0, count)),
)
steps = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 20)), max_size=60)


@settings(deadline=None)
@given(nodes=st.integers(1, 6), limits=limits, before=steps, after=steps)
def test_update_keeps_its_bounds_and_ends(
    nodes: int, limits: RolloutLimits, before: list[tuple[int, int]], after: list[tuple[int, int]]
) -> None:
    cluster = Cluster(nodes, limits)
    for number, moves in enumerate((before, after), start=1):
        is_surging = limits.max_surge > 0
        cluster.revision = DaemonRevision(str(number), min_ready_seconds=MIN_READY, is_surging=is_surging)
        for choice, which in moves:
            if choice > 3:
                cluster.decide()
            else:
                cluster.happen(choice, which)
        for _ in range(6 * nodes + 6):
            cluster.decide()
            cluster.calm()
        assert cluster.is_done()
