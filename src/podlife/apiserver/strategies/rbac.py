"""Roles and bindings: validation. `apiserver/authz` decides by them, `admission/role_escalation` who may write them."""

from __future__ import annotations

from collections.abc import Sequence

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, not_supported, required
from podlife.api.labels import validate_label_selector
from podlife.api.names import check_dns_subdomain, check_path_segment
from podlife.apiserver.strategies.field_checks import check_at, require_at
from podlife.apiserver.strategies.strategy import Strategy

_GROUP = "rbac.authorization.k8s.io"
_SUBJECT_KINDS = ("ServiceAccount", "User", "Group")


class RoleStrategy(Strategy):
    creates_on_update = True
    # Its permissions are compared with those of its author.
    is_costly_for_users = True
    validate_name = staticmethod(check_path_segment)

    def __init__(self, *, namespaced: bool) -> None:
        self._namespaced = namespaced

    def default(self, obj: Object) -> None:
        # Go writes the rules even if there are none.
        obj.setdefault("rules", None)

    def validate(self, obj: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        for index, rule in enumerate(obj.get("rules") or ()):
            errors += _validate_rule(f"rules[{index}]", rule, namespaced=self._namespaced)
        if (aggregation := obj.get("aggregationRule")) is not None:
            errors += _validate_aggregation(aggregation.get("clusterRoleSelectors") or ())
        return errors


class RoleBindingStrategy(Strategy):
    creates_on_update = True
    is_costly_for_users = True
    validate_name = staticmethod(check_path_segment)

    def __init__(self, *, namespaced: bool) -> None:
        self._namespaced = namespaced
        self._role_kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)

    def default(self, obj: Object) -> None:
        role = obj.setdefault("roleRef", {})
        role["apiGroup"] = role.get("apiGroup") or _GROUP
        for subject in obj.get("subjects") or ():
            if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
                subject["apiGroup"] = _GROUP

    def validate(self, obj: Object) -> list[FieldError]:
        role, errors = obj["roleRef"], []
        if role["apiGroup"] != _GROUP:
            errors.append(not_supported("roleRef.apiGroup", role["apiGroup"], [_GROUP]))
        if role.get("kind") not in self._role_kinds:
            errors.append(not_supported("roleRef.kind", role.get("kind", ""), self._role_kinds))
        errors += require_at("roleRef.name", role.get("name", ""), check_path_segment)
        for index, subject in enumerate(obj.get("subjects") or ()):
            errors += _validate_subject(f"subjects[{index}]", subject, namespaced=self._namespaced)
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        if new["roleRef"] == old["roleRef"]:
            return []
        # By the names of Go's fields, as upstream shows it.
        role = {name: new["roleRef"].get(name[0].lower() + name[1:], "") for name in ("Kind", "Name")}
        role = {"APIGroup": new["roleRef"]["apiGroup"], **role}
        return [bad_value("roleRef", role, "cannot change roleRef")]


def _validate_rule(path: str, rule: Object, *, namespaced: bool) -> FieldErrors:
    if not rule.get("verbs"):
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        path = f"{path}.nonResourceURLs"
        if namespaced:
            yield bad_value(path, urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            yield bad_value(path, urls, "rules cannot apply to both regular resources and non-resource URLs")
        return
    for field, what in (("apiGroups", "api group"), ("resources", "resource")):
        if not rule.get(field):
            yield required(f"{path}.{field}", f"resource rules must supply at least one {what}")


def _validate_aggregation(selectors: Sequence[Object]) -> FieldErrors:
    path = "aggregationRule.clusterRoleSelectors"
    if not selectors:
        yield required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, selector in enumerate(selectors):
        yield from validate_label_selector(selector, f"{path}[{index}]")


def _validate_subject(path: str, subject: Object, *, namespaced: bool) -> FieldErrors:
    kind, name, group = (subject.get(field, "") for field in ("kind", "name", "apiGroup"))
    if not name:
        yield required(f"{path}.name")
    if kind == "ServiceAccount":
        if name:
            yield from check_at(f"{path}.name", name, check_dns_subdomain)
        if group:
            yield not_supported(f"{path}.apiGroup", group, [""])
        if not namespaced and not subject.get("namespace"):
            yield required(f"{path}.namespace")
    elif kind in _SUBJECT_KINDS:
        if group != _GROUP:
            yield not_supported(f"{path}.apiGroup", group, [_GROUP])
    else:
        yield not_supported(f"{path}.kind", kind, _SUBJECT_KINDS)
