"""What settings with a policy ask for: the view of pods and the index that go with it; a decision with no cluster.

Without a policy everything is as it was: the plain view, the plain index.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import cast

import msgspec

from podlife.api.codec import Object
from podlife.api.views import Node
from podlife.podgc.index import PodIndex
from podlife.podgc.keep_until import kept_by
from podlife.podgc.planner import Plan, Victim, plan
from podlife.podgc.policy.engine.classifier import GovernedIndex
from podlife.podgc.policy.engine.facts import GovernedPod, protection_by, view_for
from podlife.podgc.policy.engine.matching import matcher_of
from podlife.podgc.policy.model import Policy
from podlife.podgc.settings import RuleReason, Settings
from podlife.podgc.views import Namespace, Pod

__all__ = ["evaluate", "index_for", "index_of", "pod_view", "protection_of", "reason_to_keep"]


def pod_view(settings: Settings) -> type[Pod]:
    return Pod if settings.policy is None else view_for(matcher_of(settings.policy))


def index_for(settings: Settings) -> PodIndex:
    """An empty index for pods of `pod_view`."""
    if settings.policy is None:
        return PodIndex(marks_failed=settings.marks_failed)
    return GovernedIndex(matcher_of(settings.policy), marks_failed=settings.marks_failed)


def protection_of(settings: Settings, pod: Pod, now: datetime) -> str:
    """What protects a pod that is in no index, or ""."""
    if settings.policy is None:
        return kept_by(pod.kept_until, now.timestamp())
    fit = matcher_of(settings.policy).fit_of(pod.metadata.namespace, {})
    return protection_by(fit, cast(GovernedPod, pod), now.timestamp())


def reason_to_keep(settings: Settings, victim: Victim, pod: Pod, now: datetime) -> str:
    """Why a victim that is another by now must be decided about anew, or "": nothing else is known than the pod."""
    if protection := protection_of(settings, pod, now):
        return f"protected meanwhile by {protection}"
    if settings.policy is None:
        return ""
    old, new = cast(GovernedPod, victim.pod), cast(GovernedPod, pod)
    is_same = (old.facts, old.completed_at, old.owner) == (new.facts, new.completed_at, new.owner)
    if isinstance(victim.reason, RuleReason) and not is_same:
        return "changed meanwhile, its rule must decide anew: sweep again"
    return ""


def index_of(
    settings: Settings,
    pods: Iterable[Object],
    nodes: Iterable[Object] | None,
    namespaces: Iterable[Object] | None,
    now: datetime,
) -> PodIndex:
    """The index of these objects. Nodes or namespaces that are not given are all there: those that pods name, ready
    and without labels."""
    view = pod_view(settings)
    found = [msgspec.convert(pod, view) for pod in pods]
    if nodes is None:
        nodes = (
            {"metadata": {"name": name}} for name in sorted({pod.spec.node_name for pod in found} - {""})
        )
    if namespaces is None:
        names = sorted({pod.metadata.namespace for pod in found})
        namespaces = ({"metadata": {"name": name}} for name in names)
    index = index_for(settings)
    index.pass_time(now)
    for namespace in namespaces:
        index.put_namespace(msgspec.convert(namespace, Namespace))
    for node in nodes:
        index.put_node(msgspec.convert(node, Node))
    for pod in found:
        index.add_pod(pod, 0.0)
    return index


def evaluate(
    policy: Policy | None,
    pods: Iterable[Object],
    nodes: Iterable[Object] | None,
    namespaces: Iterable[Object] | None,
    settings: Settings,
    now: datetime,
) -> Plan:
    """What would be collected of these objects, as a server gives them, at this time; see `index_of`."""
    settings = replace(settings, policy=policy)
    return plan(index_of(settings, pods, nodes, namespaces, now), settings, 0.0)
