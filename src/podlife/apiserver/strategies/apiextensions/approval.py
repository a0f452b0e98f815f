"""Groups that Kubernetes reserves for itself: a definition in one of them says who approved it."""

from __future__ import annotations

from urllib.parse import urlsplit

from podlife.api.codec import Object
from podlife.api.field_errors import FieldErrors, bad_value, required

APPROVAL = "api-approved.kubernetes.io"


def approval(group: str, annotations: Object) -> tuple[str, str]:
    """Whether a group that Kubernetes reserves for itself may be used: the reason of the condition, and its message."""
    if not group.endswith((".k8s.io", ".kubernetes.io")) and group not in ("k8s.io", "kubernetes.io"):
        return "", ""
    given = annotations.get(APPROVAL, "")
    needed = f'protected groups must have approval annotation "{APPROVAL}"'
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not given:
        return "MissingAnnotation", f"{needed}, {see}"
    if given.startswith("unapproved"):
        return "UnapprovedAnnotation", f'not approved: "{given}"'
    parts = urlsplit(given)
    if parts.scheme and parts.netloc:
        return "ApprovedAnnotation", f"approved in {given}"
    return "InvalidAnnotation", f'{needed} with either a URL or a reason starting with "unapproved", {see}'


def validate_approval(crd: Object, old: Object | None = None) -> FieldErrors:
    annotations = crd["metadata"].get("annotations") or {}
    reason, message = approval(crd["spec"]["group"], annotations)
    if (
        old is not None
        and reason == approval(crd["spec"]["group"], old["metadata"].get("annotations") or {})[0]
    ):
        return
    path = f"metadata.annotations[{APPROVAL}]"
    if reason == "InvalidAnnotation":
        yield bad_value(path, annotations.get(APPROVAL), message)
    elif reason == "MissingAnnotation":
        yield required(path, message)
