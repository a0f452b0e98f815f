"""Node selection of a pod: tolerations, node selectors, affinity, topology spread, scheduling gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, bad_value, duplicate, forbidden, not_supported, required
from podlife.api.labels import validate_label_selector
from podlife.api.names import check_dns_label, check_dns_subdomain, check_label_key, check_label_value
from podlife.apiserver.strategies.field_checks import not_one_of, positive, problems_at

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ACTIONS = frozenset({"DoNotSchedule", "ScheduleAnyway"})
_INCLUSION = frozenset({"Honor", "Ignore"})
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_NO_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'


def validate_tolerations(tolerations: Sequence[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, toleration in enumerate(tolerations):
        if _is_usual(toleration):
            continue
        at = f"{path}[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        effect = toleration.get("effect", "")
        if key:
            errors += problems_at(f"{at}.key", key, check_label_key(key))
        elif operator != "Exists":
            errors.append(bad_value(f"{at}.operator", operator, _NO_KEY))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(bad_value(f"{at}.effect", effect, detail))
        errors += _validate_operator(operator, toleration.get("value", ""), f"{at}.operator")
        if effect and effect not in TAINT_EFFECTS:
            errors.append(not_one_of(f"{at}.effect", effect, TAINT_EFFECTS))
    return errors


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
    if operator in ("Lt", "Gt"):
        return [not_one_of(path, operator, ("Equal", "Exists", "Lt", "Gt"))]
    return [not_one_of(path, operator, ("Equal", "Exists"))]


def validate_scheduling_gates(gates: Sequence[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        errors += problems_at(f"{path}[{index}]", name, check_label_key(name))
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return errors


def validate_affinity(affinity: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if (node := affinity.get("nodeAffinity")) is not None:
        errors += _validate_node_affinity(node, f"{path}.nodeAffinity")
    for field in ("podAffinity", "podAntiAffinity"):
        if (terms := affinity.get(field)) is None:
            continue
        for index, term in enumerate(terms.get(_REQUIRED, ())):
            errors += _validate_pod_term(term, f"{path}.{field}.{_REQUIRED}[{index}]")
        for index, weighted in enumerate(terms.get(_PREFERRED, ())):
            at = f"{path}.{field}.{_PREFERRED}[{index}]"
            errors += _validate_weight(weighted, at)
            errors += _validate_pod_term(weighted.get("podAffinityTerm") or {}, f"{at}.podAffinityTerm")
    return errors


def _validate_weight(holder: Object, path: str) -> list[FieldError]:
    weight = holder.get("weight", 0)
    if 1 <= weight <= 100:
        return []
    return [bad_value(f"{path}.weight", weight, "must be in the range 1-100")]


def _validate_node_affinity(affinity: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if (needed := affinity.get(_REQUIRED)) is not None:
        errors += validate_node_selector(needed, f"{path}.{_REQUIRED}")
    for index, preferred in enumerate(affinity.get(_PREFERRED, ())):
        at = f"{path}.{_PREFERRED}[{index}]"
        errors += _validate_weight(preferred, at)
        errors += _validate_term(preferred.get("preference") or {}, f"{at}.preference", check_values=False)
    return errors


def validate_node_selector(selector: Object, path: str) -> list[FieldError]:
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    errors: list[FieldError] = []
    for index, term in enumerate(terms):
        errors += _validate_term(term, f"{path}.nodeSelectorTerms[{index}]", check_values=True)
    return errors


def _validate_term(term: Object, path: str, *, check_values: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, item in enumerate(term.get("matchExpressions", ())):
        errors += _validate_expression(item, f"{path}.matchExpressions[{index}]", check_values)
    for index, item in enumerate(term.get("matchFields", ())):
        errors += _validate_node_field(item, f"{path}.matchFields[{index}]")
    return errors


def _validate_expression(item: Object, path: str, check_values: bool) -> list[FieldError]:
    operator, values, key = item.get("operator", ""), item.get("values") or [], item.get("key", "")
    errors: list[FieldError] = []
    at = f"{path}.values"
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(at, "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(at, detail))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            errors.append(required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    else:
        errors.append(bad_value(f"{path}.operator", operator, "not a valid selector operator"))
    errors += problems_at(f"{path}.key", key, check_label_key(key))
    for index, value in enumerate(values if check_values else ()):
        errors += problems_at(f"{at}[{index}]", value, check_label_value(value))
    return errors


def _validate_node_field(item: Object, path: str) -> list[FieldError]:
    operator, values, key = item.get("operator", ""), item.get("values") or [], item.get("key", "")
    errors: list[FieldError] = []
    if operator not in ("In", "NotIn"):
        errors.append(bad_value(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(f"{path}.values", detail))
    if key != "metadata.name":
        errors.append(bad_value(f"{path}.key", key, "not a valid field selector key"))
        return errors
    for index, value in enumerate(values):
        errors += problems_at(f"{path}.values[{index}]", value, check_dns_subdomain(value))
    return errors


def _validate_pod_term(term: Object, path: str) -> list[FieldError]:
    errors = validate_label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    errors += validate_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces", ()):
        errors += problems_at(f"{path}.namespace", name, check_dns_label(name))
    errors += _validate_label_keys(term, path)
    key = term.get("topologyKey", "")
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + problems_at(f"{path}.topologyKey", key, check_label_key(key))


def _validate_label_keys(holder: Object, path: str) -> list[FieldError]:
    """matchLabelKeys and mismatchLabelKeys: valid, with a selector to extend, and disjoint."""
    errors: list[FieldError] = []
    selector = holder.get("labelSelector")
    matched, mismatched = holder.get("matchLabelKeys") or [], holder.get("mismatchLabelKeys") or []
    # First position of each: these lists, and the selector, may all be long.
    places = {key: index for index, key in reversed(list(enumerate(matched)))}
    for field, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        if keys and selector is None:
            detail = "must not be specified when labelSelector is not set"
            errors.append(forbidden(f"{path}.{field}", detail))
            continue
        for index, key in enumerate(keys):
            errors += problems_at(f"{path}.{field}[{index}]", key, check_label_key(key))
    if selector is not None and matched:
        named = set(selector.get("matchLabels") or ())
        for item in selector.get("matchExpressions") or ():
            key = item.get("key", "")
            if key in places and key in named:
                detail = "exists in both matchLabelKeys and labelSelector"
                errors.append(bad_value(f"{path}[{places[key]}]", key, detail))
            named.add(key)
    unwanted = set(mismatched)
    for index, key in enumerate(matched):
        if key in unwanted:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(bad_value(f"{path}.matchLabelKeys[{index}]", key, detail))
    return errors


def validate_spread(constraints: Sequence[Object], path: str) -> list[FieldError]:
    """`topologySpreadConstraints`."""
    errors: list[FieldError] = []
    later = Counter(map(_spread_pair, constraints))
    for index, constraint in enumerate(constraints):
        at = f"{path}[{index}]"
        errors += positive(f"{at}.maxSkew", constraint.get("maxSkew", 0))
        key, action = pair = _spread_pair(constraint)
        if not key:
            errors.append(required(f"{at}.topologyKey", "can not be empty"))
        if action not in _ACTIONS:
            errors.append(not_supported(f"{at}.whenUnsatisfiable", action, _ACTIONS))
        later[pair] -= 1
        if later[pair]:
            errors.append(duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        errors += _validate_spread_options(constraint, action, at)
        errors += _validate_label_keys(constraint, at)
        errors += validate_label_selector(constraint.get("labelSelector"), f"{at}.labelSelector")
    return errors


def _spread_pair(constraint: Object) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _validate_spread_options(constraint: Object, action: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if (least := constraint.get("minDomains")) is not None:
        errors += positive(f"{path}.minDomains", least)
        if action != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            errors.append(bad_value(f"{path}.minDomains", least, detail))
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if (policy := constraint.get(field)) is not None and policy not in _INCLUSION:
            errors.append(not_supported(f"{path}.{field}", policy, _INCLUSION))
    return errors
