"""StatefulSets, and the ControllerRevisions of StatefulSets and DaemonSets."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.api.defaults import default_claim_spec
from podlife.api.field_errors import FieldError, bad_value, forbidden, required
from podlife.api.labels import validate_annotations, validate_labels
from podlife.api.names import check_dns_label
from podlife.apiserver.strategies.apps.replicasets import (
    TemplatedStrategy,
    validate_collisions,
    validate_sums,
)
from podlife.apiserver.strategies.core.persistent_volume_claims import validate_claim_spec
from podlife.apiserver.strategies.core.pod.template import (
    is_readable,
    validate_counts,
    validate_long_running,
    validate_selector,
    validate_template,
)
from podlife.apiserver.strategies.field_checks import immutable, non_negative, not_one_of, problems_at
from podlife.apiserver.strategies.object_meta import default_metadata
from podlife.apiserver.strategies.strategy import Strategy

_RETENTION = ("Retain", "Delete")
_MUTABLE = frozenset(
    {
        "minReadySeconds",
        "ordinals",
        "persistentVolumeClaimRetentionPolicy",
        "replicas",
        "revisionHistoryLimit",
        "template",
        "updateStrategy",
    }
)
_FORBIDDEN = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


class StatefulSetStrategy(TemplatedStrategy):
    first_status: Object = {"availableReplicas": 0, "replicas": 0}

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        return check_dns_label(name, prefix=prefix)

    def default(self, obj: Object) -> None:
        super().default(obj)
        spec = obj["spec"]
        if not spec.get("podManagementPolicy"):
            spec["podManagementPolicy"] = "OrderedReady"
        if not spec.get("serviceName"):
            spec["serviceName"] = ""
        for field in ("minReadySeconds", "volumeClaimTemplates"):
            if not spec.get(field, True):
                del spec[field]
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        for field in ("whenDeleted", "whenScaled"):
            if not retention.get(field):
                retention[field] = "Retain"
        _default_update_strategy(spec)
        for claim in spec.get("volumeClaimTemplates", ()):
            claim.setdefault("apiVersion", "v1")
            claim.setdefault("kind", "PersistentVolumeClaim")
            default_metadata(claim.setdefault("metadata", {}))
            default_claim_spec(claim.setdefault("spec", {}))
            claim.setdefault("status", {}).setdefault("phase", "Pending")

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = _validate_policies(spec)
        # Claims and the service's name are immutable: an old mistake in them blocks nothing.
        is_new = not obj["metadata"].get("resourceVersion")
        for index, claim in enumerate(spec.get("volumeClaimTemplates", ()) if is_new else ()):
            errors += validate_claim_spec(claim["spec"], f"spec.volumeClaimTemplates[{index}].spec")
        for field in ("replicas", "minReadySeconds"):
            errors += non_negative(f"spec.{field}", spec.get(field))
        errors += non_negative("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))
        if is_new and (service := spec["serviceName"]):
            errors += problems_at("spec.serviceName", service, check_dns_label(service))
        errors += validate_selector(spec, "statefulset", unreadable="")
        if is_readable(spec.get("selector")):
            errors += validate_template(_template_with_claims(spec), "spec.template")
            # Upstream validates these a second time, for StatefulSets only.
            meta = spec["template"]["metadata"]
            errors += validate_labels(meta.get("labels") or {}, "spec.template.labels")
            errors += validate_annotations(meta.get("annotations") or {}, "spec.template.annotations")
        return errors + validate_long_running(spec, "StatefulSet")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        before, after = old["spec"], new["spec"]
        if all(before.get(field) == after.get(field) for field in (before.keys() | after.keys()) - _MUTABLE):
            return []
        return [forbidden("spec", _FORBIDDEN)]

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        parts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
        errors = validate_counts(new["status"], ("replicas", *parts))
        errors += validate_sums(new["status"], parts, ready="status.readyReplicas")
        return errors + validate_collisions(new, old)


def _default_update_strategy(spec: Object) -> None:
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    rolling = strategy.get("rollingUpdate")
    if rolling is not None:
        if strategy["type"] == "RollingUpdate":
            rolling.setdefault("partition", 0)
        # Behind a feature gate that v1.36 disables.
        rolling.pop("maxUnavailable", None)


def _validate_policies(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if (policy := spec["podManagementPolicy"]) not in ("OrderedReady", "Parallel"):
        detail = "must be 'OrderedReady' or 'Parallel'"
        errors.append(bad_value("spec.podManagementPolicy", policy, detail))
    strategy = spec["updateStrategy"]
    kind, rolling, path = strategy["type"], strategy.get("rollingUpdate"), "spec.updateStrategy"
    shown: Any = (
        None if rolling is None else {"Partition": rolling.get("partition", 0), "MaxUnavailable": None}
    )
    if kind == "OnDelete":
        if rolling is not None:
            detail = "only allowed for updateStrategy 'RollingUpdate'"
            errors.append(bad_value(f"{path}.rollingUpdate", shown, detail))
    elif kind == "RollingUpdate":
        errors += non_negative(f"{path}.rollingUpdate.partition", (rolling or {}).get("partition"))
    else:
        value = {"Type": kind, "RollingUpdate": shown}
        errors.append(bad_value(path, value, "must be 'RollingUpdate' or 'OnDelete'"))
    for field in ("whenDeleted", "whenScaled"):
        retention = spec["persistentVolumeClaimRetentionPolicy"][field]
        if retention not in _RETENTION:
            at = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            errors.append(not_one_of(at, retention, _RETENTION))
    return errors


def _template_with_claims(spec: Object) -> Object:
    """The template as its pods will be: each claim is a volume, and the set names the hosts."""
    template, claims = spec["template"], spec.get("volumeClaimTemplates", ())
    pod_spec = {
        field: value for field, value in template["spec"].items() if field not in ("hostname", "subdomain")
    }
    if claims:
        names = {claim["metadata"].get("name", "") for claim in claims}
        others = [volume for volume in pod_spec.get("volumes", ()) if volume.get("name") not in names]
        added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(names)]
        pod_spec["volumes"] = added + others
    return {**template, "spec": pod_spec}


class ControllerRevisionStrategy(Strategy):
    def default(self, obj: Object) -> None:
        obj.setdefault("revision", 0)

    def validate(self, obj: Object) -> list[FieldError]:
        errors = non_negative("revision", obj["revision"])
        if obj.get("data") is None and not obj["metadata"].get("resourceVersion"):
            errors.append(required("data", "data is mandatory"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable("data", new.get("data"), old.get("data"))
