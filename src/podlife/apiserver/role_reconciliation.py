"""Bootstrap roles and bindings: created when the server starts, and completed if they have lost something.

As upstream: a role gets the rules, labels and annotations that it lacks and keeps what it has in addition; a binding
gets the subjects that it lacks, and is made again if it refers to another role. An object whose annotation
`rbac.authorization.kubernetes.io/autoupdate` is "false" is left alone.
"""

from __future__ import annotations

import asyncio
from copy import deepcopy

from podlife.api.codec import Object, decode_object, is_same
from podlife.apiserver.authz import AUTO_UPDATE, Attributes, RuleSet, bootstrap_policy, permissions
from podlife.apiserver.bootstrap import ensure_object
from podlife.apiserver.registry import Registry
from podlife.apiserver.registry.object_codec import encoder
from podlife.apiserver.registry.update import commit_change
from podlife.apiserver.storage import Delete, Key

_GROUP = "rbac.authorization.k8s.io"


async def reconcile_roles(registry: Registry) -> None:
    """Create or complete them, all at once: their commits share the disk's time."""
    async with asyncio.TaskGroup() as group:
        for plural, objects in bootstrap_policy().items():
            for obj in objects:
                group.create_task(_reconcile(registry, plural, obj), name=f"reconcile {plural}")


async def _reconcile(registry: Registry, plural: str, expected: Object) -> None:
    meta = expected["metadata"]
    namespace = meta.get("namespace", "")
    key = Key(f"{plural}.{_GROUP}", namespace, meta["name"])
    async with registry.store.locked(key):
        record = registry.store.get(key)
        if record is not None:
            existing = decode_object(record.value)
            if (existing["metadata"].get("annotations") or {}).get(AUTO_UPDATE) == "false":
                return
            if existing.get("roleRef") == expected.get("roleRef"):
                new = reconciled(existing, expected)
                if not is_same(new, existing):
                    await commit_change(registry, record, new, existing, dry_run=False)
                return
            await registry.store.commit(Delete(key, encoder(existing), expected=record.revision))
        await ensure_object(registry, _GROUP, plural, deepcopy(expected), namespace=namespace)


def reconciled(existing: Object, expected: Object) -> Object:
    """Return the object with all that is expected of it; only what differs is new."""
    new = {**existing, "metadata": {**existing["metadata"]}}
    for field in ("annotations", "labels"):
        found = existing["metadata"].get(field) or {}
        new["metadata"][field] = {**expected["metadata"][field], **found}
    if "roleRef" in expected:
        subjects = existing.get("subjects") or []
        if missing := [each for each in expected.get("subjects") or () if each not in subjects]:
            new["subjects"] = subjects + missing
        return new
    rules = existing.get("rules") or []
    held = RuleSet(rules)
    if missing := [_rule(each) for each in permissions(expected.get("rules") or ()) if not held.allows(each)]:
        new["rules"] = rules + missing
    if "aggregationRule" not in expected:
        new.pop("aggregationRule", None)
        return new
    selectors = (existing.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
    wanted = expected["aggregationRule"]["clusterRoleSelectors"]
    if missing := [each for each in wanted if each not in selectors]:
        new["aggregationRule"] = {"clusterRoleSelectors": selectors + missing}
    return new


def _rule(permission: Attributes) -> Object:
    if not permission.resource:
        return {"verbs": [permission.verb], "nonResourceURLs": [permission.path]}
    rule = {
        "verbs": [permission.verb],
        "apiGroups": [permission.group],
        "resources": [permission.target],
        "resourceNames": [permission.name],
    }
    return rule if permission.name else {key: value for key, value in rule.items() if key != "resourceNames"}
