"""Classes that pods refer to by name: PriorityClasses and RuntimeClasses."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults.fields import default_resource_list
from podlife.api.field_errors import FieldError, duplicate, forbidden
from podlife.api.labels import validate_labels
from podlife.api.names import check_dns_label
from podlife.apiserver.strategies.core.node_selection import validate_tolerations
from podlife.apiserver.strategies.core.resource_requirements import validate_resources
from podlife.apiserver.strategies.field_checks import immutable, require_at, required_choice
from podlife.apiserver.strategies.strategy import Strategy

SYSTEM_CLASSES: tuple[Object, ...] = (
    {
        "metadata": {"name": "system-node-critical"},
        "value": 2_000_001_000,
        "description": "Used for system critical pods that must not be moved from their current node.",
    },
    {
        "metadata": {"name": "system-cluster-critical"},
        "value": 2_000_000_000,
        "description": (
            "Used for system critical pods that must run in the cluster, but can be moved to another node if "
            "necessary."
        ),
    },
)
"""Every cluster has them."""
_SYSTEM_VALUES = {each["metadata"]["name"]: each["value"] for each in SYSTEM_CLASSES}
_SYSTEM_PREFIX = "system-"
_HIGHEST = 1_000_000_000
_POLICIES = ("PreemptLowerPriority", "Never")


class PriorityClassStrategy(Strategy):
    def default(self, obj: Object) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def prepare_create(self, obj: Object) -> None:
        obj["metadata"]["generation"] = 1

    def validate(self, obj: Object) -> list[FieldError]:
        if obj["metadata"].get("resourceVersion"):
            return []
        name, value = obj["metadata"].get("name", ""), obj["value"]
        errors: list[FieldError] = []
        if name.startswith(_SYSTEM_PREFIX):
            if problem := _system_problem(name, value, is_default=bool(obj.get("globalDefault"))):
                reserved = (
                    f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use only"
                )
                errors.append(forbidden("metadata.name", f"{reserved}. error: {problem}"))
        elif value > _HIGHEST:
            detail = f"maximum allowed value of a user defined priority is {_HIGHEST}"
            errors.append(forbidden("value", detail))
        return errors + required_choice("preemptionPolicy", obj["preemptionPolicy"], _POLICIES)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = []
        if new["value"] != old["value"]:
            errors.append(forbidden("value", "may not be changed in an update."))
        return errors + immutable("preemptionPolicy", new["preemptionPolicy"], old.get("preemptionPolicy"))


def _system_problem(name: str, value: int, *, is_default: bool) -> str:
    if name not in _SYSTEM_VALUES:
        return f"{name} is not a known system priority class"
    if value != _SYSTEM_VALUES[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM_VALUES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


class RuntimeClassStrategy(Strategy):
    creates_on_update = True
    unconditional_update = False

    def default(self, obj: Object) -> None:
        default_resource_list((obj.get("overhead") or {}).get("podFixed") or {})

    def validate(self, obj: Object) -> list[FieldError]:
        errors = require_at("handler", obj["handler"], check_dns_label)
        if (overhead := obj.get("overhead")) is not None:
            limits = {"limits": overhead.get("podFixed") or {}}
            errors += validate_resources(limits, "overhead", claims=frozenset())
        scheduling = obj.get("scheduling") or {}
        errors += validate_labels(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector")
        tolerations = scheduling.get("tolerations") or []
        errors += validate_tolerations(tolerations, "scheduling.tolerations")
        seen: set[tuple[str, ...]] = set()
        for index, each in enumerate(tolerations):
            key = tuple(each.get(field, "") for field in ("key", "operator", "value", "effect"))
            if key in seen:
                errors.append(duplicate(f"scheduling.tolerations[{index}]", each))
            seen.add(key)
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable("handler", new["handler"], old["handler"])
