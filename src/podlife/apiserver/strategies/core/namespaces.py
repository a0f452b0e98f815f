"""Namespaces. Their deletion is in `podlife.apiserver.namespace`."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, bad_value
from podlife.api.names import check_dns_label, check_label_key
from podlife.apiserver.strategies.field_checks import problems_at, show_times
from podlife.apiserver.strategies.strategy import Strategy

_NAME_LABEL = "kubernetes.io/metadata.name"
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


class NamespaceStrategy(Strategy):
    has_status = True
    returns_deleted_object = True

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        return check_dns_label(name, prefix=prefix)

    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = "Active"
        show_times(status, "lastTransitionTime")
        _label(obj)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Active"}
        finalizers = obj["spec"].setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        # A generated name is known only now.
        _label(obj)

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        new["spec"].pop("finalizers", None)
        if "finalizers" in old["spec"]:
            new["spec"]["finalizers"] = old["spec"]["finalizers"]

    def validate(self, obj: Object) -> list[FieldError]:
        if obj["metadata"].get("resourceVersion"):
            return []
        return _validate_finalizers(obj["spec"].get("finalizers", ()), "spec.finalizers")

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        is_deleted = new["metadata"].get("deletionTimestamp") is not None
        phase = (new.get("status") or {}).get("phase", "")
        expected, state = ("Terminating", "not empty") if is_deleted else ("Active", "empty")
        if phase == expected:
            return []
        detail = f"may only be '{expected}' if `deletionTimestamp` is {state}"
        return [bad_value("status.Phase", phase, detail)]


class NamespaceFinalizeStrategy(NamespaceStrategy):
    """`namespaces/finalize`: the only way to change `spec.finalizers`."""

    def prepare_update(self, new: Object, old: Object) -> None:
        if "status" in old:
            new["status"] = old["status"]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        for index, name in enumerate(new["spec"].get("finalizers", ())):
            errors += _validate_finalizers((name,), f"spec.finalizers[{index}]")
        return errors


def _label(obj: Object) -> None:
    if name := obj["metadata"].get("name"):
        obj["metadata"].setdefault("labels", {})[_NAME_LABEL] = name


def _validate_finalizers(finalizers: list[str] | tuple[str, ...], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    for name in finalizers:
        errors += problems_at(path, name, check_label_key(name))
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            errors.append(bad_value(path, name, detail))
    return errors
