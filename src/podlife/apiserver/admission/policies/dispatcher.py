"""Puts policies in force: which of them a request concerns, their parameters, and what follows from their results."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podlife.api.codec import Object, decode_object
from podlife.api.fieldpath import MergeType, merge_type_of_kind
from podlife.apiserver.admission.policies.configuration import (
    MUTATING,
    MUTATING_BINDINGS,
    VALIDATING,
    VALIDATING_BINDINGS,
    Binding,
    Policy,
    PolicySource,
)
from podlife.apiserver.admission.policies.matching import Equivalents, matched_resource, may_match
from podlife.apiserver.admission.policies.mutations import mutated
from podlife.apiserver.admission.policies.params import FindKind, collect_params
from podlife.apiserver.admission.policies.program import (
    Failure,
    PolicyProgram,
    PolicyResult,
    compile_policy,
    validate,
)
from podlife.apiserver.admission.webhooks.errors import internal_error
from podlife.apiserver.admission.webhooks.request import RequestTarget, ReviewedRequest, View
from podlife.apiserver.admission.webhooks.variables import (
    Authorize,
    condition_variables,
    request_variables,
)
from podlife.apiserver.expressions import meets_conditions
from podlife.apiserver.resource import Resource
from podlife.apiserver.storage import Key, Store
from podlife.errors import ApiError

_CODES = {"Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413, "Unauthorized": 401}
_FAILURE = "validation.policy.admission.k8s.io/validation_failure"
# What an expression sees of the metadata of a namespace.
_NAMESPACE_FIELDS = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers"),
)


@dataclass(frozen=True, slots=True)
class Denial:
    policy: Policy
    binding: Binding | None
    message: str
    reason: str = ""

    @property
    def text(self) -> str:
        kind = "policy" if self.policy.is_mutating else "ValidatingAdmissionPolicy"
        if self.binding is None:
            name = f'"{self.policy.name}"' if self.policy.is_mutating else f"'{self.policy.name}'"
            return f"{kind} {name} denied request: {self.message}"
        return (
            f"{kind} '{self.policy.name}' with binding '{self.binding.name}' denied request: {self.message}"
        )


@dataclass(frozen=True, slots=True)
class _Invocation:
    """A policy that is about a request, with one of its bindings and one of that one's parameters."""

    policy: Policy
    binding: Binding
    resource: Resource
    params: Object | None

    @property
    def key(self) -> tuple[str, ...]:
        meta = (self.params or {}).get("metadata") or {}
        return self.policy.name, self.binding.name, meta.get("namespace", ""), meta.get("name", "")

    @property
    def program(self) -> PolicyProgram:
        return compile_policy(self.policy.source)


class PolicyDispatcher:
    """All but `concerned` may take long: expressions are compiled and evaluated."""

    def __init__(
        self, store: Store, equivalents: Equivalents, find_kind: FindKind, authorize: Authorize
    ) -> None:
        self._store = store
        self._equivalents = equivalents
        self._find_kind = find_kind
        self._authorize = authorize
        self._mutating = PolicySource(store, MUTATING, MUTATING_BINDINGS)
        self._validating = PolicySource(store, VALIDATING, VALIDATING_BINDINGS)

    def concerned(self, target: RequestTarget) -> tuple[Policy, ...]:
        """The policies that may be about the request, whatever its object and its name."""
        return tuple(
            policy
            for policy in (*self._mutating.current(), *self._validating.current())
            if may_match(policy.match, target, self._equivalents)
        )

    def mutate(
        self, policies: Sequence[Policy], request: ReviewedRequest, again: frozenset[object] | None = None
    ) -> frozenset[object]:
        """Let the policies change `request.new`; returns what is to be given as `again` if they shall run once more.
        Raises ApiError if one fails that must not."""
        denials: list[Denial] = []
        mutating = [policy for policy in policies if policy.is_mutating]
        invocations = [each for policy in mutating for each in self._invocations(policy, request, denials)]
        invoked: set[object] = set()
        for each in invocations if request.new is not None else ():
            if again is None or (each.key in again and each.policy.is_reinvoked):
                try:
                    if self._is_met(each, request):
                        invoked.add(each.key)
                        denials += self._mutate_once(each, request)
                except ValueError as error:
                    denials.append(Denial(each.policy, each.binding, str(error), "Invalid"))
        if denials := [denial for denial in denials if not denial.policy.ignores_failure]:
            raise _refusal(request, denials)
        return frozenset(invoked)

    def _mutate_once(self, invocation: _Invocation, request: ReviewedRequest) -> Iterator[Denial]:
        """Mutations that fail are left out."""
        view = request.views(invocation.resource)
        for mutation in invocation.program.mutations:
            assert request.new is not None
            try:
                names = self._names(invocation, request)
                changed = mutated(invocation.program, mutation, names, _merge_type(invocation.resource, view))
            except ValueError as error:
                yield Denial(invocation.policy, invocation.binding, str(error), "Invalid")
                continue
            try:
                request.new = view.take(changed, request.new, True)
            except ValueError as error:
                raise internal_error(str(error)) from None

    def validate(self, policies: Sequence[Policy], request: ReviewedRequest) -> None:
        """Raise ApiError if a policy rejects the request."""
        denials: list[Denial] = []
        for policy in policies:
            if not policy.is_mutating:
                denials += self._denials(policy, request)
        if denials:
            raise _refusal(request, denials[:1])

    def _denials(self, policy: Policy, request: ReviewedRequest) -> list[Denial]:
        errors: list[Denial] = []
        found: list[Denial] = []
        annotations: defaultdict[str, list[str]] = defaultdict(list)
        for each in self._invocations(policy, request, errors):
            result = self._result(each, request)
            for failure in result.failures:
                if not (failure.is_error and policy.ignores_failure):
                    found += _enforce(policy, each.binding, failure, request)
            for key, value in result.annotations.items():
                annotations[key] += [value] if value not in annotations[key] else []
            if not policy.ignores_failure:
                found += [Denial(policy, each.binding, error) for error in result.annotation_errors]
        for key, values in annotations.items():
            request.annotations[f"{policy.name}/{key}"] = ", ".join(values)
        return found if policy.ignores_failure else errors + found

    def _result(self, invocation: _Invocation, request: ReviewedRequest) -> PolicyResult:
        try:
            if not self._is_met(invocation, request):
                return PolicyResult()
            return validate(invocation.program, self._names(invocation, request))
        except ValueError as error:
            return PolicyResult([Failure(0, str(error), is_error=True)])

    def _invocations(
        self, policy: Policy, request: ReviewedRequest, errors: list[Denial]
    ) -> Iterator[_Invocation]:
        def labels() -> Mapping[str, str]:
            return (self._namespace(request) or {}).get("metadata", {}).get("labels") or {}

        resource = matched_resource(policy.match, request, self._equivalents, labels)
        if resource is None:
            return
        params_resource = None
        if kind := policy.spec.get("paramKind"):
            params_resource = self._find_kind(kind.get("apiVersion", ""), kind.get("kind", ""))
            if params_resource is None:
                group, _, version = kind.get("apiVersion", "").rpartition("/")
                named = f"'{group}/{version}, Kind={kind.get('kind', '')}'"
                why = f"failed to find resource referenced by paramKind: {named}"
                errors.append(Denial(policy, None, f"failed to configure policy: {why}"))
                return
        for binding in policy.bindings:
            if matched_resource(binding.match, request, self._equivalents, labels) is None:
                continue
            try:
                found = collect_params(self._store, params_resource, binding.param_ref, request.namespace)
            except ValueError as error:
                errors.append(Denial(policy, binding, f"failed to configure binding: {error}"))
                continue
            for params in found:
                yield _Invocation(policy, binding, resource, params)

    def _is_met(self, invocation: _Invocation, request: ReviewedRequest) -> bool:
        """Whether the match conditions hold; raises ValueError."""
        conditions, policy = invocation.program.conditions, invocation.policy
        if not conditions:
            return True
        names = condition_variables(request, invocation.resource, self._authorize)
        names["params"] = invocation.params
        return meets_conditions(conditions, names, ignores_failure=policy.ignores_failure)

    def _names(self, invocation: _Invocation, request: ReviewedRequest) -> dict[str, Any]:
        names = request_variables(request, invocation.resource, self._authorize)
        return {**names, "params": invocation.params, "namespaceObject": self._namespace(request)}

    def _namespace(self, request: ReviewedRequest) -> Object | None:
        if not request.namespace or request.target.is_namespace:
            return None
        record = self._store.get(Key("namespaces", "", request.namespace))
        if record is None:
            return None
        found = decode_object(record.value)
        meta = {name: value for name, value in found["metadata"].items() if name in _NAMESPACE_FIELDS}
        return {"metadata": meta, "spec": found.get("spec") or {}, "status": found.get("status") or {}}


def _merge_type(resource: Resource, view: View) -> MergeType:
    custom = resource.custom
    if custom is not None and view.kind == resource.kind:
        return custom.versions()[resource.api_version].kind
    return merge_type_of_kind(view.api_version, view.kind)


def _enforce(policy: Policy, binding: Binding, failure: Failure, request: ReviewedRequest) -> list[Denial]:
    """Carry out the actions of the binding; a denial is returned."""
    denials: list[Denial] = []
    for action in binding.actions:
        if action == "Deny":
            denials.append(Denial(policy, binding, failure.message, failure.reason))
        elif action == "Warn":
            place = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
            request.warnings.append(f"Validation failed for {place}: {failure.message}")
        else:
            about = {
                "message": failure.message,
                "policy": policy.name,
                "binding": binding.name,
                "expressionIndex": failure.index,
                "validationActions": list(binding.actions),
            }
            request.annotations[_FAILURE] = json.dumps([about], separators=(",", ":"))
    return denials


def _refusal(request: ReviewedRequest, denials: Sequence[Denial]) -> ApiError:
    """As upstream: a validation that fails is Invalid unless it says otherwise; for mutations it is always 403."""
    first, resource = denials[0], request.target.resource
    subject = f'{resource.key} "{request.name}"' if request.name else resource.key
    causes = [{"message": each.text} for each in denials]
    details = {"name": request.name, "group": resource.group, "kind": resource.plural, "causes": causes}
    if first.policy.is_mutating:
        message, reason = first.text, first.reason or "Forbidden"
        code = 403
    else:
        message, reason = f"{subject} is forbidden: {first.text}", first.reason or "Invalid"
        code = _CODES.get(reason, 422)
    return ApiError(
        message, code=code, reason=reason, details={key: value for key, value in details.items() if value}
    )
