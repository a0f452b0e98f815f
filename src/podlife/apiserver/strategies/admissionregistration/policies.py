"""ValidatingAdmissionPolicies and MutatingAdmissionPolicies, and the bindings that put them in force."""

from __future__ import annotations

import re

from podlife.api.cel import BOOL, STRING, escape_name
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
from podlife.api.labels import validate_label_selector
from podlife.api.names import (
    check_dns_label_1035,
    check_dns_subdomain,
    check_label_key,
    check_path_segment,
)
from podlife.apiserver.expressions import (
    ANNOTATION_TYPES,
    PATCH_TYPES,
    Declarations,
    Expression,
    ExpressionCompiler,
)
from podlife.apiserver.strategies.admissionregistration.rules import validate_rule
from podlife.apiserver.strategies.admissionregistration.webhooks import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    validate_conditions,
    warn_of_static_suffix,
)
from podlife.apiserver.strategies.field_checks import bounded_expressions, required_choice
from podlife.apiserver.strategies.strategy import Strategy

_ACTIONS = ("Audit", "Deny", "Warn")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
# A deletion has no object to change.
_MUTABLE = ("*", "CONNECT", "CREATE", "UPDATE")
_MOST_ANNOTATIONS = 20
_LONGEST_VALUE_EXPRESSION = 5 * 1024
_is_identifier = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*").fullmatch
_WANTED = "validations or auditAnnotations must contain at least one item"


class _PolicyPart(Strategy):
    """What policies and bindings have in common."""

    has_generation = True
    unconditional_update = False

    def __init__(self, *, is_mutating: bool) -> None:
        self._is_mutating = is_mutating

    def warnings(self, obj: Object) -> list[str]:
        return warn_of_static_suffix(obj)

    def _validate_match(self, match: Object, path: str) -> FieldErrors:
        yield from required_choice(f"{path}.matchPolicy", match.get("matchPolicy", ""), MATCH_POLICIES)
        for field in ("namespaceSelector", "objectSelector"):
            yield from validate_label_selector(match.get(field), f"{path}.{field}")
        for field in ("resourceRules", "excludeResourceRules"):
            for index, rule in enumerate(match.get(field) or ()):
                yield from _validate_named_rule(rule, f"{path}.{field}[{index}]")

    def _validate_operations(self, match: Object, path: str) -> FieldErrors:
        for rule in match.get("resourceRules") or () if self._is_mutating else ():
            for operation in rule.get("operations") or ():
                if operation not in _MUTABLE:
                    yield not_supported(f"{path}.resourceRules.operations", operation, _MUTABLE)


class AdmissionPolicyStrategy(_PolicyPart):
    # Expressions are compiled.
    is_costly = True

    def __init__(self, *, is_mutating: bool) -> None:
        super().__init__(is_mutating=is_mutating)
        self.has_status = not is_mutating

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("failurePolicy", "Fail")
        _default_match(spec.get("matchConstraints"))

    def prepare_create(self, obj: Object) -> None:
        if self.has_status:
            obj["status"] = {}

    def validate(self, obj: Object) -> list[FieldError]:
        return bounded_expressions("spec", obj["spec"]) or list(self._errors(obj, obj["spec"]))

    def _errors(self, obj: Object, spec: Object) -> FieldErrors:
        yield from required_choice("spec.failurePolicy", spec.get("failurePolicy", ""), FAILURE_POLICIES)
        if (kind := spec.get("paramKind")) is not None:
            yield from _validate_param_kind(kind, "spec.paramKind")
        if (match := spec.get("matchConstraints")) is None:
            yield required("spec.matchConstraints")
        else:
            yield from self._validate_match(match, "spec.matchConstraints")
            if not match.get("resourceRules"):
                yield required("spec.matchConstraints.resourceRules")
            yield from self._validate_operations(match, "spec.matchConstraints")
        conditions, has_params = spec.get("matchConditions") or [], kind is not None
        yield from validate_conditions(conditions, "spec.matchConditions", has_params=has_params)
        variables = spec.get("variables") or ()
        compiler = ExpressionCompiler(
            Declarations(has_params=has_params, variables={} if variables or self._is_mutating else None)
        )
        for index, variable in enumerate(variables):
            yield from _validate_variable(compiler, variable, f"spec.variables[{index}]")
        if self._is_mutating:
            yield from _validate_mutations(compiler, spec)
        else:
            yield from _validate_rules(compiler, obj, spec)


class PolicyBindingStrategy(_PolicyPart):
    def default(self, obj: Object) -> None:
        _default_match(obj.setdefault("spec", {}).get("matchResources"))

    def validate(self, obj: Object) -> list[FieldError]:
        return list(self._errors(obj["spec"]))

    def _errors(self, spec: Object) -> FieldErrors:
        if not (policy := spec.get("policyName", "")):
            yield required("spec.policyName")
        else:
            for problem in check_dns_subdomain(policy):
                yield bad_value("spec.policyName", policy, problem)
        if (reference := spec.get("paramRef")) is not None:
            yield from _validate_param_ref(reference, "spec.paramRef")
        if (match := spec.get("matchResources")) is not None:
            yield from self._validate_match(match, "spec.matchResources")
            yield from self._validate_operations(match, "spec.matchResources")
        if not self._is_mutating:
            yield from _validate_actions(spec.get("validationActions") or [], "spec.validationActions")


def _default_match(match: Object | None) -> None:
    if match is None:
        return
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for field in ("resourceRules", "excludeResourceRules"):
        for rule in match.get(field) or ():
            rule.setdefault("scope", "*")


def _validate_named_rule(rule: Object, path: str) -> FieldErrors:
    seen: set[str] = set()
    for index, name in enumerate(rule.get("resourceNames") or ()):
        at = f"{path}.resourceNames[{index}]"
        yield from (bad_value(at, name, problem) for problem in check_path_segment(name))
        if name in seen:
            yield duplicate(at, name)
        seen.add(name)
    yield from validate_rule(rule, path)


def _validate_param_kind(kind: Object, path: str) -> FieldErrors:
    api_version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    if not api_version:
        yield required(f"{path}.apiVersion")
    elif api_version.count("/") > 1:
        yield bad_value(f"{path}.apiVersion", api_version, f"unexpected GroupVersion string: {api_version}")
    else:
        group, _, version = api_version.rpartition("/")
        if group and (problems := check_dns_subdomain(group)):
            yield bad_value(f"{path}.apiVersion", group, ",".join(problems))
        if not version:
            yield bad_value(f"{path}.apiVersion", api_version, "version must be specified")
        elif problems := check_dns_label_1035(version):
            yield bad_value(f"{path}.apiVersion", version, ",".join(problems))
    if not name:
        yield required(f"{path}.kind")
    elif problems := check_dns_label_1035(name.lower()):
        text = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        yield bad_value(f"{path}.kind", name, text)


def _validate_param_ref(reference: Object, path: str) -> FieldErrors:
    name, selector = reference.get("name", ""), reference.get("selector")
    exclusive = "name and selector are mutually exclusive"
    if name:
        yield from (bad_value(f"{path}.name", name, problem) for problem in check_path_segment(name))
        if selector is not None:
            yield forbidden(f"{path}.name", exclusive)
    if selector is not None:
        yield from validate_label_selector(selector, f"{path}.selector")
        if name:
            yield forbidden(f"{path}.selector", exclusive)
    if not name and selector is None:
        yield required(path, "one of name or selector must be specified")
    action = reference.get("parameterNotFoundAction", "")
    yield from required_choice(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow"))


def _validate_actions(actions: list[str], path: str) -> FieldErrors:
    seen: set[str] = set()
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield not_supported(f"{path}[{index}]", action, _ACTIONS)
        if action in seen:
            yield duplicate(f"{path}[{index}]", action)
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        why = "repeating the same validation failure information in the API response and headers serves no purpose"
        yield bad_value(path, actions, f"must not contain both Deny and Warn ({why})")
    if not seen:
        yield required(path, "at least one validation action is required")


def _validate_variable(compiler: ExpressionCompiler, variable: Object, path: str) -> FieldErrors:
    name, expression = variable.get("name", ""), variable.get("expression", "")
    if not name.strip():
        yield required(f"{path}.name", "name is not specified")
    elif not _is_identifier(name) or escape_name(name) == f"__{name}__":
        yield bad_value(f"{path}.name", name, "must be a valid CEL identifier")
    if not expression.strip():
        yield required(f"{path}.expression", "expression is not specified")
    else:
        yield from _problem(compiler.add_variable(name, expression), f"{path}.expression")


def _problem(expression: Expression, path: str) -> list[FieldError]:
    return [bad_value(path, expression.source, expression.problem)] if expression.problem else []


def _validate_rules(compiler: ExpressionCompiler, obj: Object, spec: Object) -> FieldErrors:
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or []
    if not validations and not annotations:
        yield required("spec.validations", _WANTED)
        yield required("spec.auditAnnotations", _WANTED)
    for index, rule in enumerate(validations):
        path, expression = f"spec.validations[{index}]", rule.get("expression", "")
        if not expression.strip():
            yield required(f"{path}.expression", "expression is not specified")
        else:
            yield from _problem(compiler.compile(expression, BOOL), f"{path}.expression")
        yield from _validate_message(compiler, rule, path)
    if len(annotations) > _MOST_ANNOTATIONS:
        text = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        yield bad_value("spec.auditAnnotations", annotations, text)
    seen: set[str] = set()
    for index, annotation in enumerate(annotations):
        path, key = f"spec.auditAnnotations[{index}]", annotation.get("key", "")
        yield from _validate_annotation(compiler, obj["metadata"].get("name", ""), annotation, path)
        if key in seen:
            yield duplicate(f"{path}.key", key)
        seen.add(key)


def _validate_message(compiler: ExpressionCompiler, rule: Object, path: str) -> FieldErrors:
    expression, message = rule.get("messageExpression", ""), rule.get("message", "")
    blank = "must be non-empty if specified"
    if expression and not expression.strip():
        yield bad_value(f"{path}.messageExpression", expression, blank)
    elif expression:
        compiled = compiler.compile(expression, STRING, has_authorizer=False)
        yield from _problem(compiled, f"{path}.messageExpression")
    if message and not message.strip():
        yield bad_value(f"{path}.message", message, blank)
    elif "\n" in message.strip() or "\r" in message.strip():
        yield bad_value(f"{path}.message", message, "must not contain line breaks")
    if (reason := rule.get("reason")) is not None and reason not in _REASONS:
        yield not_supported(f"{path}.reason", reason, _REASONS)


def _validate_annotation(
    compiler: ExpressionCompiler, name: str, annotation: Object, path: str
) -> FieldErrors:
    whole = f"{name}/{annotation.get('key', '')}"
    yield from (bad_value(f"{path}.key", whole, problem) for problem in check_label_key(whole))
    given = annotation.get("valueExpression", "")
    expression = given.strip()
    if not expression:
        yield required(f"{path}.valueExpression", "valueExpression is not specified")
    elif len(expression.encode()) > _LONGEST_VALUE_EXPRESSION:
        text = f"must not exceed {_LONGEST_VALUE_EXPRESSION} bytes in length"
        yield required(f"{path}.valueExpression", text)
    elif problem := compiler.compile(expression, *ANNOTATION_TYPES).problem:
        yield bad_value(f"{path}.valueExpression", given, problem)


def _validate_mutations(compiler: ExpressionCompiler, spec: Object) -> FieldErrors:
    mutations = spec.get("mutations") or ()
    if not mutations:
        yield required("spec.mutations", "mutations must contain at least one item")
    for index, mutation in enumerate(mutations):
        yield from _validate_mutation(compiler, mutation, f"spec.mutations[{index}]")
    policy = spec.get("reinvocationPolicy", "")
    yield from required_choice("spec.reinvocationPolicy", policy, REINVOCATION_POLICIES)


def _validate_mutation(compiler: ExpressionCompiler, mutation: Object, path: str) -> FieldErrors:
    kind = mutation.get("patchType", "")
    if kind not in PATCH_TYPES:
        yield from required_choice(f"{path}.patchType", kind, tuple(PATCH_TYPES))
        return
    wanted, other = ("jsonPatch", "applyConfiguration")[:: 1 if kind == "JSONPatch" else -1]
    if (change := mutation.get(wanted)) is None:
        yield required(f"{path}.{wanted}", f"must be specified when patchType is {kind}")
    elif expression := change.get("expression", "").strip():
        compiled = compiler.compile(expression, PATCH_TYPES[kind], has_patch_types=True)
        yield from _problem(compiled, f"{path}.{wanted}.expression")
    else:
        yield required(f"{path}.{wanted}.expression")
    if mutation.get(other) is not None:
        text = f"must not be specified when patchType is {kind}"
        yield bad_value(f"{path}.{other}", f"{{{other}}}", text)
