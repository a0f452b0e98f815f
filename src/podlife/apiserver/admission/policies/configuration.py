"""Admission policies and their bindings as they are stored, in the order of their names."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from podlife.api.codec import Object, decode_object, encode
from podlife.apiserver.admission.webhooks.configuration import Rule
from podlife.apiserver.storage import Store

MUTATING = "mutatingadmissionpolicies.admissionregistration.k8s.io"
MUTATING_BINDINGS = "mutatingadmissionpolicybindings.admissionregistration.k8s.io"
VALIDATING = "validatingadmissionpolicies.admissionregistration.k8s.io"
VALIDATING_BINDINGS = "validatingadmissionpolicybindings.admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A rule, and the names it is limited to; empty means all."""

    rule: Rule
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class MatchResources:
    """What a policy or a binding is about. Without rules, a binding is about everything."""

    rules: tuple[NamedRule, ...] = ()
    excluded: tuple[NamedRule, ...] = ()
    namespace_selector: Object | None = None
    object_selector: Object | None = None
    matches_equivalent: bool = True

    @classmethod
    def from_object(cls, match: Object | None) -> MatchResources:
        match = match or {}
        return cls(
            _named_rules(match.get("resourceRules")),
            _named_rules(match.get("excludeResourceRules")),
            match.get("namespaceSelector"),
            match.get("objectSelector"),
            match.get("matchPolicy") != "Exact",
        )


def _named_rules(rules: list[Object] | None) -> tuple[NamedRule, ...]:
    return tuple(
        NamedRule(Rule.from_object(rule), frozenset(rule.get("resourceNames") or ())) for rule in rules or ()
    )


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    name: str
    match: MatchResources
    actions: tuple[str, ...]
    param_ref: Object | None


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """`source` is the stored spec, by which compiled expressions are kept. Without bindings a policy does nothing."""

    name: str
    is_mutating: bool
    spec: Object
    source: bytes
    match: MatchResources
    bindings: tuple[Binding, ...]

    @property
    def ignores_failure(self) -> bool:
        return bool(self.spec.get("failurePolicy") == "Ignore")

    @property
    def is_reinvoked(self) -> bool:
        return bool(self.spec.get("reinvocationPolicy") == "IfNeeded")


class PolicySource:
    """The policies of one kind. It follows the store: a change applies to every later request."""

    def __init__(self, store: Store, policies: str, bindings: str) -> None:
        self._store = store
        self._resources = policies, bindings
        self._seen: tuple[object, ...] = ()
        self._policies: tuple[Policy, ...] = ()

    def current(self) -> tuple[Policy, ...]:
        if not self._store.count(self._resources[0]):
            return ()
        # The store gives the same tuples until something changes.
        policies, bindings = (self._store.list(resource) for resource in self._resources)
        if len(self._seen) != 2 or policies is not self._seen[0] or bindings is not self._seen[1]:
            by_policy: defaultdict[str, list[Binding]] = defaultdict(list)
            for record in bindings:
                spec = decode_object(record.value).get("spec") or {}
                by_policy[spec.get("policyName", "")].append(_binding(record.key.name, spec))
            self._policies = tuple(
                self._policy(record.key.name, decode_object(record.value).get("spec") or {}, by_policy)
                for record in policies
                if record.key.name in by_policy
            )
            self._seen = policies, bindings
        return self._policies

    def _policy(self, name: str, spec: Object, bindings: dict[str, list[Binding]]) -> Policy:
        match = MatchResources.from_object(spec.get("matchConstraints"))
        is_mutating = self._resources[0] == MUTATING
        return Policy(name, is_mutating, spec, encode(spec), match, tuple(bindings[name]))


def _binding(name: str, spec: Object) -> Binding:
    match = MatchResources.from_object(spec.get("matchResources"))
    return Binding(name, match, tuple(spec.get("validationActions") or ()), spec.get("paramRef"))
