"""Pod template of a controller, and what controllers share around it."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults import default_pod_spec
from podlife.api.defaults.fields import fill_absent, fill_empty
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden, required
from podlife.api.labels import (
    is_empty_selector,
    selector_matches,
    validate_annotations,
    validate_label_selector,
    validate_labels,
)
from podlife.api.names import check_percent
from podlife.apiserver.strategies.core.pod.spec import validate_pod_spec
from podlife.apiserver.strategies.core.pod.warnings import spec_warnings
from podlife.apiserver.strategies.field_checks import check_at, immutable, non_negative, one_of, show_times
from podlife.apiserver.strategies.object_meta import default_metadata
from podlife.apiserver.strategies.strategy import Strategy


def default_template(template: Object) -> None:
    default_metadata(template.setdefault("metadata", {}))
    default_pod_spec(template.setdefault("spec", {}))


def default_rolling_update(strategy: Object, **rolling: int | str) -> None:
    fill_empty(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill_absent(strategy.setdefault("rollingUpdate", {}), **rolling)


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


def validate_template(template: Object, path: str) -> FieldErrors:
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    yield from validate_labels(meta.get("labels") or {}, f"{path}.labels")
    yield from validate_annotations(meta.get("annotations") or {}, f"{path}.annotations")
    yield from validate_pod_spec(spec, f"{path}.spec", is_pod=False)
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        yield forbidden(f"{path}.spec.ephemeralContainers", detail)


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
        errors.append(selector_mismatch(labels))
    return errors


def selector_mismatch(labels: dict[str, str]) -> FieldError:
    detail = "`selector` does not match template `labels`"
    return bad_value("spec.template.metadata.labels", sorted_labels(labels), detail)


def is_readable(selector: Object | None) -> bool:
    """If a selector is invalid, upstream does not check the template any further."""
    return not validate_label_selector(selector, "")


def validate_long_running(spec: Object, kind: str) -> FieldErrors:
    """A template whose pods run forever."""
    pod_spec, path = spec["template"].get("spec") or {}, "spec.template.spec"
    yield from one_of(f"{path}.restartPolicy", pod_spec.get("restartPolicy", ""), ("Always",))
    if pod_spec.get("activeDeadlineSeconds") is not None:
        yield forbidden(f"{path}.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported")


def validate_int_or_percent(path: str, value: int | str) -> list[FieldError]:
    if isinstance(value, str):
        return check_at(path, value, check_percent)
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


class TemplatedStrategy(Strategy):
    """What all controllers with a template at `spec.template` share."""

    has_generation = True
    has_status = True
    first_status: Object = {}
    condition_times: tuple[str, ...] = ("lastTransitionTime",)
    # Counts in the status; `parts_of_replicas` must not exceed `replicas`.
    counts: tuple[str, ...] = ()
    parts_of_replicas: tuple[str, ...] = ()
    ready_path = "readyReplicas"

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        default_selector(spec)
        default_template(spec.setdefault("template", {}))
        status = obj.setdefault("status", {})
        fill_absent(status, **self.first_status)
        show_times(status, *self.condition_times)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = dict(self.first_status)
        if template := obj["spec"].get("template"):
            drop_disabled_fields(template["spec"])

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        if template := new["spec"].get("template"):
            drop_disabled_fields(template["spec"])

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        after, before = (shown_selector(obj["spec"].get("selector")) for obj in (new, old))
        return immutable("spec.selector", after, before)

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        status = new["status"]
        errors: list[FieldError] = []
        for field in (*self.counts, "observedGeneration", "collisionCount"):
            errors += non_negative(f"status.{field}", status.get(field))
        for field in self.parts_of_replicas:
            if (count := status.get(field, 0)) > status.get("replicas", 0):
                errors.append(bad_value(f"status.{field}", count, "cannot be greater than status.replicas"))
        available = status.get("availableReplicas", 0)
        if available > status.get("readyReplicas", 0):
            detail = f"cannot be greater than {self.ready_path}"
            errors.append(bad_value("status.availableReplicas", available, detail))
        collisions, before = (obj.get("status", {}).get("collisionCount") for obj in (new, old))
        if before is not None and (collisions is None or collisions < before):
            errors.append(bad_value("status.collisionCount", collisions or 0, "cannot be decremented"))
        return errors

    def warnings(self, obj: Object) -> list[str]:
        template = obj["spec"].get("template")
        return spec_warnings(template["spec"], "spec.template.spec") if template else []


class PodTemplateStrategy(Strategy):
    """PodTemplates: no controller uses them, but clients store them."""

    def default(self, obj: Object) -> None:
        default_template(obj.setdefault("template", {}))

    def prepare_create(self, obj: Object) -> None:
        obj["metadata"]["generation"] = 1
        drop_disabled_fields(obj["template"]["spec"])

    def prepare_update(self, new: Object, old: Object) -> None:
        drop_disabled_fields(new["template"]["spec"])
        if new["template"] != old["template"]:
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, obj: Object) -> list[FieldError]:
        return list(validate_template(obj["template"], "template"))

    def warnings(self, obj: Object) -> list[str]:
        return spec_warnings(obj["template"]["spec"], "template.spec")
