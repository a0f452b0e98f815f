"""The current and the update revision of a StatefulSet. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from podlife.workloads.controller_revisions import (
    ControllerRevision,
    RevisionDraft,
    is_revision_of,
    is_written_as,
    next_number,
    template_of,
    template_patch,
)
from podlife.workloads.statefulset.plan import TemplateRevision
from podlife.workloads.statefulset.views import StatefulSet


def find_revision(
    stateful_set: StatefulSet, revisions: Sequence[ControllerRevision]
) -> ControllerRevision | None:
    """The newest of `revisions`, which are in order, that has the set's template."""
    template = stateful_set.spec.template
    patch = template_patch(template)
    if (
        equal := next((each for each in reversed(revisions) if is_written_as(each, patch)), None)
    ) is not None:
        return equal
    return revisions[-1] if revisions and is_revision_of(revisions[-1], template) else None


def draft_revision(stateful_set: StatefulSet, revisions: Sequence[ControllerRevision]) -> RevisionDraft:
    template = stateful_set.spec.template
    labels = (template.get("metadata") or {}).get("labels") or {}
    # With the set's annotations, such as the change cause that `kubectl rollout history` shows.
    return RevisionDraft(
        template_patch(template), next_number(revisions), labels, stateful_set.metadata.annotations
    )


def current_revision(
    stateful_set: StatefulSet, revisions: Sequence[ControllerRevision], update: ControllerRevision
) -> ControllerRevision:
    """The revision of pods that are not updated yet, or the update revision."""
    name = stateful_set.status.get("currentRevision")
    return next((each for each in revisions if each.metadata.name == name), update)


def as_revision(revision: ControllerRevision, stateful_set: StatefulSet) -> TemplateRevision:
    template = template_of(revision)
    return TemplateRevision(
        revision.metadata.name, stateful_set.spec.template if template is None else template
    )
