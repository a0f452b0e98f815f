"""RBAC: who may do what, by the roles and bindings in the store.

The policy follows the store: a change applies to every later decision. Bindings are found by subject and scope, roles
by name; a role is compiled when it is first needed. Until they are stored, upstream's bootstrap roles and bindings
apply as if they were: a server that was assembled without them has the same rights.

Decisions may be made in other threads than the one of the event loop: whatever they read is replaced, never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from podlife.api.codec import Object, decode_object, encode
from podlife.apiserver.authn import UserInfo
from podlife.apiserver.authz.attributes import DENIED, Attributes, Decision
from podlife.apiserver.authz.bootstrap_policy import GROUP, bootstrap_policy
from podlife.apiserver.authz.rules import RuleSet
from podlife.apiserver.storage import Event, EventType, Store

ROLES = tuple(f"{plural}.{GROUP}" for plural in ("clusterroles", "roles"))
BINDINGS = tuple(f"{plural}.{GROUP}" for plural in ("clusterrolebindings", "rolebindings"))
# A message names at most so many roles that are gone.
_MOST_MISSING = 20
# A list of a user's rules has those of roles of so many bytes at most. The largest role has three megabytes.
_MOST_LISTED_BYTES = 4 * 1024 * 1024
# A decision that may look at roles of more bytes is costly: some 2,000 rules. A binding counts as so many.
_COSTLY_BYTES = 256 * 1024
_GRANT_BYTES = 128


@dataclass(frozen=True, slots=True)
class RoleRef:
    """A role that a binding refers to; the namespace of a ClusterRole is empty."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, binding: Object, namespace: str) -> RoleRef:
        ref = binding.get("roleRef") or {}
        kind = ref.get("kind") or ""
        return cls(kind, namespace if kind == "Role" else "", ref.get("name") or "")

    def not_found(self, resource: str) -> str:
        return f'{resource}.{GROUP} "{self.name}" not found'


@dataclass(frozen=True, slots=True, eq=False)
class Grant:
    """What a binding gives to one of its subjects."""

    namespace: str
    binding: str
    role: RoleRef
    allowed: Decision


@dataclass(slots=True)
class _Scope:
    """The grants of one namespace, or those of the whole cluster."""

    users: dict[str, tuple[Grant, ...]] = field(default_factory=dict)
    groups: dict[str, tuple[Grant, ...]] = field(default_factory=dict)
    # The subjects of each binding.
    bindings: dict[str, list[tuple[bool, str]]] = field(default_factory=dict)

    def add(self, name: str, grants: Iterable[tuple[bool, str, Grant]]) -> None:
        subjects = self.bindings[name] = []
        for is_group, subject, grant in grants:
            found = self.groups if is_group else self.users
            others = found.get(subject, ())
            if not any(each.binding == name for each in others):
                found[subject] = tuple(sorted((*others, grant), key=lambda each: each.binding))
                subjects.append((is_group, subject))

    def remove(self, name: str) -> None:
        for is_group, subject in self.bindings.pop(name, ()):
            found = self.groups if is_group else self.users
            rest = tuple(grant for grant in found[subject] if grant.binding != name)
            if rest:
                found[subject] = rest
            else:
                del found[subject]


class _StoredRole:
    """One version of a role. A change replaces it, so a thread that compiles it meanwhile cannot bring it back."""

    __slots__ = ("_rules", "_value", "size")

    def __init__(self, value: bytes) -> None:
        self._value = value
        self._rules: RuleSet | None = None
        self.size = len(value)

    @property
    def rules(self) -> RuleSet:
        """Compiled when it is first needed."""
        # In this order: another thread may be done with it at any moment.
        value, rules = self._value, self._rules
        if rules is None:
            rules = self._rules = RuleSet(decode_object(value).get("rules") or ())
            self._value = b""
        return rules


class RbacPolicy:
    def __init__(self, store: Store) -> None:
        self._roles: dict[RoleRef, _StoredRole] = {}
        self._scopes: dict[str, _Scope] = {"": _Scope()}
        for plural, objects in bootstrap_policy().items():
            for obj in objects:
                meta = obj["metadata"]
                if plural.endswith("bindings"):
                    self._bind(meta.get("namespace", ""), meta["name"], obj)
                else:
                    kind = "Role" if plural == "roles" else "ClusterRole"
                    self._roles[RoleRef(kind, meta.get("namespace", ""), meta["name"])] = _StoredRole(
                        encode(obj)
                    )
        for resource in ROLES:
            store.follow(resource, self._follow_role)
        for resource in BINDINGS:
            store.follow(resource, self._follow_binding)

    def authorize(self, user: UserInfo, asked: Attributes) -> Decision:
        """Allow, with the binding that does as the reason, or deny, with the roles that were not found."""
        missing: list[RoleRef] = []
        for grant in self._grants_by_role(user, asked.namespace):
            rules = self.rules_of(grant.role)
            if rules is None:
                missing.append(grant.role)
            elif rules.allows(asked):
                return grant.allowed
        return Decision(False, f"RBAC: {_not_found(missing)}") if missing else DENIED

    def rules_for(self, user: UserInfo, namespace: str) -> tuple[list[Object], int, str]:
        """Return the rules of the user in a namespace, the number of roles that are left out because there are too
        many, and the roles that were not found."""
        rules: list[Object] = []
        size = omitted = 0
        for grant in self._grants_by_role(user, namespace):
            if (role := self._roles.get(grant.role)) is None:
                continue
            size += role.size
            if size <= _MOST_LISTED_BYTES:
                rules.extend(role.rules.rules)
            else:
                omitted += 1
        return rules, omitted, self.missing_roles(user, namespace)

    def missing_roles(self, user: UserInfo, namespace: str, resource: str = "") -> str:
        """Return the roles that were not found, of their own resource or, as upstream's storage says, of that of the
        request."""
        grants = self._grants_by_role(user, namespace)
        return _not_found([grant.role for grant in grants if grant.role not in self._roles], resource)

    def is_costly(self, user: UserInfo, namespace: str) -> bool:
        """Whether a decision about the user may take milliseconds: it has large roles, or very many bindings."""
        size, seen = 0, set()
        for grant in self._grants(user, namespace):
            size += _GRANT_BYTES
            if grant.role not in seen and (role := self._roles.get(grant.role)):
                seen.add(grant.role)
                size += role.size
            if size > _COSTLY_BYTES:
                return True
        return False

    def count_rules(self, user: UserInfo, namespace: str) -> int:
        """Return how many rules a decision about the user may have to look at."""
        roles = (self.rules_of(grant.role) for grant in self._grants_by_role(user, namespace))
        return sum(len(role.rules) for role in roles if role)

    def missing_permissions(
        self, user: UserInfo, namespace: str, wanted: Iterable[Attributes]
    ) -> list[Attributes]:
        """Return those of the permissions that the user does not have in a namespace."""
        grants = self._grants_by_role(user, namespace)
        roles = [rules for grant in grants if (rules := self.rules_of(grant.role))]
        return [each for each in wanted if not any(rules.allows(each) for rules in roles)]

    def rules_of(self, ref: RoleRef) -> RuleSet | None:
        """Return the rules of a role; None if there is no such role."""
        role = self._roles.get(ref)
        return role.rules if role else None

    def _grants_by_role(self, user: UserInfo, namespace: str) -> Iterator[Grant]:
        """The first grant of each role: the others give the user nothing more."""
        seen = set()
        for grant in self._grants(user, namespace):
            if grant.role not in seen:
                seen.add(grant.role)
                yield grant

    def _grants(self, user: UserInfo, namespace: str) -> Iterator[Grant]:
        for scope in (self._scopes.get(each) for each in (("", namespace) if namespace else ("",))):
            if scope is not None:
                yield from scope.users.get(user.name, ())
                for group in user.groups:
                    yield from scope.groups.get(group, ())

    def _follow_role(self, event: Event) -> None:
        resource, namespace, name = event.record.key
        ref = RoleRef("ClusterRole" if resource == ROLES[0] else "Role", namespace, name)
        if event.type is EventType.DELETED:
            self._roles.pop(ref, None)
        else:
            self._roles[ref] = _StoredRole(event.record.value)

    def _follow_binding(self, event: Event) -> None:
        _, namespace, name = event.record.key
        is_gone = event.type is EventType.DELETED
        self._bind(namespace, name, None if is_gone else decode_object(event.record.value))

    def _bind(self, namespace: str, name: str, binding: Object | None) -> None:
        scope = self._scopes.setdefault(namespace, _Scope())
        scope.remove(name)
        if binding is not None:
            scope.add(name, _grants_of(binding, namespace, name))
        elif namespace and not scope.bindings:
            del self._scopes[namespace]


def _grants_of(binding: Object, namespace: str, name: str) -> Iterator[tuple[bool, str, Grant]]:
    role = RoleRef.of(binding, namespace)
    what = f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"'
    for subject in binding.get("subjects") or ():
        kind, subject_name = subject.get("kind"), subject.get("name") or ""
        user = shown = subject_name
        if kind == "ServiceAccount":
            of = subject.get("namespace") or namespace
            user, shown = f"system:serviceaccount:{of}:{subject_name}", f"{subject_name}/{of}"
        reason = f'RBAC: allowed by {what} of {role.kind} "{role.name}" to {kind} "{shown}"'
        yield kind == "Group", user, Grant(namespace, name, role, Decision(True, reason))


def _not_found(missing: list[RoleRef], resource: str = "") -> str:
    texts = list(dict.fromkeys(ref.not_found(resource or ref.kind.lower()) for ref in missing))[
        :_MOST_MISSING
    ]
    return f"[{', '.join(texts)}]" if len(texts) > 1 else "".join(texts)
