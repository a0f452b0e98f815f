"""StatefulSets, and the ControllerRevisions of StatefulSets and DaemonSets."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.api.defaults import default_claim_spec
from podlife.api.defaults.fields import drop_empty_fields, fill_absent, fill_empty
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden, required
from podlife.api.labels import validate_annotations, validate_labels
from podlife.api.names import check_dns_label
from podlife.apiserver.strategies.core.persistent_volumes import validate_claim_spec
from podlife.apiserver.strategies.core.pod.template import (
    TemplatedStrategy,
    is_readable,
    validate_long_running,
    validate_selector,
    validate_template,
)
from podlife.apiserver.strategies.field_checks import check_at, immutable, non_negative, one_of
from podlife.apiserver.strategies.object_meta import default_metadata
from podlife.apiserver.strategies.strategy import Strategy

_RETENTION = ("Retain", "Delete")
_MUTABLE = frozenset(
    {"minReadySeconds", "ordinals", "persistentVolumeClaimRetentionPolicy", "replicas"}
    | {"revisionHistoryLimit", "template", "updateStrategy"}
)
_FORBIDDEN = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


class StatefulSetStrategy(TemplatedStrategy):
    first_status: Object = {"availableReplicas": 0, "replicas": 0}
    parts_of_replicas = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    counts = ("replicas", *parts_of_replicas)
    ready_path = "status.readyReplicas"
    validate_name = staticmethod(check_dns_label)

    def default(self, obj: Object) -> None:
        super().default(obj)
        spec = obj["spec"]
        fill_empty(spec, podManagementPolicy="OrderedReady", serviceName="")
        drop_empty_fields(spec, "minReadySeconds", "volumeClaimTemplates")
        fill_absent(spec, replicas=1, revisionHistoryLimit=10)
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        fill_empty(retention, whenDeleted="Retain", whenScaled="Retain")
        _default_update_strategy(spec)
        for claim in spec.get("volumeClaimTemplates", ()):
            fill_absent(claim, apiVersion="v1", kind="PersistentVolumeClaim")
            default_metadata(claim.setdefault("metadata", {}))
            default_claim_spec(claim.setdefault("spec", {}))
            claim.setdefault("status", {}).setdefault("phase", "Pending")

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = list(_validate_policies(spec))
        # Claims and the service's name are immutable: an old mistake in them blocks nothing.
        is_new = not obj["metadata"].get("resourceVersion")
        for index, claim in enumerate(spec.get("volumeClaimTemplates", ()) if is_new else ()):
            errors += validate_claim_spec(claim["spec"], f"spec.volumeClaimTemplates[{index}].spec")
        for field in ("replicas", "minReadySeconds"):
            errors += non_negative(f"spec.{field}", spec.get(field))
        errors += non_negative("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))
        if is_new and (service := spec["serviceName"]):
            errors += check_at("spec.serviceName", service, check_dns_label)
        errors += validate_selector(spec, "statefulset", unreadable="")
        if is_readable(spec.get("selector")):
            errors += validate_template(_template_with_claims(spec), "spec.template")
            # Upstream validates these a second time, for StatefulSets only.
            meta = spec["template"]["metadata"]
            errors += validate_labels(meta.get("labels") or {}, "spec.template.labels")
            errors += validate_annotations(meta.get("annotations") or {}, "spec.template.annotations")
        return [*errors, *validate_long_running(spec, "StatefulSet")]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        before, after = old["spec"], new["spec"]
        if all(before.get(field) == after.get(field) for field in (before.keys() | after.keys()) - _MUTABLE):
            return []
        return [forbidden("spec", _FORBIDDEN)]


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


def _validate_policies(spec: Object) -> FieldErrors:
    if (policy := spec["podManagementPolicy"]) not in ("OrderedReady", "Parallel"):
        yield bad_value("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = spec["updateStrategy"]
    kind, rolling, path = strategy["type"], strategy.get("rollingUpdate"), "spec.updateStrategy"
    shown: Any = (
        None if rolling is None else {"Partition": rolling.get("partition", 0), "MaxUnavailable": None}
    )
    if kind == "OnDelete":
        if rolling is not None:
            yield bad_value(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")
    elif kind == "RollingUpdate":
        yield from non_negative(f"{path}.rollingUpdate.partition", (rolling or {}).get("partition"))
    else:
        value = {"Type": kind, "RollingUpdate": shown}
        yield bad_value(path, value, "must be 'RollingUpdate' or 'OnDelete'")
    for field in ("whenDeleted", "whenScaled"):
        retention = spec["persistentVolumeClaimRetentionPolicy"][field]
        yield from one_of(f"spec.persistentVolumeClaimRetentionPolicy.{field}", retention, _RETENTION)


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
