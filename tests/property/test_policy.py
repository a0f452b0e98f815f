"""A policy decides the same by events as by a look at everything; what it protects or excludes costs nobody's life."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from podlife.api.codec import format_time
from podlife.api.selectors import parse_label_selector
from podlife.api.views import Node
from podlife.podgc import PodIndex, Reason, Settings
from podlife.podgc import planner as collecting
from podlife.podgc.effective_settings import index_for, index_of, pod_view
from podlife.podgc.keep_until import KEEP_UNTIL
from podlife.podgc.policy import Policy
from podlife.podgc.policy.engine.classifier import PolicyClassifier
from podlife.podgc.policy.engine.facts import view_for
from podlife.podgc.policy.engine.matching import Matcher, matcher_of
from podlife.podgc.policy.model import Keep, KeepOrder, Per, Protection, Rule, Selector
from podlife.podgc.reasons import RuleReason
from podlife.podgc.views import Namespace, Pod
from tests.property.oracles.policy import Object, PolicyOracle
from tests.property.test_podgc import Collecting

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
NAMESPACES = ("a", "b", "prod-x")
PHASES = ("Succeeded", "Failed", "Succeeded", "Failed", "Running", "Odd")

# Few values, so that pods meet rules, each other and their limits.
moments = st.integers(0, 12).map(lambda ticks: format_time(EPOCH + timedelta(seconds=10 * ticks)))
labels = st.dictionaries(st.sampled_from(("app", "keep")), st.sampled_from(("x", "y")), max_size=2)
label_selectors = st.sampled_from(("app=x", "app!=y", "keep", "!keep", "app in (x,y)")).map(
    parse_label_selector
)
namespace_names = st.sampled_from((("a",), ("prod-*",), ("?",), ("a", "b")))


def rarely(values: st.SearchStrategy[Any], otherwise: Any) -> st.SearchStrategy[Any]:
    return st.integers(0, 5).flatmap(lambda drawn: values if drawn == 5 else st.just(otherwise))


def one_of_its(kind: type, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Says one thing only: what says much holds for nobody."""
    return st.one_of(*(st.builds(kind, **{name: values}) for name, values in fields.items()))


selectors = one_of_its(
    Selector,
    namespaces=namespace_names,
    namespace_labels=st.sampled_from(("env=prod", "env!=prod")).map(parse_label_selector),
    labels=label_selectors,
    owner_kinds=st.sampled_from((("Job",), ("none",), ("*Set",))),
    nodes=st.just(("n1",)),
    phases=st.sampled_from((("Failed",), ("Succeeded", "Failed"))),
    reasons=st.sampled_from((("Evicted",), ("OutOf*",))),
    exit_codes=st.sampled_from((frozenset((1,)), frozenset((0, 2)))),
)
keeps = st.builds(Keep, st.integers(0, 2), st.sampled_from(Per), st.sampled_from(KeepOrder))
lives = st.sampled_from((0.0, 20.0, 60.0))
limits = st.one_of(
    st.fixed_dictionaries({"keep": keeps}),
    st.fixed_dictionaries({"ttl_seconds": lives}),
    st.fixed_dictionaries({"keep": keeps, "ttl_seconds": lives, "is_either": st.booleans()}),
    st.just({"max_terminating_seconds": 30.0}),
)
rules = st.builds(
    lambda selector, exclude, limits, is_on: Rule("", selector, exclude, **limits, is_on=is_on),
    st.just(Selector()) | selectors,
    st.just(()) | st.lists(selectors, max_size=2).map(tuple),
    limits,
    rarely(st.just(False), True),
)
protections = one_of_its(
    Protection,
    namespaces=namespace_names,
    labels=label_selectors.map(lambda found: (found,)),
    annotations=st.sampled_from(((("hold", None),), (("hold", "yes"),))),
)


def numbered(found: list[Rule]) -> tuple[Rule, ...]:
    return tuple(replace(each, name=f"rule-{number}") for number, each in enumerate(found))


policies = st.builds(
    Policy,
    rules=st.lists(rules, min_size=1, max_size=4).map(numbered),
    protection=st.just(Protection())
    | protections
    | st.builds(Protection, max_keep_until_seconds=st.sampled_from((0.0, 20.0, 60.0))),
)

pod_annotations = rarely(
    st.fixed_dictionaries({}, optional={KEEP_UNTIL: moments | st.just("some day"), "hold": st.just("yes")}),
    {},
)
containers = st.lists(
    st.fixed_dictionaries(
        {
            "state": st.one_of(
                st.just({"running": {}}),
                st.builds(
                    lambda code, at: {"terminated": {"exitCode": code, "finishedAt": at}},
                    st.integers(0, 2),
                    st.none() | moments,
                ),
            )
        }
    ),
    max_size=2,
)
statuses = st.fixed_dictionaries(
    {
        "phase": st.sampled_from(PHASES),
        "reason": st.sampled_from(("", "Evicted", "OutOfcpu")),
        "containerStatuses": containers,
        "conditions": st.one_of(
            st.just([]),
            st.builds(lambda at: [{"type": "Ready", "status": "False", "lastTransitionTime": at}], moments),
        ),
    }
)
owners = st.one_of(
    st.just([]),
    st.builds(
        lambda kind, uid: [{"kind": kind, "uid": uid, "controller": True}],
        st.sampled_from(("Job", "ReplicaSet")),
        st.sampled_from(("o1", "o2")),
    ),
)
metadata = st.fixed_dictionaries(
    {
        "namespace": st.sampled_from(NAMESPACES),
        "name": st.sampled_from(("p", "q", "r")),
        "labels": labels,
        "annotations": pod_annotations,
        "creationTimestamp": moments,
        "ownerReferences": owners,
    }
)
specs = st.sampled_from(("", "n1", "n2")).map(lambda node: {"nodeName": node} if node else {})
pods = st.fixed_dictionaries({"metadata": metadata, "spec": specs, "status": statuses})
clusters = st.lists(pods, max_size=8).map(
    lambda found: [
        {**pod, "metadata": {**pod["metadata"], "uid": f"{number * 7919 % 1000:03}"}}
        for number, pod in enumerate(found)
    ]
)
times = st.integers(0, 30).map(lambda ticks: EPOCH + timedelta(seconds=10 * ticks))


class Governing(RuleBasedStateMachine):
    """Events one by one, and after each of them the oracle's look at everything."""

    def __init__(self) -> None:
        super().__init__()
        self.now = EPOCH + timedelta(seconds=60)
        self.made = 0

    @initialize(
        policy=policies,
        first=st.lists(pods, max_size=8),
        unknown=rarely(st.sampled_from(NAMESPACES), ""),
        is_told=rarely(st.just(False), True),
    )
    def begin(self, policy: Policy, first: list[Object], unknown: str, is_told: bool) -> None:
        self.settings = Settings(threshold=100_000, policy=policy)
        # Nobody has told the time yet.
        self.oracle = PolicyOracle(policy, now=float("-inf"))
        self.index = index_for(self.settings)
        self.view = pod_view(self.settings)
        self.known: dict[str, Pod] = {}
        for node in ("n1", "n2"):
            self.index.put_node(msgspec.convert({"metadata": {"name": node}}, Node))
        for name in {*NAMESPACES} - {unknown}:
            self.put_namespace(name, "")
        for pod in first:
            self.create(pod)
        if is_told:
            self.turn(0)

    def turn(self, ticks: int) -> None:
        self.now = max(EPOCH, self.now + timedelta(seconds=10 * ticks))
        self.oracle.now = self.now.timestamp()
        self.index.pass_time(self.now)

    @rule(pod=pods)
    def create(self, pod: Object) -> None:
        self.made += 1
        uid = f"{self.made * 7919 % 1000:03}"
        pod = {**pod, "metadata": {**pod["metadata"], "uid": uid}}
        self.oracle.pods[uid] = pod
        self.known[uid] = msgspec.convert(pod, self.view)
        self.index.add_pod(self.known[uid], 0.0)

    def change(self, data: Any, part: str, **values: Any) -> None:
        uid = data.draw(st.sampled_from(sorted(self.oracle.pods)))
        old = self.oracle.pods[uid]
        self.oracle.pods[uid] = new = {**old, part: {**old[part], **values}}
        before, self.known[uid] = self.known[uid], msgspec.convert(new, self.view)
        self.index.update_pod(before, self.known[uid], 0.0)

    @precondition(lambda self: self.oracle.pods)
    @rule(data=st.data(), status=statuses)
    def report(self, data: Any, status: Object) -> None:
        self.change(data, "status", **status)

    @precondition(lambda self: self.oracle.pods)
    @rule(data=st.data(), labels=labels, annotations=pod_annotations)
    def annotate(self, data: Any, labels: Object, annotations: Object) -> None:
        self.change(data, "metadata", labels=labels, annotations=annotations)

    @precondition(lambda self: self.oracle.pods)
    @rule(data=st.data(), at=moments, grace=st.sampled_from((0, 30)), finalizers=st.sampled_from(([], ["f"])))
    def begin_deletion(self, data: Any, at: str, grace: int, finalizers: list[str]) -> None:
        values = {"deletionTimestamp": at, "deletionGracePeriodSeconds": grace, "finalizers": finalizers}
        self.change(data, "metadata", **values)

    @precondition(lambda self: self.oracle.pods)
    @rule(data=st.data())
    def remove(self, data: Any) -> None:
        uid = data.draw(st.sampled_from(sorted(self.oracle.pods)))
        del self.oracle.pods[uid]
        pod = self.known.pop(uid)
        self.index.remove_pod(pod, 0.0)
        self.oracle.leaving.discard(uid)
        self.index.end_removal(pod.spec.node_name, uid)

    @precondition(lambda self: any(not has_ended(pod) for pod in self.oracle.pods.values()))
    @rule(data=st.data())
    def begin_removal(self, data: Any) -> None:
        running = sorted(uid for uid, pod in self.oracle.pods.items() if not has_ended(pod))
        uid = data.draw(st.sampled_from(running))
        if self.known[uid].is_terminated:
            return
        self.oracle.leaving.add(uid)
        self.index.begin_removal(self.known[uid])

    @precondition(lambda self: self.oracle.leaving)
    @rule(data=st.data())
    def give_up_removal(self, data: Any) -> None:
        uid = data.draw(st.sampled_from(sorted(self.oracle.leaving)))
        self.oracle.leaving.discard(uid)
        self.index.end_removal(self.known[uid].spec.node_name, uid)

    @rule(name=st.sampled_from(NAMESPACES), env=st.sampled_from(("", "prod")))
    def put_namespace(self, name: str, env: str) -> None:
        self.oracle.namespaces[name] = {"env": env} if env else {}
        self.index.put_namespace(namespace_of(name, self.oracle.namespaces[name]))

    @precondition(lambda self: self.oracle.namespaces)
    @rule(data=st.data())
    def remove_namespace(self, data: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.oracle.namespaces)))
        self.index.remove_namespace(namespace_of(name, self.oracle.namespaces.pop(name)))

    @rule(ticks=st.sampled_from((0, 1, 2, 5, -1, -4)))
    def pass_time(self, ticks: int) -> None:
        """Also back: a clock that was put right."""
        self.turn(ticks)

    @precondition(lambda self: self.oracle.now > 0)
    @rule()
    def pass_time_to_the_next_change(self) -> None:
        """Until the moment that the index names, nothing changes by itself."""
        due = self.index.classifier.next_due_at
        if due == float("inf"):
            assert self.let_go_at(EPOCH + timedelta(days=1000)) == self.oracle.let_go()
            return
        just_before = datetime.fromtimestamp(due, UTC) - timedelta(seconds=1)
        if just_before > self.now:
            assert self.let_go_at(just_before) == self.oracle.let_go()

    def let_go_at(self, moment: datetime) -> dict[str, str]:
        return replace(self.oracle, now=moment.timestamp()).let_go()

    @invariant()
    def they_agree(self) -> None:
        if not hasattr(self, "oracle"):
            return
        planned = collecting.plan(self.index, self.settings, 0.0)
        by_rules = {
            victim.pod.metadata.uid: victim.rule
            for victim in planned.victims
            if isinstance(victim.reason, RuleReason)
        }
        upstream = {
            victim.pod.metadata.uid for victim in planned.victims if isinstance(victim.reason, Reason)
        }
        expected = self.oracle.let_go()
        assert by_rules == {uid: name for uid, name in expected.items() if uid not in upstream}
        assert len(planned.victims) == len(by_rules) + len(upstream)
        assert not {uid for uid in by_rules.keys() | upstream if self.oracle.is_spared(self.oracle.pods[uid])}
        assert self.index.terminated_count == len(self.oracle.counted())
        self.each_pod_is_decided_as_in_the_plan(by_rules, upstream)

    def each_pod_is_decided_as_in_the_plan(self, by_rules: dict[str, str], upstream: set[str]) -> None:
        for uid, pod in self.known.items():
            victim = (
                collecting.victim_of(self.index, self.settings, pod) if not self.is_settled(uid) else None
            )
            assert (victim is not None) == (uid in by_rules or uid in upstream)
            if victim is not None:
                assert victim.rule == by_rules.get(uid, f"upstream/{victim.reason}")

    def teardown(self) -> None:
        """When all pods are gone, so is all that was kept of them."""
        if not self.made:
            return
        for uid in sorted(self.oracle.pods):
            self.index.remove_pod(self.known[uid], 0.0)
            self.index.end_removal(self.known[uid].spec.node_name, uid)
        empty = index_for(self.settings)
        for kept in ("_pods", "_terminating", "_settled"):
            assert getattr(self.index, kept) == getattr(empty, kept)
        classifier: Any = self.index.classifier
        for kept in ("terminated", "leaving", "_members", "_stuck", "_keep_until"):
            assert getattr(classifier, kept) == getattr(empty.classifier, kept)
        groups = classifier._groups
        assert (len(groups.due), [found for found in groups._groups if found]) == (0, [])

    def is_settled(self, uid: str) -> bool:
        return self.oracle.is_settled(self.oracle.pods[uid])


def has_ended(pod: Object) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def namespace_of(name: str, labels: dict[str, str]) -> Namespace:
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)


TestGoverning = Governing.TestCase
TestGoverning.settings = hypothesis_settings(max_examples=80, stateful_step_count=30, deadline=None)


class Translating(PodIndex):
    """An index under a policy that is given pods of the plain view."""

    def __init__(self, matcher: Matcher, *, marks_failed: bool) -> None:
        super().__init__(PolicyClassifier(matcher), marks_failed=marks_failed)
        self._matcher = matcher

    def add_pod(self, pod: Pod, now: float) -> bool:
        return super().add_pod(self.translated(pod), now)

    def update_pod(self, old: Pod, new: Pod, now: float) -> bool:
        return super().update_pod(self.translated(old), self.translated(new), now)

    def remove_pod(self, pod: Pod, now: float) -> bool:
        return super().remove_pod(self.translated(pod), now)

    def translated(self, pod: Pod) -> Pod:
        return msgspec.convert(msgspec.to_builtins(pod), view_for(self._matcher))


class CollectingUnderAnEmptyPolicy(Collecting):
    """The machine of the plain collector, its oracle included, with the index of a policy that says nothing."""

    def make_index(self) -> PodIndex:
        index = Translating(matcher_of(Policy()), marks_failed=self.settings.marks_failed)
        for name in ("x", "y"):
            index.put_namespace(namespace_of(name, {}))
        index.pass_time(EPOCH)
        return index


TestCollectingUnderAnEmptyPolicy = CollectingUnderAnEmptyPolicy.TestCase
TestCollectingUnderAnEmptyPolicy.settings = hypothesis_settings(
    max_examples=30, stateful_step_count=30, deadline=None
)


def chosen(policy: Policy, cluster: list[Object], now: datetime, threshold: int = 2) -> set[str]:
    settings = Settings(threshold=threshold, policy=policy)
    index = index_of(settings, cluster, None, None, now)
    return {victim.pod.metadata.uid for victim in collecting.plan(index, settings, 0.0).victims}


@hypothesis_settings(max_examples=60)
@given(policy=policies, cluster=clusters, now=times, data=st.data())
def test_one_exclude_more_never_deletes_more(
    policy: Policy, cluster: list[Object], now: datetime, data: Any
) -> None:
    if not policy.rules:
        return
    place = data.draw(st.integers(0, len(policy.rules) - 1))
    changed = replace(
        policy.rules[place], exclude=(*policy.rules[place].exclude, data.draw(selectors, label="exclude"))
    )
    rules = (*policy.rules[:place], changed, *policy.rules[place + 1 :])
    assert chosen(replace(policy, rules=rules), cluster, now) <= chosen(policy, cluster, now)


@hypothesis_settings(max_examples=60)
@given(policy=policies, cluster=clusters, now=times, more=protections)
def test_one_protection_more_never_deletes_more(
    policy: Policy, cluster: list[Object], now: datetime, more: Protection
) -> None:
    both = Protection(
        policy.protection.namespaces + more.namespaces,
        policy.protection.labels + more.labels,
        policy.protection.annotations + more.annotations,
        policy.protection.max_keep_until_seconds,
    )
    assert chosen(replace(policy, protection=both), cluster, now) <= chosen(policy, cluster, now)


@hypothesis_settings(max_examples=60)
@given(policy=policies, cluster=clusters, now=times, data=st.data())
def test_a_pod_that_gets_a_time_to_be_kept_until_is_not_chosen_and_costs_nobody_else_its_life(
    policy: Policy, cluster: list[Object], now: datetime, data: Any
) -> None:
    if not cluster:
        return
    # A bound of the policy could end it sooner.
    policy = replace(policy, protection=replace(policy.protection, max_keep_until_seconds=None))
    place = data.draw(st.integers(0, len(cluster) - 1))
    until = format_time(now + timedelta(seconds=data.draw(st.integers(1, 100))))
    pod = msgspec.json.decode(msgspec.json.encode(cluster[place]))
    pod["metadata"]["annotations"][KEEP_UNTIL] = until
    with_it = chosen(policy, [*cluster[:place], pod, *cluster[place + 1 :]], now)
    assert pod["metadata"]["uid"] not in with_it
    assert with_it <= chosen(policy, cluster, now)


@hypothesis_settings(max_examples=60)
@given(policy=policies, cluster=clusters, now=times)
def test_how_a_pod_stands_is_what_the_plan_says(policy: Policy, cluster: list[Object], now: datetime) -> None:
    settings = Settings(threshold=2, policy=policy)
    index = index_of(settings, cluster, None, None, now)
    victims = {each.pod.metadata.uid: each for each in collecting.victims(index, settings)}
    for node in ("", "n1", "n2"):
        for pod in index.pods_on(node):
            standing = collecting.standing_of(index, settings, pod)
            is_due = standing.due_at is not None and standing.due_at <= now.timestamp()
            assert is_due == (pod.metadata.uid in victims)
            if is_due:
                assert standing.rule == victims[pod.metadata.uid].rule
            if standing.protected_by or standing.excluded_by:
                assert standing.due_at is None or standing.rule.startswith("upstream/")


@hypothesis_settings(max_examples=60)
@given(policy=policies, cluster=clusters, now=times, back=st.integers(1, 200))
def test_a_clock_that_jumps_back_lets_nobody_go_whom_that_time_would_not(
    policy: Policy, cluster: list[Object], now: datetime, back: int
) -> None:
    settings = Settings(threshold=2, policy=policy)
    index = index_of(settings, cluster, None, None, now)
    earlier = now - timedelta(seconds=back)
    index.pass_time(earlier)
    found = {victim.pod.metadata.uid for victim in collecting.victims(index, settings)}
    assert found == chosen(policy, cluster, earlier)
