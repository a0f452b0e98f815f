"""Pod template of a controller, and what controllers share around it."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.api.defaults import default_pod_spec
from podlife.api.field_errors import FieldError, bad_value, forbidden, required
from podlife.api.labels import (
    is_empty_selector,
    selector_matches,
    validate_annotations,
    validate_label_selector,
    validate_labels,
)
from podlife.api.names import check_percent
from podlife.apiserver.strategies.core.pod.spec import validate_pod_spec
from podlife.apiserver.strategies.field_checks import immutable, non_negative, not_one_of, problems_at
from podlife.apiserver.strategies.object_meta import default_metadata

_MISMATCH = "`selector` does not match template `labels`"


def default_template(template: Object) -> None:
    default_metadata(template.setdefault("metadata", {}))
    default_pod_spec(template.setdefault("spec", {}))


def default_selector(spec: Object) -> None:
    """Leave out the empty parts of a selector, as upstream does."""
    if selector := spec.get("selector"):
        for field in [name for name, value in selector.items() if not value]:
            del selector[field]


def drop_disabled_fields(spec: Object) -> None:
    """Drop fields of a pod's spec behind feature gates that v1.36 disables."""
    for field in ("containers", "initContainers"):
        for container in spec.get(field, ()):
            lifecycle = container.get("lifecycle")
            if lifecycle and lifecycle.pop("stopSignal", None) and not lifecycle:
                del container["lifecycle"]
    spec.pop("schedulingGroup", None)
    spec.pop("workloadRef", None)


def sorted_labels(labels: dict[str, str] | None) -> dict[str, str] | None:
    """Labels as an error shows them."""
    return dict(sorted(labels.items())) if labels else None


def validate_template(template: Object, path: str) -> list[FieldError]:
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors = validate_labels(meta.get("labels") or {}, f"{path}.labels")
    errors += validate_annotations(meta.get("annotations") or {}, f"{path}.annotations")
    errors += validate_pod_spec(spec, f"{path}.spec", is_pod=False)
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", detail))
    return errors


def shown_selector(selector: Object | None) -> Object | None:
    """A selector as an error shows it: its parts and labels in a fixed order."""
    if selector is None:
        return None
    shown: Object = {}
    if labels := selector.get("matchLabels"):
        shown["matchLabels"] = sorted_labels(labels)
    if expressions := selector.get("matchExpressions"):
        shown["matchExpressions"] = [{"key": "", "operator": "", **item} for item in expressions]
    return shown


def validate_selector(
    spec: Object, noun: str, unreadable: str = ": invalid label selector"
) -> list[FieldError]:
    """A selector of pods: present, valid, not empty, and matching the template's labels."""
    selector = spec.get("selector")
    errors = validate_label_selector(selector, "spec.selector")
    is_valid = not errors
    shown = shown_selector(selector)
    if selector is None:
        errors.append(required("spec.selector"))
    elif is_empty_selector(selector):
        errors.append(bad_value("spec.selector", shown, f"empty selector is invalid for {noun}"))
        return errors
    if not is_valid:
        errors.append(
            FieldError("spec.selector", "FieldValueInvalid", "Invalid value: ", value=shown, after=unreadable)
        )
        return errors
    # An absent selector matches nothing.
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    if selector is None or not selector_matches(selector, labels):
        errors.append(bad_value("spec.template.metadata.labels", sorted_labels(labels), _MISMATCH))
    return errors


def is_readable(selector: Object | None) -> bool:
    """If a selector is invalid, upstream does not check the template any further."""
    return not validate_label_selector(selector, "")


def validate_same_selector(new: Object, old: Object) -> list[FieldError]:
    before, after = old["spec"].get("selector"), new["spec"].get("selector")
    return immutable("spec.selector", shown_selector(after), shown_selector(before))


def validate_long_running(spec: Object, kind: str) -> list[FieldError]:
    """A template whose pods run forever."""
    pod_spec, path = spec["template"].get("spec") or {}, "spec.template.spec"
    errors: list[FieldError] = []
    if (policy := pod_spec.get("restartPolicy", "")) != "Always":
        errors.append(not_one_of(f"{path}.restartPolicy", policy, ("Always",)))
    if pod_spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden(f"{path}.activeDeadlineSeconds", detail))
    return errors


def validate_int_or_percent(path: str, value: int | str) -> list[FieldError]:
    if isinstance(value, str):
        return problems_at(path, value, check_percent(value))
    return non_negative(path, value)


def is_zero(value: int | str) -> bool:
    """Text that is not a percentage counts as the number it is, or as none."""
    if isinstance(value, str):
        digits = value.removesuffix("%")
        return not (digits.isascii() and digits.isdigit()) or not digits.strip("0")
    return value == 0


def validate_at_most_all(path: str, value: int | str) -> list[FieldError]:
    digits = value[:-1].lstrip("0") if isinstance(value, str) and not check_percent(value) else ""
    if len(digits) > 3 or int(digits or 0) > 100:
        return [bad_value(path, value, "must not be greater than 100%")]
    return []


def validate_counts(status: Object, fields: tuple[str, ...]) -> list[FieldError]:
    """Counts in a status, `collisionCount` included, are not negative."""
    errors: list[FieldError] = []
    for field in (*fields, "observedGeneration", "collisionCount"):
        value: Any = status.get(field, 0)
        errors += non_negative(f"status.{field}", value)
    return errors
