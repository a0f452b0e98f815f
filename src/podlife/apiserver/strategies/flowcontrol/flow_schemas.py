"""FlowSchemas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden, not_supported, required
from podlife.api.names import check_dns_label, check_dns_subdomain
from podlife.apiserver.strategies.field_checks import check_at, require_at, unique
from podlife.apiserver.strategies.flowcontrol.defaults import MANDATORY_SCHEMAS
from podlife.apiserver.strategies.strategy import Strategy

_LARGEST_PRECEDENCE = 10_000
_DEFAULT_PRECEDENCE = 1000
_METHODS = frozenset({"ByNamespace", "ByUser"})
_VERBS = frozenset(
    {"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}
)
_SUBJECTS = {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}
_FIXED = {each["metadata"]["name"]: each["spec"] for each in MANDATORY_SCHEMAS}


class FlowSchemaStrategy(Strategy):
    has_generation = True
    has_status = True
    kept_by_status = (("metadata",),)

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec["matchingPrecedence"] = spec.get("matchingPrecedence") or _DEFAULT_PRECEDENCE

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> list[FieldError]:
        name, spec = obj["metadata"].get("name", ""), obj["spec"]
        errors = list(_validate_spec(name, spec))
        if name in _FIXED and spec != _FIXED[name]:
            errors.append(bad_value("spec", spec, f"spec of '{name}' must equal the fixed value"))
        return [*errors, *validate_conditions(obj)]

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        return list(validate_conditions(new))


def validate_conditions(obj: Object) -> FieldErrors:
    """Each condition has a type, and none has that of another."""
    seen: set[str] = set()
    for index, condition in enumerate((obj.get("status") or {}).get("conditions") or ()):
        path, type_ = f"status.conditions[{index}].type", condition.get("type", "")
        yield from unique(path, type_, seen)
        if not type_:
            yield required(path)


def _validate_spec(name: str, spec: Object) -> FieldErrors:
    precedence, path = spec["matchingPrecedence"], "spec.matchingPrecedence"
    if precedence <= 0:
        yield bad_value(path, precedence, "must be a positive value")
    if precedence > _LARGEST_PRECEDENCE:
        yield bad_value(path, precedence, f"must not be greater than {_LARGEST_PRECEDENCE}")
    if precedence == 1 and name != "exempt":
        yield bad_value(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in _METHODS:
        yield not_supported("spec.distinguisherMethod.type", method, _METHODS)
    level, path = (
        spec.get("priorityLevelConfiguration", {}).get("name"),
        "spec.priorityLevelConfiguration.name",
    )
    if level:
        yield from check_at(path, level, check_dns_subdomain)
    else:
        yield required(path, "must reference a priority level")
    for index, rule in enumerate(spec.get("rules") or ()):
        yield from _validate_rule(f"spec.rules[{index}]", rule)


def _validate_rule(path: str, rule: Object) -> FieldErrors:
    subjects = rule.get("subjects") or ()
    if not subjects:
        yield required(f"{path}.subjects", "subjects must contain at least one value")
    for index, subject in enumerate(subjects):
        yield from _validate_subject(f"{path}.subjects[{index}]", subject)
    resource_rules, other_rules = rule.get("resourceRules") or (), rule.get("nonResourceRules") or ()
    if not resource_rules and not other_rules:
        yield required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for index, each in enumerate(resource_rules):
        yield from _validate_resource_rule(f"{path}.resourceRules[{index}]", each)
    for index, each in enumerate(other_rules):
        yield from _validate_other_rule(f"{path}.nonResourceRules[{index}]", each)


def _validate_subject(path: str, subject: Object) -> FieldErrors:
    kind = subject.get("kind", "")
    if kind not in _SUBJECTS:
        yield not_supported(f"{path}.kind", kind, frozenset(_SUBJECTS))
        return
    field = _SUBJECTS[kind]
    named = subject.get(field)
    if named is None:
        yield required(f"{path}.{field}", f"{field} is required when subject kind is '{kind}'")
    elif kind == "ServiceAccount":
        yield from _validate_account(f"{path}.{field}", named)
    elif not named.get("name"):
        yield required(f"{path}.{field}.name")
    for other_kind in ("ServiceAccount", "User", "Group"):
        other = _SUBJECTS[other_kind]
        if other != field and subject.get(other) is not None:
            yield forbidden(
                f"{path}.{other}", f"{other} is forbidden when subject kind is not '{other_kind}'"
            )


def _validate_account(path: str, account: Object) -> FieldErrors:
    if account.get("name") != "*":
        yield from require_at(f"{path}.name", account.get("name", ""), check_dns_subdomain)
    if account.get("namespace"):
        yield from check_at(f"{path}.namespace", account["namespace"], check_dns_label)
    else:
        yield required(f"{path}.namespace", "must specify namespace for service account")


def _validate_verbs(path: str, verbs: Sequence[str]) -> FieldErrors:
    if not verbs:
        yield required(path, "verbs must contain at least one value")
    elif "*" in verbs:
        yield from _alone(path, verbs, "verbs")
    elif not _VERBS.issuperset(verbs):
        yield not_supported(path, list(verbs), _VERBS)


def _alone(path: str, values: Sequence[str], what: str) -> FieldErrors:
    if "*" in values and len(values) > 1:
        yield bad_value(path, list(values), f"if '*' is present, must not specify other {what}")


def _validate_resource_rule(path: str, rule: Object) -> FieldErrors:
    yield from _validate_verbs(f"{path}.verbs", rule.get("verbs") or ())
    for field, what in (("apiGroups", "api group"), ("resources", "resource")):
        if values := rule.get(field) or ():
            yield from _alone(f"{path}.{field}", values, f"{what}s")
        else:
            yield required(f"{path}.{field}", f"resource rules must supply at least one {what}")
    path, namespaces = f"{path}.namespaces", rule.get("namespaces") or ()
    if not namespaces and not rule.get("clusterScope"):
        yield required(path, "resource rules that are not cluster scoped must supply at least one namespace")
    elif "*" in namespaces:
        yield from _alone(path, namespaces, "namespaces")
    else:
        for index, namespace in enumerate(namespaces):
            for problem in check_dns_label(namespace):
                intro = "each member of this list must be '*' or a DNS-1123 label; "
                yield bad_value(f"{path}[{index}]", namespace, intro + problem)


def _validate_other_rule(path: str, rule: Object) -> FieldErrors:
    yield from _validate_verbs(f"{path}.verbs", rule.get("verbs") or ())
    path, urls = f"{path}.nonResourceURLs", rule.get("nonResourceURLs") or ()
    if not urls:
        yield required(path, "nonResourceURLs must contain at least one value")
    elif "*" in urls:
        yield from _alone(path, urls, "non-resource URLs")
    else:
        for index, url in enumerate(urls):
            yield from (bad_value(f"{path}[{index}]", url, problem) for problem in _url_problems(url))


def _url_problems(url: str) -> Iterable[str]:
    """The first rule that the path breaks."""
    if not url:
        return ("must not be empty",)
    if not url.startswith("/"):
        return ("must start with slash",)
    if " " in url:
        return ("must not contain white-space",)
    if "//" in url:
        return ("must not contain double slash",)
    stars = url.count("*")
    if stars > 1 or (stars == 1 and not url.endswith("/*")):
        return ("wildcard can only do suffix matching",)
    return ()
