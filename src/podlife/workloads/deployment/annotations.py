"""Annotations that a Deployment writes to its ReplicaSets: revisions, and replica counts for proportional scaling.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from podlife.workloads.deployment.views import Deployment, max_surge
from podlife.workloads.replicaset.views import ReplicaSet

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
ROLLBACK_TO = "deprecated.deployment.rollback.to"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

OF_ITS_OWN = frozenset(
    (_LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO)
)
"""Annotations that a Deployment and its ReplicaSets do not share."""

_MOST_HISTORY_CHARACTERS = 2000
INT64 = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_INT32 = re.compile(r"[0-9]{1,10}", re.ASCII)


def read_count(replica_set: ReplicaSet, annotation: str) -> int | None:
    """None if missing or invalid."""
    text = replica_set.metadata.annotations.get(annotation, "")
    count = int(text) if _INT32.fullmatch(text) else None
    return count if count is not None and count < 2**31 else None


def size_annotations(deployment: Deployment) -> dict[str, str]:
    """What a ReplicaSet was scaled for; when the Deployment is scaled, by what its share is reckoned."""
    replicas = deployment.spec.replicas
    return {DESIRED_REPLICAS: str(replicas), MAX_REPLICAS: str(replicas + max_surge(deployment))}


def revision_of(replica_set: ReplicaSet) -> int | None:
    """0 if there is none, None if it is invalid."""
    return _read_revision(replica_set.metadata.annotations.get(REVISION))


def highest_revision(replica_sets: Iterable[ReplicaSet]) -> int:
    return max((revision_of(each) or 0 for each in replica_sets), default=0)


def annotations_of_new(
    deployment: Deployment, annotations: Mapping[str, str], revision: int
) -> dict[str, str]:
    """What the ReplicaSet of the current template should have, given what it has. Its revision only grows: old ones
    may have been removed since it was given. One it had before, when it was current before, becomes its history."""
    own = annotations.get(REVISION)
    before = _read_revision(own)
    if before is None:
        return dict(annotations)
    copied = {key: text for key, text in deployment.metadata.annotations.items() if key not in OF_ITS_OWN}
    result = {**annotations, **copied}
    if before < revision:
        result[REVISION] = str(revision)
        if own is not None:
            result[REVISION_HISTORY] = _longer_history(annotations.get(REVISION_HISTORY, ""), own)
    return result


def _longer_history(history: str, revision: str) -> str:
    """The oldest are forgotten where it gets too long."""
    longer = f"{history},{revision}" if history else revision
    surplus = len(longer) - _MOST_HISTORY_CHARACTERS
    if surplus <= 0:
        return longer
    # Whole entries go, and the last one stays in any case. To take them off one by one would take minutes for what
    # somebody else may have written here.
    cut = longer.find(",", surplus - 1)
    return longer[cut + 1 :] if cut >= 0 else revision


def _read_revision(text: str | None) -> int | None:
    if not text:
        return 0
    number = int(text) if INT64.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None
