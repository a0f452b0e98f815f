"""MutatingWebhookConfigurations and ValidatingWebhookConfigurations."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.field_errors import (
    FieldError,
    FieldErrors,
    bad_value,
    duplicate,
    not_supported,
    required,
    too_many,
)
from podlife.api.labels import validate_label_selector
from podlife.api.names import check_dns_label_1035, check_dns_subdomain, check_label_key
from podlife.apiserver.expressions import compile_condition
from podlife.apiserver.strategies.admissionregistration.client_config import (
    DEFAULT_PORT,
    validate_client_config,
)
from podlife.apiserver.strategies.admissionregistration.rules import validate_rule
from podlife.apiserver.strategies.field_checks import bounded_expressions, one_of
from podlife.apiserver.strategies.strategy import Strategy

FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
REINVOCATION_POLICIES = ("IfNeeded", "Never")
_REVIEW_VERSIONS = ("v1", "v1beta1")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_MOST_CONDITIONS = 64
_STATIC_SUFFIX = ".static.k8s.io"


class WebhookConfigurationStrategy(Strategy):
    """For both kinds: `is_mutating` says whether webhooks may be called again."""

    unconditional_update = False
    # Expressions are compiled.
    is_costly = True

    def __init__(self, *, is_mutating: bool) -> None:
        self._is_mutating = is_mutating

    def default(self, obj: Object) -> None:
        for hook in obj.get("webhooks") or ():
            hook.setdefault("failurePolicy", "Fail")
            hook.setdefault("matchPolicy", "Equivalent")
            hook.setdefault("namespaceSelector", {})
            hook.setdefault("objectSelector", {})
            hook.setdefault("timeoutSeconds", 10)
            if self._is_mutating:
                hook.setdefault("reinvocationPolicy", "Never")
            for rule in hook.get("rules") or ():
                rule.setdefault("scope", "*")
            if (service := hook["clientConfig"].get("service")) is not None:
                service.setdefault("port", DEFAULT_PORT)

    def prepare_create(self, obj: Object) -> None:
        obj["metadata"]["generation"] = 1

    def prepare_update(self, new: Object, old: Object) -> None:
        if (new.get("webhooks") or []) != (old.get("webhooks") or []):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, obj: Object) -> list[FieldError]:
        return bounded_expressions("webhooks", obj.get("webhooks")) or list(self._errors(obj))

    def warnings(self, obj: Object) -> list[str]:
        return warn_of_static_suffix(obj)

    def _errors(self, obj: Object) -> FieldErrors:
        seen: set[str] = set()
        for index, hook in enumerate(obj.get("webhooks") or ()):
            path = f"webhooks[{index}]"
            yield from self._validate_hook(hook, path)
            yield from _validate_versions(
                hook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions"
            )
            name = hook.get("name", "")
            if name and name in seen:
                yield duplicate(f"{path}.name", name)
            seen.add(name)

    def _validate_hook(self, hook: Object, path: str) -> FieldErrors:
        yield from _validate_name(hook.get("name", ""), f"{path}.name")
        for index, rule in enumerate(hook.get("rules") or ()):
            yield from validate_rule(rule, f"{path}.rules[{index}]")
        yield from one_of(f"{path}.failurePolicy", hook.get("failurePolicy"), FAILURE_POLICIES)
        yield from one_of(f"{path}.matchPolicy", hook.get("matchPolicy"), MATCH_POLICIES)
        if (effects := hook.get("sideEffects")) is None:
            yield required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}")
        elif effects not in _SIDE_EFFECTS:
            yield not_supported(f"{path}.sideEffects", effects, _SIDE_EFFECTS)
        if not 1 <= (seconds := hook.get("timeoutSeconds", 10)) <= 30:
            text = "the timeout value must be between 1 and 30 seconds"
            yield bad_value(f"{path}.timeoutSeconds", seconds, text)
        for field in ("namespaceSelector", "objectSelector"):
            yield from validate_label_selector(hook.get(field), f"{path}.{field}")
        if self._is_mutating:
            policy = hook.get("reinvocationPolicy")
            yield from one_of(f"{path}.reinvocationPolicy", policy, REINVOCATION_POLICIES)
        yield from validate_client_config(hook.get("clientConfig") or {}, f"{path}.clientConfig")
        conditions = hook.get("matchConditions") or []
        yield from validate_conditions(conditions, f"{path}.matchConditions")


def validate_conditions(conditions: list[Object], path: str, *, has_params: bool = False) -> FieldErrors:
    if len(conditions) > _MOST_CONDITIONS:
        yield too_many(path, len(conditions), _MOST_CONDITIONS)
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        at = f"{path}[{index}]"
        expression, name = condition.get("expression", "").strip(), condition.get("name", "")
        if not expression:
            yield required(f"{at}.expression")
        elif problem := compile_condition(expression, has_params=has_params).problem:
            yield bad_value(f"{at}.expression", expression, problem)
        if not name:
            yield required(f"{at}.name")
            continue
        yield from (bad_value(f"{at}.name", name, problem) for problem in check_label_key(name))
        if name in seen:
            yield duplicate(f"{at}.name", name)
        seen.add(name)


def warn_of_static_suffix(obj: Object) -> list[str]:
    """Upstream reserves these names for configurations in files."""
    if not obj["metadata"].get("name", "").endswith(_STATIC_SUFFIX):
        return []
    why = "are reserved for static manifest-based configurations and cannot be managed via the API"
    return [f'metadata.name: names ending with "{_STATIC_SUFFIX}" {why}']


def _validate_name(name: str, path: str) -> FieldErrors:
    if not name:
        yield required(path)
    elif problems := check_dns_subdomain(name):
        yield bad_value(path, name, ",".join(problems))
    elif name.count(".") < 2:
        yield bad_value(path, name, "should be a domain with at least three segments separated by dots")


def _validate_versions(versions: list[str], path: str) -> FieldErrors:
    known = ", ".join(_REVIEW_VERSIONS)
    if not versions:
        yield required(path, f"must specify one of {known}")
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            yield bad_value(f"{path}[{index}]", version, "duplicate version")
            continue
        seen.add(version)
        for problem in check_dns_label_1035(version):
            yield bad_value(f"{path}[{index}]", version, problem)
    if not seen & set(_REVIEW_VERSIONS):
        yield bad_value(path, versions, f"must include at least one of {known}")
