"""Annotations of a Deployment and its ReplicaSets: revisions, replica counts for proportional scaling, and the request
for a rollback, as in the API before apps/v1 (`kubectl rollout undo` restores the template itself). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from podlife.api.codec import Object
from podlife.workloads.deployment.rollout import HASH_LABEL, Rollout, is_same_template
from podlife.workloads.deployment.views import Deployment, max_surge
from podlife.workloads.replicaset.views import ReplicaSet

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
ROLLBACK_TO = "deprecated.deployment.rollback.to"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

NOT_SHARED = frozenset(
    (_LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO)
)
"""Annotations that a Deployment and its ReplicaSets do not share."""

_MOST_HISTORY_CHARACTERS = 2000
_INT64 = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_INT32 = re.compile(r"[0-9]{1,10}", re.ASCII)


def read_count(replica_set: ReplicaSet, annotation: str) -> int | None:
    """None if missing or invalid."""
    text = replica_set.metadata.annotations.get(annotation, "")
    count = int(text) if _INT32.fullmatch(text) else None
    return count if count is not None and count < 2**31 else None


def size_annotations(deployment: Deployment) -> dict[str, str]:
    """The Deployment's size that a ReplicaSet was scaled for: the basis of its share in proportional scaling."""
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
    """Annotations of the ReplicaSet of the current template, derived from its existing ones. Its revision never
    decreases, since older ReplicaSets may have been deleted. An earlier revision of its own is added to its history."""
    own = annotations.get(REVISION)
    before = _read_revision(own)
    if before is None:
        return dict(annotations)
    copied = {key: text for key, text in deployment.metadata.annotations.items() if key not in NOT_SHARED}
    result = {**annotations, **copied}
    if before < revision:
        result[REVISION] = str(revision)
        if own is not None:
            result[REVISION_HISTORY] = _longer_history(annotations.get(REVISION_HISTORY, ""), own)
    return result


def _longer_history(history: str, revision: str) -> str:
    """The oldest entries are dropped if it gets too long."""
    longer = f"{history},{revision}" if history else revision
    surplus = len(longer) - _MOST_HISTORY_CHARACTERS
    if surplus <= 0:
        return longer
    # Cut whole entries at once and keep the last one: removing them one by one would take minutes for a text that
    # another client wrote.
    cut = longer.find(",", surplus - 1)
    return longer[cut + 1 :] if cut >= 0 else revision


def _read_revision(text: str | None) -> int | None:
    if not text:
        return 0
    number = int(text) if _INT64.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


@dataclass(frozen=True, slots=True)
class Rollback:
    """The event to record, and the template to restore; None if nothing changes."""

    event: tuple[str, str, str]
    target: ReplicaSet | None = None

    def apply(self, obj: Object) -> Object:
        """The Deployment as it should be written, without the request."""
        metadata = obj["metadata"]
        annotations = dict(metadata.get("annotations") or {})
        if self.target is not None:
            annotations = _annotations_from(self.target, annotations)
            obj = {**obj, "spec": {**obj["spec"], "template": _without_hash(self.target)}}
        annotations.pop(ROLLBACK_TO, None)
        return {**obj, "metadata": {**metadata, "annotations": annotations}}


def rollback_revision(deployment: Deployment) -> int | None:
    """The requested revision, 0 for the previous one; None if there is no request."""
    text = deployment.metadata.annotations.get(ROLLBACK_TO, "")
    return int(text) if _INT64.fullmatch(text) else None


def plan_rollback(rollout: Rollout, revision: int) -> Rollback:
    name = rollout.deployment.metadata.name
    revision = revision or _last_revision(rollout)
    if revision == 0:
        return _refuse("DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
    target = next((each for each in rollout.replica_sets if revision_of(each) == revision), None)
    if target is None:
        message = "Unable to find the revision to rollback to."
        return _refuse("DeploymentRollbackRevisionNotFound", message)
    if is_same_template(target.spec.template, rollout.deployment.spec.template):
        message = f'The rollback revision contains the same template as current deployment "{name}"'
        return _refuse("DeploymentRollbackTemplateUnchanged", message)
    message = f'Rolled back deployment "{name}" to revision {revision}'
    return Rollback(("Normal", "DeploymentRollback", message), target)


def _refuse(reason: str, message: str) -> Rollback:
    return Rollback(("Warning", reason, message))


def _last_revision(rollout: Rollout) -> int:
    """The revision before the current one."""
    revisions = sorted(revision_of(each) or 0 for each in rollout.replica_sets)
    return revisions[-2] if len(revisions) > 1 else 0


def _annotations_from(target: ReplicaSet, annotations: Mapping[str, str]) -> dict[str, str]:
    # The annotations are restored too, for example the change cause.
    own = {key: text for key, text in annotations.items() if key in NOT_SHARED}
    theirs = target.metadata.annotations.items()
    return own | {key: text for key, text in theirs if key not in NOT_SHARED}


def _without_hash(target: ReplicaSet) -> Object:
    template = target.spec.template
    metadata = dict(template.get("metadata") or {})
    labels = metadata.get("labels") or {}
    metadata["labels"] = {key: text for key, text in labels.items() if key != HASH_LABEL}
    return {**template, "metadata": metadata}
