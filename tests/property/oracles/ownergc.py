"""What the collector may do, must have done and must not have done: by a look at everything the server holds.

Written straight from the rules, and slow. It knows no graph, no cache and no event: only the objects as they are at
this moment, and who was ever deleted in which way.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.endpoints import ApiHandler
from podlife.client import CONFIG_MAPS, NODES, SECRETS, Ref
from podlife.wire import Request

Object = dict[str, Any]

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
KINDS: dict[tuple[str, str], Ref] = {("v1", ref.kind): ref for ref in (CONFIG_MAPS, SECRETS, NODES)}

_CATALOG = ResourceCatalog()


@dataclass
class Oracle:
    server: ApiHandler
    # By UID: those that were ever deleted in the foreground, and those with their dependents orphaned.
    foreground: set[str] = field(default_factory=set)
    orphaning: set[str] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)

    def objects(self) -> list[Object]:
        """Everything there is, with its kind."""
        found = []
        for ref in KINDS.values():
            resource = _CATALOG.find(ref.group, ref.version, ref.plural)
            assert resource is not None
            records = self.server.registry.store.list(resource.storage_key, "", revision=None)
            found += [{**json.loads(record.value), "kind": ref.kind} for record in records]
        return found

    # At each write of the collector

    def check(self, request: Request) -> None:
        """Before the server sees it: would it do something that it must not?"""
        if request.method not in ("DELETE", "PATCH") or "/events" in request.path:
            return
        obj = self._addressed(request.path)
        if obj is None:
            return
        body = json.loads(request.body)
        if request.method == "DELETE":
            self._check_delete(obj, body)
        else:
            self._check_patch(obj, body["metadata"])

    def _check_delete(self, obj: Object, body: Object) -> None:
        metadata, meant = obj["metadata"], body["preconditions"]
        if "uid" not in meant:
            self.violations.append(f"a delete of {_name(obj)} does not say whom it means")
        if any(metadata[key] != value for key, value in meant.items()):
            return
        if body["propagationPolicy"] == "Foreground":
            self.foreground.add(metadata["uid"])
        references = metadata.get("ownerReferences") or []
        if not references or any(self._keeps_alive(obj, each) for each in references):
            self.violations.append(f"{_name(obj)} is deleted, though it has an owner: {references}")

    def _check_patch(self, obj: Object, patch: Object) -> None:
        metadata = obj["metadata"]
        if patch.get("uid") != metadata["uid"]:
            if "uid" not in patch:
                self.violations.append(f"a patch of {_name(obj)} does not say whom it means")
            return
        if patch.get("resourceVersion", metadata["resourceVersion"]) != metadata["resourceVersion"]:
            return
        dropped = {each["uid"] for each in patch.get("ownerReferences") or () if "$patch" in each}
        for reference in metadata.get("ownerReferences") or ():
            is_orphaned = reference["uid"] in self.orphaning
            if reference["uid"] in dropped and not is_orphaned and self._keeps_alive(obj, reference):
                self.violations.append(f"{_name(obj)} loses its owner {reference}, who is there")

    def _keeps_alive(self, obj: Object, reference: Object) -> bool:
        """Whether the owner is there, or may be, and does not wait for its dependents to go."""
        if (reference["apiVersion"], reference["kind"]) not in KINDS:
            return True
        owner = self._owner(obj, reference)
        if owner is None:
            return False
        # Of one that no longer waits the collector may not have heard yet; it is on its way out, as was asked for.
        is_going = "deletionTimestamp" in owner["metadata"]
        return not (is_going and reference["uid"] in self.foreground)

    def _owner(self, obj: Object, reference: Object) -> Object | None:
        ref = KINDS[reference["apiVersion"], reference["kind"]]
        namespace = obj["metadata"].get("namespace", "") if ref.namespaced else ""
        if ref.namespaced and not namespace:
            # Means nothing, so that nothing is done about it.
            return {"metadata": {}}
        for each in self.objects():
            metadata = each["metadata"]
            where = (each["kind"], metadata.get("namespace", ""), metadata["name"], metadata["uid"])
            if where == (reference["kind"], namespace, reference["name"], reference["uid"]):
                return each
        return None

    def _addressed(self, path: str) -> Object | None:
        parts = path.split("/")
        name, plural = parts[-1], parts[-2]
        namespace = parts[-3] if plural != "nodes" else ""
        for each in self.objects():
            metadata = each["metadata"]
            if (KINDS["v1", each["kind"]].plural, metadata.get("namespace", ""), metadata["name"]) == (
                plural,
                namespace,
                name,
            ):
                return each
        return None

    # When all is quiet

    def check_end(self) -> None:
        objects = self.objects()
        for obj in objects:
            if "deletionTimestamp" in obj["metadata"]:
                self._check_going(obj, objects)
            else:
                self._check_staying(obj)

    def _check_going(self, obj: Object, objects: list[Object]) -> None:
        metadata = obj["metadata"]
        if ORPHAN in metadata["finalizers"]:
            self.violations.append(f"{_name(obj)} has not let its dependents go")
        if FOREGROUND not in metadata["finalizers"]:
            return
        blocking = [
            each
            for each in objects
            for reference in each["metadata"].get("ownerReferences") or ()
            if reference["uid"] == metadata["uid"] and reference.get("blockOwnerDeletion")
        ]
        if not blocking:
            self.violations.append(f"{_name(obj)} waits for nobody")
        elif not any("deletionTimestamp" in each["metadata"] or self._is_doubtful(each) for each in blocking):
            self.violations.append(f"{_name(obj)} waits for dependents that nobody has asked to go")

    def _check_staying(self, obj: Object) -> None:
        references = obj["metadata"].get("ownerReferences") or []
        if not references or self._is_doubtful(obj):
            return
        absent = [each["uid"] for each in references if self._owner(obj, each) is None]
        there = [each["uid"] for each in references if self._owner(obj, each) is not None]
        if not there:
            self.violations.append(f"{_name(obj)} has outlived all its owners: {references}")
        elif {*absent} - {*there}:
            self.violations.append(f"{_name(obj)} still names owners that are gone: {references}")

    def _is_doubtful(self, obj: Object) -> bool:
        """Whether it names an owner about whom nothing can be said: then nothing is done about it."""
        references = obj["metadata"].get("ownerReferences") or ()
        has_namespace = "namespace" in obj["metadata"]
        return any(
            (each["apiVersion"], each["kind"]) not in KINDS
            or (KINDS[each["apiVersion"], each["kind"]].namespaced and not has_namespace)
            for each in references
        )


def _name(obj: Object) -> str:
    metadata = obj["metadata"]
    return f"{obj['kind']} {metadata.get('namespace', '')}/{metadata['name']} ({metadata['uid'][:8]})"
