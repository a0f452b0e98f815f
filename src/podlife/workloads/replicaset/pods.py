"""Sorts the pods of a ReplicaSet: active, terminating, and those to adopt or release. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from podlife.api.selectors import LabelSelector
from podlife.podcontrol import is_active, is_ready, is_terminal, is_terminating, ready_since
from podlife.workloads.views import WorkloadPod


@dataclass(frozen=True, slots=True)
class Sorted:
    # Its own, and wanted.
    active: list[WorkloadPod]
    # Its own, and going.
    terminating: list[WorkloadPod]
    # Not its own by right: to be adopted or released.
    claimable: list[WorkloadPod]


def sort_pods(
    owned: Iterable[WorkloadPod],
    orphans: Iterable[WorkloadPod],
    selector: LabelSelector,
    labels: Mapping[str, str],
) -> Sorted:
    """`owned` are those whose controller it is, `orphans` those of its namespace that have none. `labels` are the
    template's: a pod that has just these needs no further look, and nearly all have."""
    is_usual = selector.matches(labels)
    active: list[WorkloadPod] = []
    terminating: list[WorkloadPod] = []
    claimable: list[WorkloadPod] = []
    for pod in owned:
        carried = pod.metadata.labels
        is_match = (is_usual and carried == labels) or selector.matches(carried)
        if is_active(pod):
            (active if is_match else claimable).append(pod)
        elif is_match and is_terminating(pod):
            terminating.append(pod)
    claimable += [pod for pod in orphans if selector.matches(pod.metadata.labels) and is_active(pod)]
    return Sorted(active, terminating, claimable)


def count_labelled(pods: Collection[WorkloadPod], labels: Mapping[str, str]) -> int:
    """How many have all the labels of the template, and perhaps others."""
    wanted = labels.items()
    return sum(1 for pod in pods if pod.metadata.labels == labels or wanted <= pod.metadata.labels.items())


def has_other_worth(old: WorkloadPod, new: WorkloadPod) -> bool:
    """Whether the pod counts otherwise than before: at its end, ready, or ready since another time."""
    return (
        is_terminal(old) != is_terminal(new)
        or is_ready(old) != is_ready(new)
        or ready_since(old) != ready_since(new)
    )
