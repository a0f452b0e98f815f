"""What may change in an existing pod.

Images, a shorter deadline, more tolerations, fewer scheduling gates and, while gates exist, a narrower node
selection. Ephemeral containers and resources have their own subresources.
"""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden
from podlife.apiserver.strategies.field_checks import at_most_int32, describe_difference
from podlife.apiserver.strategies.strategy import keep_field

_UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
MIRROR = "kubernetes.io/config.mirror"


def validate_spec_update(new: Object, old: Object) -> FieldErrors:
    if new == old:
        return
    for field in ("containers", "initContainers"):
        if len(new.get(field, ())) != len(old.get(field, ())):
            yield forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
    stop, found = _validate_deadline(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    yield from found
    if stop:
        return
    yield from _validate_tolerations(new.get("tolerations", []), old.get("tolerations", []))
    yield from _validate_gates(new.get("schedulingGates", []), old.get("schedulingGates", []))
    frozen = _without_updatable(new, old)
    if old.get("schedulingGates"):
        yield from _validate_gated(frozen, old)
    if frozen != old:
        detail = f"pod updates may not change fields other than {_UPDATABLE}\n"
        yield forbidden("spec", detail + describe_difference(old, frozen))


def _validate_deadline(new: int | None, old: int | None) -> tuple[bool, list[FieldError]]:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        cleared = bad_value(path, None, "must not update from a positive integer to nil value")
        return False, [] if old is None else [cleared]
    if errors := at_most_int32(path, new):
        return True, errors
    if old is not None and old < new:
        return True, [bad_value(path, new, "must be less than or equal to previous value")]
    return False, []


def _without_seconds(toleration: Object) -> frozenset[tuple[str, str]]:
    return frozenset((field, value) for field, value in toleration.items() if field != "tolerationSeconds")


def _validate_tolerations(new: list[Object], old: list[Object]) -> FieldErrors:
    kept = {_without_seconds(toleration) for toleration in new}
    if new != old and not all(_without_seconds(toleration) in kept for toleration in old):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden("spec.tolerations", detail)


def _validate_gates(new: list[Object], old: list[Object]) -> FieldErrors:
    known = {gate.get("name", "") for gate in old}
    for index, gate in enumerate(new):
        if (name := gate.get("name", "")) not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield forbidden(f"spec.schedulingGates[{index}].name", detail)


def _without_updatable(new: Object, old: Object) -> Object:
    """The new spec with all mutable fields reset to their old values."""
    frozen = dict(new)
    for field in ("containers", "initContainers"):
        if field in new:
            pairs = zip(new[field], old.get(field, ()), strict=False)
            frozen[field] = [{**after, "image": before.get("image")} for after, before in pairs]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        keep_field(frozen, old, field)
    grace = "terminationGracePeriodSeconds"
    if old.get(grace, 0) < 0 and new.get(grace) == 1:
        frozen[grace] = old[grace]
    return frozen


def _validate_gated(frozen: Object, old: Object) -> FieldErrors:
    """A gated pod may still have its node selection narrowed; allowed changes are reset in `frozen`."""
    new_selector, old_selector = frozen.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if new_selector != old_selector:
        if not old_selector.items() <= new_selector.items():
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            yield bad_value("spec.nodeSelector", new_selector, detail)
        keep_field(frozen, old, "nodeSelector")
    new_affinity, old_affinity = frozen.get("affinity") or {}, old.get("affinity") or {}
    new_node, old_node = new_affinity.get("nodeAffinity"), old_affinity.get("nodeAffinity")
    if new_node != old_node:
        yield from _validate_narrower(new_node or {}, old_node or {})
        restored = {field: value for field, value in new_affinity.items() if field != "nodeAffinity"}
        if old_node is not None:
            restored["nodeAffinity"] = old_node
        if restored or "affinity" in old:
            frozen["affinity"] = restored
        else:
            frozen.pop("affinity", None)


def _validate_narrower(new: Object, old: Object) -> FieldErrors:
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    path = f"spec.affinity.nodeAffinity.{field}.nodeSelectorTerms"
    before = (old.get(field) or {}).get("nodeSelectorTerms") or []
    after = (new.get(field) or {}).get("nodeSelectorTerms") or []
    if before and len(before) != len(after):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield bad_value(path, after, detail)
        return
    for index, term in enumerate(before):
        if not _only_adds(after[index], term):
            detail = "only additions are allowed (no mutations or deletions)"
            yield bad_value(f"{path}[{index}]", after[index], detail)


def _only_adds(new: Object, old: Object) -> bool:
    if not old.get("matchExpressions") and not old.get("matchFields"):
        return not new.get("matchExpressions") and not new.get("matchFields")
    return all(
        new.get(field, [])[: len(items)] == items
        for field in ("matchExpressions", "matchFields")
        if (items := old.get(field, []))
    )


def validate_annotation_update(new: Object, old: Object) -> FieldErrors:
    """The annotations by which a kubelet recognizes its mirror pods are immutable."""
    before, after = old.get("annotations") or {}, new.get("annotations") or {}
    if before == after:
        return
    for key in before:
        if after.get(key) != before[key] and (noun := _immutable_annotation(key)):
            yield forbidden(f"metadata.annotations[{key}]", f"may not remove or update {noun}")
    for key in after.keys() - before.keys():
        if noun := _immutable_annotation(key):
            yield forbidden(f"metadata.annotations[{key}]", f"may not add {noun}")


def _immutable_annotation(key: str) -> str:
    if key.startswith("container.apparmor.security.beta.kubernetes.io/"):
        return "AppArmor annotations"
    return "mirror pod annotation" if key == MIRROR else ""


def validate_ephemeral_update(new: Object, old: Object) -> FieldErrors:
    """Ephemeral containers may be added, never changed or removed."""
    by_name = {container.get("name", ""): container for container in new.get("ephemeralContainers", ())}
    for before in old.get("ephemeralContainers", ()):
        name = before.get("name", "")
        after = by_name.get(name)
        if after is None:
            detail = f'existing ephemeral containers "{name}" may not be removed\n'
            yield forbidden("spec.ephemeralContainers", detail)
        elif after != before:
            detail = f'existing ephemeral containers "{name}" may not be changed\n'
            detail += describe_difference(before, after)
            yield forbidden("spec.ephemeralContainers", detail)
