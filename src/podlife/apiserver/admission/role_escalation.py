"""Privilege escalation prevention: a user grants only rights that the user has, by upstream's rules.

Who writes a role must have all its permissions, or the verb `escalate` on it; who writes a binding must have those of
the role, or the verb `bind` on the role. Only members of `system:masters` are not checked. Unlike upstream, a role is
refused if it has too many permissions to compare. The check runs in a worker thread (`is_costly_for_users`).
"""

from __future__ import annotations

from collections.abc import Sequence

from podlife.api.codec import Object
from podlife.apiserver.admission import AdmissionRequest, Plugin, Reader
from podlife.apiserver.authn import MASTERS
from podlife.apiserver.authz import (
    Attributes,
    Authorizer,
    RoleRef,
    count_permissions,
    describe,
    permissions,
    quoted,
)
from podlife.errors import ApiError, ForbiddenError, NotFoundError

_GROUP = "rbac.authorization.k8s.io"
_KINDS = {"ClusterRole": "clusterroles", "Role": "roles"}
_EVERYTHING = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_MOST_PERMISSIONS = 10_000
# Permissions times rules of the user: at worst some seconds in a worker thread, usually milliseconds, because rules
# are found by resource and name.
_MOST_COMPARISONS = 20_000_000


def prevent_escalation(authorizer: Authorizer) -> Plugin:
    def check(request: AdmissionRequest, reader: Reader) -> None:
        if request.resource.group != _GROUP or request.new is None or MASTERS in request.user.groups:
            return
        if request.old is not None and _is_for_collector(request.new, request.old):
            return
        if request.resource.plural in _KINDS.values():
            _check_role(authorizer, request, request.new)
        else:
            _check_binding(authorizer, request, request.new)

    return check


def _is_for_collector(new: Object, old: Object) -> bool:
    """Whether only what the garbage collector needs has changed."""
    ignored = ("finalizers", "managedFields", "ownerReferences", "resourceVersion")

    def rest(obj: Object) -> Object:
        meta = obj["metadata"].items()
        return {**obj, "metadata": {field: value for field, value in meta if field not in ignored and value}}

    return rest(new) == rest(old)


def _check_role(authorizer: Authorizer, request: AdmissionRequest, role: Object) -> None:
    resource, name = request.resource.plural, request.name if request.old is not None else ""
    asked = Attributes("escalate", _GROUP, resource, namespace=request.namespace, name=name)
    if authorizer.authorize(request.user, asked).allowed:
        return
    _check_rules(authorizer, request, role.get("rules") or ())
    if any(
        (each or {}).get("aggregationRule", {}).get("clusterRoleSelectors") for each in (role, request.old)
    ):
        try:
            _check_rules(authorizer, request, _EVERYTHING)
        except ForbiddenError:
            reason = "must have cluster-admin privileges to use the aggregationRule"
            raise _forbidden(request, reason) from None


def _check_binding(authorizer: Authorizer, request: AdmissionRequest, binding: Object) -> None:
    ref = RoleRef.of(binding, request.namespace)
    resource = _KINDS.get(ref.kind)
    if resource is None:
        raise ApiError(f'unsupported role reference kind: "{ref.kind}"', reason="")
    group = binding["roleRef"].get("apiGroup", "")
    asked = Attributes("bind", group, resource, namespace=request.namespace, name=ref.name)
    if authorizer.authorize(request.user, asked).allowed:
        return
    rules = authorizer.policy.rules_of(ref)
    if rules is None:
        # As upstream: its storage knows only the resource of the request.
        kind = request.resource.plural
        details = {"name": ref.name, "group": _GROUP, "kind": kind}
        raise NotFoundError(ref.not_found(kind), details=details)
    _check_rules(authorizer, request, rules.rules)


def _check_rules(authorizer: Authorizer, request: AdmissionRequest, rules: Sequence[Object]) -> None:
    """Raise ForbiddenError unless the user has the permissions."""
    user, policy = request.user, authorizer.policy
    count = count_permissions(rules)
    if count > _MOST_PERMISSIONS:
        most = f"the maximum ({_MOST_PERMISSIONS}) that can be compared with those of the user"
        raise _forbidden(request, f"its rules grant {count} permissions, which exceeds {most}")
    held = policy.count_rules(user, request.namespace)
    if count * held > _MOST_COMPARISONS:
        reason = f"its rules grant {count} permissions, which are too many to compare with the {held} rules of the user"
        raise _forbidden(request, reason)
    missing = policy.missing_permissions(user, request.namespace, permissions(rules))
    if not missing:
        return
    reason = f'user "{user.name}" (groups={quoted(user.groups)}) is attempting to grant RBAC permissions not '
    reason += f"currently held:\n{describe(missing)}"
    if unresolved := policy.missing_roles(user, request.namespace, request.resource.plural):
        reason += f"; resolution errors: [{unresolved}]"
    raise _forbidden(request, reason)


def _forbidden(request: AdmissionRequest, reason: str) -> ForbiddenError:
    # Not yet generated, if it will be.
    name = ((request.new or {}).get("metadata") or {}).get("name", "")
    subject = f'{request.resource.key} "{name}"' if name else request.resource.key
    details = {"name": name, "group": _GROUP, "kind": request.resource.plural}
    return ForbiddenError(
        f"{subject} is forbidden: {reason}",
        details={key: value for key, value in details.items() if value},
    )
