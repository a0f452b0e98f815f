"""Node selection of a pod: tolerations, node selectors, affinity, topology spread, scheduling gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from podlife.api.codec import Object
from podlife.api.field_errors import (
    FieldError,
    FieldErrors,
    bad_value,
    duplicate,
    forbidden,
    not_supported,
    required,
)
from podlife.api.labels import validate_label_selector, validate_requirement
from podlife.api.names import check_dns_label, check_dns_subdomain, check_label_key, check_label_value
from podlife.apiserver.strategies.field_checks import check_at, one_of, positive, unique

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ACTIONS = frozenset({"DoNotSchedule", "ScheduleAnyway"})
_INCLUSION = frozenset({"Honor", "Ignore"})
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_NO_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'


def validate_tolerations(tolerations: Sequence[Object], path: str) -> FieldErrors:
    for index, toleration in enumerate(tolerations):
        if _is_usual(toleration):
            continue
        at = f"{path}[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        effect = toleration.get("effect", "")
        if key:
            yield from check_at(f"{at}.key", key, check_label_key)
        elif operator != "Exists":
            yield bad_value(f"{at}.operator", operator, _NO_KEY)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield bad_value(f"{at}.effect", effect, detail)
        yield from _validate_operator(operator, toleration.get("value", ""), f"{at}.operator")
        yield from one_of(f"{at}.effect", effect or None, TAINT_EFFECTS)


def _is_usual(toleration: Object) -> bool:
    # Fast path for the two tolerations that every pod gets.
    return (
        toleration.get("operator") == "Exists"
        and toleration.get("effect") == "NoExecute"
        and "value" not in toleration
        and toleration.get("key") in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    )


def _validate_operator(operator: str, value: str, path: str) -> list[FieldError]:
    if operator in ("", "Equal"):
        problems = check_label_value(value)
        return [bad_value(path, value, ";".join(problems))] if problems else []
    if operator == "Exists":
        return [bad_value(path, value, "value must be empty when `operator` is 'Exists'")] if value else []
    # Comparing operators are known, but behind a feature gate that v1.36 disables.
    known = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
    return [not_supported(path, operator, known)]


def validate_scheduling_gates(gates: Sequence[Object], path: str) -> FieldErrors:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        yield from check_at(f"{path}[{index}]", name, check_label_key)
        yield from unique(f"{path}[{index}]", name, seen)


def validate_affinity(affinity: Object, path: str) -> FieldErrors:
    if (node := affinity.get("nodeAffinity")) is not None:
        yield from _validate_node_affinity(node, f"{path}.nodeAffinity")
    for field in ("podAffinity", "podAntiAffinity"):
        if (terms := affinity.get(field)) is None:
            continue
        for index, term in enumerate(terms.get(_REQUIRED, ())):
            yield from _validate_pod_term(term, f"{path}.{field}.{_REQUIRED}[{index}]")
        for index, weighted in enumerate(terms.get(_PREFERRED, ())):
            at = f"{path}.{field}.{_PREFERRED}[{index}]"
            yield from _validate_weight(weighted, at)
            yield from _validate_pod_term(weighted.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm")


def _validate_weight(holder: Object, path: str) -> list[FieldError]:
    weight, detail = holder.get("weight", 0), "must be in the range 1-100"
    return [] if 1 <= weight <= 100 else [bad_value(f"{path}.weight", weight, detail)]


def _validate_node_affinity(affinity: Object, path: str) -> FieldErrors:
    if (needed := affinity.get(_REQUIRED)) is not None:
        yield from validate_node_selector(needed, f"{path}.{_REQUIRED}")
    for index, preferred in enumerate(affinity.get(_PREFERRED, ())):
        at = f"{path}.{_PREFERRED}[{index}]"
        yield from _validate_weight(preferred, at)
        yield from _validate_term(preferred.get("preference") or {}, f"{at}.preference", check_values=False)


def validate_node_selector(selector: Object, path: str) -> FieldErrors:
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
        return
    for index, term in enumerate(terms):
        yield from _validate_term(term, f"{path}.nodeSelectorTerms[{index}]", check_values=True)


def _validate_term(term: Object, path: str, *, check_values: bool) -> FieldErrors:
    for index, item in enumerate(term.get("matchExpressions", ())):
        at = f"{path}.matchExpressions[{index}]"
        yield from validate_requirement(item, at, may_compare=True, check_values=check_values)
    for index, item in enumerate(term.get("matchFields", ())):
        yield from _validate_node_field(item, f"{path}.matchFields[{index}]")


def _validate_node_field(item: Object, path: str) -> FieldErrors:
    operator, values, key = item.get("operator", ""), item.get("values") or [], item.get("key", "")
    if operator not in ("In", "NotIn"):
        yield bad_value(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    if key != "metadata.name":
        yield bad_value(f"{path}.key", key, "not a valid field selector key")
        return
    for index, value in enumerate(values):
        yield from check_at(f"{path}.values[{index}]", value, check_dns_subdomain)


def _validate_pod_term(term: Object, path: str) -> FieldErrors:
    yield from validate_label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    yield from validate_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces", ()):
        yield from check_at(f"{path}.namespace", name, check_dns_label)
    yield from _validate_label_keys(term, path)
    key = term.get("topologyKey", "")
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from check_at(f"{path}.topologyKey", key, check_label_key)


def _validate_label_keys(holder: Object, path: str) -> FieldErrors:
    """matchLabelKeys and mismatchLabelKeys: valid, with a selector to extend, and disjoint."""
    selector = holder.get("labelSelector")
    matched, mismatched = holder.get("matchLabelKeys") or [], holder.get("mismatchLabelKeys") or []
    # First position of each: these lists, and the selector, may all be long.
    places = {key: index for index, key in reversed(list(enumerate(matched)))}
    for field, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        if keys and selector is None:
            yield forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set")
            continue
        for index, key in enumerate(keys):
            yield from check_at(f"{path}.{field}[{index}]", key, check_label_key)
    if selector is not None and matched:
        named = set(selector.get("matchLabels") or ())
        for item in selector.get("matchExpressions") or ():
            key = item.get("key", "")
            if key in places and key in named:
                detail = "exists in both matchLabelKeys and labelSelector"
                yield bad_value(f"{path}[{places[key]}]", key, detail)
            named.add(key)
    unwanted = set(mismatched)
    for index, key in enumerate(matched):
        if key in unwanted:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield bad_value(f"{path}.matchLabelKeys[{index}]", key, detail)


def validate_spread(constraints: Sequence[Object], path: str) -> FieldErrors:
    """`topologySpreadConstraints`."""
    later = Counter(map(_spread_pair, constraints))
    for index, constraint in enumerate(constraints):
        at = f"{path}[{index}]"
        yield from positive(f"{at}.maxSkew", constraint.get("maxSkew", 0))
        key, action = pair = _spread_pair(constraint)
        if not key:
            yield required(f"{at}.topologyKey", "can not be empty")
        yield from one_of(f"{at}.whenUnsatisfiable", action, _ACTIONS)
        later[pair] -= 1
        if later[pair]:
            yield duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        yield from _validate_spread_options(constraint, action, at)
        yield from _validate_label_keys(constraint, at)
        yield from validate_label_selector(constraint.get("labelSelector"), f"{at}.labelSelector")


def _spread_pair(constraint: Object) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _validate_spread_options(constraint: Object, action: str, path: str) -> FieldErrors:
    if (least := constraint.get("minDomains")) is not None:
        yield from positive(f"{path}.minDomains", least)
        if action != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            yield bad_value(f"{path}.minDomains", least, detail)
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        yield from one_of(f"{path}.{field}", constraint.get(field), _INCLUSION)
