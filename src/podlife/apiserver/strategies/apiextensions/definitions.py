"""Strategy of CustomResourceDefinition, and how its body is decoded."""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime

from podlife.api import schema
from podlife.api.codec import Object, format_time
from podlife.api.field_errors import FieldError
from podlife.api.structural import decode_props, every_schema, is_checked_format
from podlife.apiserver.strategies.apiextensions.approval import validate_approval
from podlife.apiserver.strategies.apiextensions.validation import (
    validate_definition,
    validate_definition_update,
)
from podlife.apiserver.strategies.field_checks import bounded_expressions
from podlife.apiserver.strategies.strategy import Strategy

API_VERSION, KIND = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def check_definition(obj: Object) -> list[str]:
    """Bring a definition into the shape of its type, the schemas in it included; returns the removed unknown fields.
    Raises schema.DecodeError."""
    unknown = schema.check(API_VERSION, KIND, obj)
    for index, version in enumerate(obj["spec"].get("versions") or ()):
        holder = version.get("schema") or {}
        if holder.get("openAPIV3Schema") is not None:
            path = f"spec.versions[{index}].schema.openAPIV3Schema"
            holder["openAPIV3Schema"], more = decode_props(holder["openAPIV3Schema"], path)
            unknown += more
    return unknown


def set_condition(status: Object, kind: str, value: str, reason: str, message: str, now: datetime) -> None:
    conditions = status["conditions"] = status.get("conditions") or []
    known = next((each for each in conditions if each.get("type") == kind), None)
    if known is None:
        known = {"type": kind}
        conditions.append(known)
    if known.get("status") != value or not known.get("lastTransitionTime"):
        known["lastTransitionTime"] = format_time(now)
    known |= {"status": value, "reason": reason, "message": message}


class CustomResourceDefinitionStrategy(Strategy):
    has_generation = True
    unconditional_update = False
    # Patterns and rules are compiled.
    is_costly = True

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        spec.setdefault("versions", None)
        names = spec["names"]
        if not names.get("singular"):
            names["singular"] = names["kind"].lower()
        if not names.get("listKind") and names["kind"]:
            names["listKind"] = f"{names['kind']}List"
        conversion = spec.setdefault("conversion", {"strategy": "None"})
        service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": None,
        }
        _note_storage_version(obj)

    def prepare_update(self, new: Object, old: Object) -> None:
        new["status"] = {**old["status"]}
        _note_storage_version(new)

    def prepare_delete(self, obj: Object, now: datetime) -> None:
        meta = obj["metadata"]
        if "deletionTimestamp" in meta:
            return
        if FINALIZER not in meta.get("finalizers", ()):
            meta["finalizers"] = [*meta.get("finalizers", ()), FINALIZER]
        message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        obj["status"] = deepcopy(obj["status"])
        set_condition(obj["status"], "Terminating", "True", "InstanceDeletionPending", message, now)

    def validate(self, obj: Object) -> list[FieldError]:
        if too_long := bounded_expressions("spec.versions", obj["spec"]["versions"]):
            return too_long
        is_new = "resourceVersion" not in obj["metadata"]
        return [*validate_definition(obj), *(validate_approval(obj) if is_new else ())]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [*validate_definition_update(new, old), *validate_approval(new, old)]

    def warnings(self, obj: Object) -> list[str]:
        formats = (
            props["format"]
            for version in obj["spec"]["versions"]
            for props in every_schema((version.get("schema") or {}).get("openAPIV3Schema") or {})
            if props.get("format")
            and not is_checked_format(props["format"], (props["type"],) if props.get("type") else ())
        )
        return [f'unrecognized format "{name}"' for name in formats]


def _note_storage_version(obj: Object) -> None:
    stored = obj["status"].get("storedVersions") or []
    name = next((version["name"] for version in obj["spec"]["versions"] or () if version["storage"]), None)
    if name is not None and name not in stored:
        obj["status"]["storedVersions"] = [*stored, name]
