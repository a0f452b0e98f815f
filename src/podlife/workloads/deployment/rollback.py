"""Rollback requested by an annotation, as in the API before apps/v1. Pure.

`kubectl rollout undo` does not use it: it restores the old template itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podlife.api.codec import Object
from podlife.workloads.deployment.annotations import INT64, OF_ITS_OWN, ROLLBACK_TO, revision_of
from podlife.workloads.deployment.new_replica_set import HASH_LABEL, is_same_template
from podlife.workloads.deployment.rollout import Rollout
from podlife.workloads.deployment.views import Deployment
from podlife.workloads.replicaset.views import ReplicaSet


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
    return int(text) if INT64.fullmatch(text) else None


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
    """The one before the current."""
    revisions = sorted(revision_of(each) or 0 for each in rollout.replica_sets)
    return revisions[-2] if len(revisions) > 1 else 0


def _annotations_from(target: ReplicaSet, annotations: Mapping[str, str]) -> dict[str, str]:
    # The annotations are restored too, for example the change cause.
    own = {key: text for key, text in annotations.items() if key in OF_ITS_OWN}
    theirs = target.metadata.annotations.items()
    return own | {key: text for key, text in theirs if key not in OF_ITS_OWN}


def _without_hash(target: ReplicaSet) -> Object:
    template = target.spec.template
    metadata = dict(template.get("metadata") or {})
    labels = metadata.get("labels") or {}
    metadata["labels"] = {key: text for key, text in labels.items() if key != HASH_LABEL}
    return {**template, "metadata": metadata}
