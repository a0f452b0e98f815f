"""Namespaces. Their deletion is in `podlife.apiserver.namespace`."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults.fields import fill_empty
from podlife.api.field_errors import FieldError, bad_value
from podlife.api.names import check_dns_label, check_label_key
from podlife.apiserver.strategies.field_checks import check_at, show_times
from podlife.apiserver.strategies.object_meta import check_qualified
from podlife.apiserver.strategies.strategy import Strategy, keep_field

_NAME_LABEL = "kubernetes.io/metadata.name"


class NamespaceStrategy(Strategy):
    has_status = True
    returns_deleted_object = True
    validate_name = staticmethod(check_dns_label)

    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        fill_empty(status, phase="Active")
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
        keep_field(new["spec"], old["spec"], "finalizers")

    def validate(self, obj: Object) -> list[FieldError]:
        if obj["metadata"].get("resourceVersion"):
            return []
        finalizers = obj["spec"].get("finalizers", ())
        return [error for name in finalizers for error in _validate_finalizer(name, "spec.finalizers")]

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        is_deleted = new["metadata"].get("deletionTimestamp") is not None
        phase = (new.get("status") or {}).get("phase", "")
        expected, state = ("Terminating", "not empty") if is_deleted else ("Active", "empty")
        detail = f"may only be '{expected}' if `deletionTimestamp` is {state}"
        return [] if phase == expected else [bad_value("status.Phase", phase, detail)]


class NamespaceFinalizeStrategy(NamespaceStrategy):
    """`namespaces/finalize`: the only way to change `spec.finalizers`."""

    def prepare_update(self, new: Object, old: Object) -> None:
        if "status" in old:
            new["status"] = old["status"]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        for index, name in enumerate(new["spec"].get("finalizers", ())):
            errors += _validate_finalizer(name, f"spec.finalizers[{index}]")
        return errors


def _label(obj: Object) -> None:
    if name := obj["metadata"].get("name"):
        obj["metadata"].setdefault("labels", {})[_NAME_LABEL] = name


def _validate_finalizer(name: str, path: str) -> list[FieldError]:
    return check_at(path, name, check_label_key) + check_at(path, name, check_qualified)
