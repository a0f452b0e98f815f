"""The incremental index and a look at everything plan the same, whatever happens and in whatever order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from podlife.api.views import Condition, Metadata, Node, NodeSpec, NodeStatus, Taint
from podlife.podgc import FeatureGates, PodIndex, Reason, Settings, planner, quarantine
from podlife.podgc.classifier import UpstreamClassifier
from podlife.podgc.views import Pod, PodMetadata, PodSpec, PodStatus
from tests.property.oracles.podgc import TAINT, Oracle

NODES = ("n1", "n2", "n3")
PHASES = ("", "Pending", "Running", "Unknown", "Succeeded", "Failed", "Odd")
EPOCH = datetime(2030, 1, 1, tzinfo=UTC)

# Few values, so that namesakes, ties and returns are common.
names = st.sampled_from(("a", "b", "c", "d", "e", "f"))
node_names = st.sampled_from(("", *NODES))
created = st.one_of(st.none(), st.integers(0, 3).map(lambda hours: EPOCH + timedelta(hours=hours)))
statuses = st.builds(PodStatus, phase=st.sampled_from(PHASES), reason=st.sampled_from(("", "Evicted")))
collectable = st.frozensets(st.sampled_from(Reason), min_size=1)


def node_of(name: str, ready: str, *, tainted: bool) -> Node:
    conditions = (Condition("Ready", ready),) if ready else ()
    taints = (Taint(TAINT),) if tainted else ()
    return Node(Metadata(name=name), NodeSpec(taints), NodeStatus(conditions))


class Collecting(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.made = 0
        self.keys: dict[tuple[str, str], str] = {}

    @initialize(
        threshold=st.integers(-1, 4),
        quarantine=st.sampled_from((-1.0, 0.0, 5.0, 40.0)),
        collect=collectable,
        gates=st.builds(FeatureGates, st.booleans(), st.booleans(), st.booleans()),
    )
    def begin(
        self, threshold: int, quarantine: float, collect: frozenset[Reason], gates: FeatureGates
    ) -> None:
        self.settings = Settings(
            threshold=threshold, quarantine_seconds=quarantine, collect=collect, gates=gates
        )
        self.oracle = Oracle(self.settings)
        self.index = self.make_index()

    def make_index(self) -> PodIndex:
        return PodIndex(UpstreamClassifier(), marks_failed=self.settings.marks_failed)

    @rule(namespace=st.sampled_from(("x", "y")), name=names, node=node_names, status=statuses, at=created)
    def create(self, namespace: str, name: str, node: str, status: PodStatus, at: datetime | None) -> None:
        if (namespace, name) in self.keys:
            return
        self.made += 1
        # Not in the order of making: a tie is broken by the UID, and nobody may rely on its order.
        uid = f"{self.made * 7919 % 1000:03}"
        metadata = PodMetadata(name=name, namespace=namespace, uid=uid, creation_timestamp=at)
        self.keys[namespace, name] = uid
        self.oracle.pods[uid] = pod = Pod(metadata, PodSpec(node), status)
        self.index.add_pod(pod, self.now)

    def change(self, data: Any, **parts: Any) -> None:
        uid = data.draw(st.sampled_from(sorted(self.oracle.pods)))
        old = self.oracle.pods[uid]
        metadata = {name: getattr(old.metadata, name) for name in old.metadata.__struct_fields__}
        metadata |= parts.get("metadata", {})
        node = old.spec.node_name or parts.get("node", "")
        new = Pod(PodMetadata(**metadata), PodSpec(node), parts.get("status", old.status))
        self.oracle.pods[uid] = new
        self.index.update_pod(old, new, self.now)

    @precondition(lambda self: self.oracle.pods)
    @rule(data=st.data(), status=statuses)
    def report(self, data: Any, status: PodStatus) -> None:
        self.change(data, status=status)

    @precondition(lambda self: self.oracle.pods)
    @rule(data=st.data(), node=st.sampled_from(NODES))
    def bind(self, data: Any, node: str) -> None:
        self.change(data, node=node)

    @precondition(lambda self: self.oracle.pods)
    @rule(data=st.data(), grace=st.sampled_from((0, 30)), finalizers=st.sampled_from(((), ("f",))))
    def begin_deletion(self, data: Any, grace: int, finalizers: tuple[str, ...]) -> None:
        self.change(
            data,
            metadata={
                "deletion_timestamp": EPOCH,
                "deletion_grace_period_seconds": grace,
                "finalizers": finalizers,
            },
        )

    @precondition(lambda self: self.oracle.pods)
    @rule(data=st.data(), node=st.sampled_from(NODES), is_news=st.booleans())
    def remove(self, data: Any, node: str, is_news: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.oracle.pods)))
        pod = self.oracle.pods.pop(uid)
        del self.keys[pod.metadata.namespace, pod.metadata.name]
        # The last state of a pod may tell of a node that no event had named.
        last = pod if pod.spec.node_name or not is_news else Pod(pod.metadata, PodSpec(node), pod.status)
        self.index.remove_pod(last, self.now)
        self.oracle.leaving.discard(uid)
        self.index.end_removal(pod.spec.node_name, uid)

    @precondition(lambda self: any(reason is not Reason.TERMINATED for _, reason in self.oracle.plan()))
    @rule(data=st.data())
    def begin_removal(self, data: Any) -> None:
        victims = sorted(uid for uid, reason in self.oracle.plan() if reason is not Reason.TERMINATED)
        uid = data.draw(st.sampled_from(victims))
        pod = self.oracle.pods[uid]
        if not pod.is_terminated:
            self.oracle.leaving.add(uid)
            self.index.begin_removal(pod)

    @precondition(lambda self: self.oracle.leaving)
    @rule(data=st.data())
    def give_up_removal(self, data: Any) -> None:
        uid = data.draw(st.sampled_from(sorted(self.oracle.leaving)))
        self.oracle.leaving.discard(uid)
        self.index.end_removal(self.oracle.pods[uid].spec.node_name, uid)

    @rule(name=st.sampled_from(NODES), ready=st.sampled_from(("", "True", "False")), tainted=st.booleans())
    def put_node(self, name: str, ready: str, tainted: bool) -> None:
        self.oracle.nodes[name] = node = node_of(name, ready, tainted=tainted)
        self.index.put_node(node)

    @precondition(lambda self: self.oracle.nodes)
    @rule(data=st.data())
    def remove_node(self, data: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.oracle.nodes)))
        self.index.remove_node(self.oracle.nodes.pop(name), self.now)

    @rule(seconds=st.sampled_from((1.0, 5.0, 20.0, 40.0)))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.oracle.due(self.now))
    @rule(data=st.data(), is_gone=st.booleans())
    def check(self, data: Any, is_gone: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.oracle.due(self.now))))
        self.oracle.check(name, self.now, is_gone=is_gone)
        if is_gone:
            self.index.confirm_missing(name, self.now)
        else:
            self.index.doubt_missing(name, self.now)

    @invariant()
    def they_agree(self) -> None:
        if not hasattr(self, "oracle"):
            return
        self.oracle.look(self.now)
        self.they_plan_the_same()
        self.each_pod_is_decided_as_in_the_plan()
        self.it_counts_right()
        self.what_is_still_to_come_is_told_with_its_time()

    def they_plan_the_same(self) -> None:
        planned = planner.plan(self.index, self.settings, self.now)
        ours = [(victim.pod.metadata.uid, victim.reason) for victim in planned.victims]
        theirs = self.oracle.plan()
        assert dict(ours) == dict(theirs)
        assert len(ours) == len(theirs)
        assert in_order(ours) == in_order(theirs)
        assert set(quarantine.due_nodes(self.index, self.settings, self.now)) == self.oracle.due(self.now)

    def each_pod_is_decided_as_in_the_plan(self) -> None:
        planned = dict(self.oracle.plan())
        for uid, pod in self.oracle.pods.items():
            known = self.index.pod(pod.spec.node_name, uid)
            assert (known is None) == self.oracle.is_settled(pod)
            if known is not None:
                assert planner.reason_of(self.index, self.settings, known) == planned.get(uid)

    def it_counts_right(self) -> None:
        pods = self.oracle.pods.values()
        assert len(self.index) == len(pods)
        held = {pod.metadata.uid for pod in pods if self.oracle.is_settled(pod)}
        assert {pod.metadata.uid for pod in self.index.settled} == held

    def what_is_still_to_come_is_told_with_its_time(self) -> None:
        if Reason.ORPHANED not in self.settings.collect:
            return
        planned = dict(self.oracle.plan())
        waiting = {
            pod.metadata.uid
            for name in self.oracle.missing
            for pod in self.oracle.on(name)
            if pod.metadata.uid not in planned
        }
        later = planner.plan(self.index, self.settings, self.now).later
        assert {pod.metadata.uid for each in later for pod in each.pods} == waiting
        assert {each.node for each in later if not each.seconds} <= self.oracle.due(self.now)


def in_order(planned: Sequence[tuple[str, object]]) -> list[str]:
    return [uid for uid, reason in planned if reason is Reason.TERMINATED]


TestCollecting = Collecting.TestCase
TestCollecting.settings = hypothesis_settings(max_examples=150, stateful_step_count=40, deadline=None)
