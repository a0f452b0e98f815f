"""Pods, which combine the rules of the files beside this one, and PodDisruptionBudgets.

Two more strategies serve subresources of pods that write one part of the spec: ephemeral containers, resources.
"""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults import default_pod
from podlife.api.defaults.fields import fill_absent
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden
from podlife.api.labels import validate_label_selector
from podlife.apiserver.strategies.core.pod.containers import validate_image
from podlife.apiserver.strategies.core.pod.resize import (
    has_other_counts,
    resized_spec,
    unresizable,
    validate_resize,
)
from podlife.apiserver.strategies.core.pod.spec import validate_pod_spec
from podlife.apiserver.strategies.core.pod.status import (
    default_pod_status,
    first_status,
    keep_of_old_status,
    validate_pod_status,
)
from podlife.apiserver.strategies.core.pod.template import (
    default_selector,
    drop_disabled_fields,
    shown_selector,
    validate_at_most_all,
    validate_int_or_percent,
)
from podlife.apiserver.strategies.core.pod.update import (
    MIRROR,
    validate_annotation_update,
    validate_ephemeral_update,
    validate_spec_update,
)
from podlife.apiserver.strategies.core.pod.warnings import name_warnings, spec_warnings
from podlife.apiserver.strategies.field_checks import non_negative, one_of
from podlife.apiserver.strategies.object_meta import default_metadata
from podlife.apiserver.strategies.strategy import Strategy, keep_field

_BUDGET_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_EVICTION_POLICIES = frozenset({"AlwaysAllow", "IfHealthyBudget"})
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


class PodStrategy(Strategy):
    has_generation = True
    has_status = True
    returns_deleted_object = True
    kept_by_status = (("metadata", "deletionTimestamp"), ("metadata", "ownerReferences"))

    def default(self, obj: Object) -> None:
        default_metadata(obj["metadata"])
        default_pod(obj)
        if status := obj.get("status"):
            default_pod_status(status)

    def prepare_create(self, obj: Object) -> None:
        spec = obj["spec"]
        obj["status"] = first_status(spec, obj["metadata"].get("creationTimestamp"))
        drop_disabled_fields(spec)
        if labels := obj["metadata"].get("labels"):
            _merge_label_keys(spec, labels)

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        drop_disabled_fields(new["spec"])

    def validate(self, obj: Object) -> list[FieldError]:
        meta, spec = obj["metadata"], obj["spec"]
        errors: list[FieldError] = []
        if annotations := meta.get("annotations"):
            errors += _validate_annotations(annotations, spec)
        errors += validate_pod_spec(spec, "spec", pod_name=meta.get("name", ""))
        if "volumes" in spec and not spec.get("serviceAccountName"):
            errors += _validate_no_tokens(spec["volumes"])
        for field in ("containers", "initContainers"):
            for index, container in enumerate(spec.get(field, ())):
                errors += validate_image(container, f"spec.{field}[{index}]")
        # Only a new object has no resourceVersion: these two apply to a create alone.
        if not meta.get("resourceVersion"):
            if spec.get("ephemeralContainers"):
                errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
            if spec.get("nodeName") and spec.get("schedulingGates"):
                detail = "cannot be set until all schedulingGates have been cleared"
                errors.append(forbidden("spec.nodeName", detail))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        prefix = new["metadata"].get("generateName", "")
        problems = self.validate_name(prefix, prefix=True) if prefix else []
        errors = [bad_value("metadata.generateName", prefix, problem) for problem in problems]
        errors += validate_annotation_update(new["metadata"], old["metadata"])
        return [*errors, *validate_spec_update(new["spec"], old["spec"])]

    def prepare_status_update(self, new: Object, old: Object) -> None:
        super().prepare_status_update(new, old)
        # Old kubelets damaged owner references: a status update never carries them.
        keep_field(new["metadata"], old["metadata"], "ownerReferences")
        keep_of_old_status(new.setdefault("status", {}), old.get("status") or {})

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = validate_annotation_update(new["metadata"], old["metadata"])
        return [*errors, *validate_pod_status(new, old)]

    def warnings(self, obj: Object) -> list[str]:
        return name_warnings(obj, "the Pod's hostname") + spec_warnings(obj["spec"], "spec")

    def first_grace_seconds(self, obj: Object, requested: int | None) -> int | None:
        """GD-01 to GD-05: none for a pod that never ran or has finished, otherwise the requested period, at least 1
        if negative."""
        spec = obj.get("spec") or {}
        if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
            return 0
        grace: int | None = spec.get("terminationGracePeriodSeconds") if requested is None else requested
        if grace is None:
            return 0
        return grace if grace >= 0 else 1


def _merge_label_keys(spec: Object, labels: dict[str, str]) -> None:
    """matchLabelKeys name labels of the pod: their values join the selectors, once, at creation."""
    for constraint in spec.get("topologySpreadConstraints", ()):
        _merge_keys(constraint, labels)
    affinity = spec.get("affinity")
    if not affinity:
        return
    for field in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(field) or {}
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
            _merge_keys(weighted.get("podAffinityTerm") or {}, labels)
        for term in terms.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
            _merge_keys(term, labels)


def _merge_keys(holder: Object, labels: dict[str, str]) -> None:
    selector = holder.get("labelSelector")
    if selector is None:
        return
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in holder.get(field, ()):
            if key in labels:
                added = {"key": key, "operator": operator, "values": [labels[key]]}
                selector.setdefault("matchExpressions", []).append(added)


def _validate_annotations(annotations: dict[str, str], spec: Object) -> FieldErrors:
    if MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        yield bad_value(f"metadata.annotations[{MIRROR}]", annotations[MIRROR], detail)
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not _is_int32(cost):
        yield bad_value(f"metadata.annotations[{_DELETION_COST}]", cost, "must be a 32bit integer")


def _is_int32(text: str) -> bool:
    # As upstream parses it: no plus sign, no leading zeros.
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or (len(digits) > 1 and digits[0] == "0"):
        return False
    return len(digits) <= 10 and -(2**31) <= int(text) < 2**31


def _validate_no_tokens(volumes: list[Object]) -> FieldErrors:
    for index, volume in enumerate(volumes):
        for number, source in enumerate((volume.get("projected") or {}).get("sources", ())):
            if "serviceAccountToken" in source:
                path = f"spec.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                yield forbidden(path, "must not be specified when serviceAccountName is not set")


def _keep_metadata(new: Object, old: Object) -> None:
    """Leave alone what subresources do not write (upstream's ResetObjectMetaForStatus)."""
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        keep_field(new["metadata"], old["metadata"], field)


class EphemeralContainersStrategy(PodStrategy):
    """`pods/ephemeralcontainers`: only the ephemeral containers of an update count."""

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        _keep_metadata(new, old)
        wanted = new["spec"].get("ephemeralContainers")
        new["spec"] = {key: value for key, value in old["spec"].items() if key != "ephemeralContainers"}
        if wanted:
            new["spec"]["ephemeralContainers"] = wanted

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        if MIRROR in (old["metadata"].get("annotations") or {}):
            return [forbidden("[]", "static pods do not support ephemeral containers")]
        errors = validate_annotation_update(new["metadata"], old["metadata"])
        return [*errors, *validate_ephemeral_update(new["spec"], old["spec"])]


class ResizeStrategy(PodStrategy):
    """`pods/resize`: only resources and resize policies of an update count."""

    def prepare_update(self, new: Object, old: Object) -> None:
        if has_other_counts(new["spec"], old["spec"]):
            # Rejected, by an error that shows the given status.
            return
        super().prepare_update(new, old)
        _keep_metadata(new, old)
        new["spec"] = resized_spec(new["spec"], old["spec"])

    def validate(self, obj: Object) -> list[FieldError]:
        """`validate_update` validates all of it: a pod that cannot be resized has one error."""
        return []

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return unresizable(old) or [*super().validate(new), *validate_resize(new, old)]

    def warnings(self, obj: Object) -> list[str]:
        return []


class PodDisruptionBudgetStrategy(Strategy):
    has_generation = True
    has_status = True
    unconditional_update = False

    def default(self, obj: Object) -> None:
        default_selector(obj.setdefault("spec", {}))
        fill_absent(obj.setdefault("status", {}), **dict.fromkeys(_BUDGET_COUNTS, 0))

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = dict.fromkeys(_BUDGET_COUNTS, 0)

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors: list[FieldError] = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            detail = "minAvailable and maxUnavailable cannot be both set"
            errors.append(bad_value("spec", _shown_budget(spec), detail))
        for field in ("minAvailable", "maxUnavailable"):
            if (value := spec.get(field)) is not None:
                errors += validate_int_or_percent(f"spec.{field}", value)
                errors += validate_at_most_all(f"spec.{field}", value)
        errors += validate_label_selector(spec.get("selector"), "spec.selector")
        policy = spec.get("unhealthyPodEvictionPolicy")
        return errors + one_of("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES)

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        for field in _BUDGET_COUNTS:
            errors += non_negative(f"status.{field}", (new.get("status") or {}).get(field))
        return errors


def _shown_budget(spec: Object) -> Object:
    return {
        "MinAvailable": spec.get("minAvailable"),
        "Selector": shown_selector(spec.get("selector")),
        "MaxUnavailable": spec.get("maxUnavailable"),
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }
