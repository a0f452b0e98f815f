"""The pod view and the index that belong to settings, with or without a policy."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from podlife.api.codec import Object
from podlife.api.views import Node
from podlife.podgc.classifier import UpstreamClassifier
from podlife.podgc.index import PodIndex
from podlife.podgc.keep_until import kept_by
from podlife.podgc.plan import Victim
from podlife.podgc.policy.engine.classifier import PolicyClassifier
from podlife.podgc.policy.engine.facts import as_policy_pod, protection_by, view_for
from podlife.podgc.policy.engine.matching import matcher_of
from podlife.podgc.reasons import RuleReason
from podlife.podgc.settings import Settings
from podlife.podgc.views import Namespace, Pod


def pod_view(settings: Settings) -> type[Pod]:
    return Pod if settings.policy is None else view_for(matcher_of(settings.policy))


def index_for(settings: Settings) -> PodIndex:
    """An empty index for pods of `pod_view`."""
    if settings.policy is None:
        return PodIndex(UpstreamClassifier(), marks_failed=settings.marks_failed)
    return PodIndex(PolicyClassifier(matcher_of(settings.policy)), marks_failed=settings.marks_failed)


def protection_of(settings: Settings, pod: Pod, now: datetime) -> str:
    """What protects a pod that is not in an index, or ""."""
    if settings.policy is None:
        return kept_by(pod.kept_until, now.timestamp())
    namespace = matcher_of(settings.policy).namespace_bits(pod.metadata.namespace, {})
    return protection_by(namespace, as_policy_pod(pod), now.timestamp())


def reason_to_keep(settings: Settings, victim: Victim, pod: Pod, now: datetime) -> str:
    """Why a victim that has changed since the plan must be kept, or "". Only the pod itself is known."""
    if protection := protection_of(settings, pod, now):
        return f"protected by {protection}"
    if settings.policy is None:
        return ""
    old, new = as_policy_pod(victim.pod), as_policy_pod(pod)
    is_same = (old.facts, old.completed_at, old.owner) == (new.facts, new.completed_at, new.owner)
    if isinstance(victim.reason, RuleReason) and not is_same:
        return "changed since the plan; sweep again"
    return ""


def index_of(
    settings: Settings,
    pods: Iterable[Object],
    nodes: Iterable[Object] | None,
    namespaces: Iterable[Object] | None,
    now: datetime,
) -> PodIndex:
    """The index of these objects. With None, every node or namespace that a pod names exists, ready and without
    labels."""
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
