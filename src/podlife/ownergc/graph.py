"""The ownership graph: every object of the cluster by UID, updated by events. Pure.

An owner that was referenced but never observed is a virtual node, under the coordinates that its dependent gives; it
remains until it is observed or the server reports it missing. Dependents may disagree about an owner's coordinates:
disproving one says nothing about the others.

Each change returns the objects to examine (`GraphChanges`); `decision` decides whether anything is done. The cost of
a change is proportional to the owners and dependents of the changed object.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from podlife.ownergc.views import ObjectIdentity, PartialMetadata, PartialOwnerReference

_NO_DEPENDENTS: dict[str, None] = {}


class GraphNode:
    """`seen` is the object's last known state; None for a virtual node. `dependents` are UIDs, oldest first."""

    __slots__ = ("dependents", "identity", "seen")

    def __init__(self, identity: ObjectIdentity, seen: PartialMetadata | None = None) -> None:
        self.identity = identity
        self.seen = seen
        self.dependents = _NO_DEPENDENTS

    @property
    def owners(self) -> Sequence[PartialOwnerReference]:
        return self.seen.owner_references if self.seen is not None else ()

    @property
    def is_virtual(self) -> bool:
        return self.seen is None

    @property
    def is_deleting_dependents(self) -> bool:
        return self.seen is not None and self.seen.is_deleting_dependents

    def __repr__(self) -> str:
        return f"<Node {self.identity}{' virtual' if self.is_virtual else ''}>"


@dataclass(slots=True)
class GraphChanges:
    """Objects to examine after a change, by UID. The queues remove duplicates."""

    delete: list[str] = field(default_factory=list)
    orphan: list[str] = field(default_factory=list)
    # Owners that no longer exist.
    absent: list[ObjectIdentity] = field(default_factory=list)
    # Dependents whose owner is in another namespace, with that reference.
    invalid: list[tuple[ObjectIdentity, PartialOwnerReference]] = field(default_factory=list)


class Graph:
    def __init__(self) -> None:
        self._nodes: dict[str, GraphNode] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, uid: str) -> GraphNode | None:
        return self._nodes.get(uid)

    def dependents(self, node: GraphNode) -> list[GraphNode]:
        return [self._nodes[uid] for uid in node.dependents]

    def blocking_dependents(self, node: GraphNode) -> list[GraphNode]:
        """Dependents with blockOwnerDeletion. Those in another namespace cannot be owned, and do not block."""
        uid = node.identity.uid
        return [
            dependent
            for dependent in self.dependents(node)
            if any(owner.uid == uid and owner.block_owner_deletion for owner in dependent.owners)
            and not _is_elsewhere(node.identity, dependent.identity.namespace)
        ]

    # Changes

    def observe(self, identity: ObjectIdentity, seen: PartialMetadata) -> GraphChanges:
        """The object exists, in this state."""
        changes = GraphChanges()
        node = self._nodes.get(identity.uid)
        if node is None:
            node = self._nodes[identity.uid] = GraphNode(identity)
        elif node.is_virtual and node.identity != identity:
            self._doubt_dependents(node, identity, changes)
        before, node.seen, node.identity = node.seen, seen, identity
        old_owners = before.owner_references if before is not None else ()
        if old_owners != seen.owner_references:
            self._change_owners(node, old_owners, seen.owner_references, changes)
        self._begin_waiting(node, before, seen, changes)
        return changes

    def lose(self, identity: ObjectIdentity) -> GraphChanges:
        """The object was deleted. Its UID will not return, under any name."""
        changes = GraphChanges()
        node = self._nodes.get(identity.uid)
        if node is not None:
            node.identity = identity
            self._remove(node, changes)
        return changes

    def disprove(self, identity: ObjectIdentity) -> GraphChanges:
        """The server has no object with these coordinates and UID."""
        changes = GraphChanges()
        node = self._nodes.get(identity.uid)
        if node is None:
            return changes
        matching, others = self._partition(node, identity)
        if node.identity == identity and not (node.is_virtual and others):
            self._remove(node, changes)
            return changes
        # Only dependents that refer to it by these coordinates have lost it.
        if matching:
            changes.absent.append(identity)
            changes.delete += [dependent.identity.uid for dependent in matching]
        if node.is_virtual and node.identity == identity:
            alternative = _next_identity(identity, others)
            if alternative is not None:
                node.identity = alternative
        return changes

    def drop(self, uid: str) -> GraphChanges:
        """The object's resource is no longer served: whether the object exists is unknown."""
        changes = GraphChanges()
        node = self._nodes.get(uid)
        if node is None or node.is_virtual:
            return changes
        self._leave_owners(node, node.owners, changes)
        node.seen = None
        if node.dependents:
            changes.delete.append(uid)
        else:
            del self._nodes[uid]
        return changes

    # Internals

    def _change_owners(
        self,
        node: GraphNode,
        before: Sequence[PartialOwnerReference],
        after: Sequence[PartialOwnerReference],
        changes: GraphChanges,
    ) -> None:
        old = {owner.uid: owner for owner in before}
        new = {owner.uid: owner for owner in after}
        for uid, owner in old.items():
            kept = new.get(uid)
            if owner.block_owner_deletion and not (kept is not None and kept.block_owner_deletion):
                changes.delete += [uid] if uid in self._nodes else []
        self._join_owners(node, [owner for owner in after if old.get(owner.uid) != owner], changes)
        self._leave_owners(node, [owner for uid, owner in old.items() if uid not in new])

    def _join_owners(
        self, node: GraphNode, owners: Iterable[PartialOwnerReference], changes: GraphChanges
    ) -> None:
        uid, namespace = node.identity.uid, node.identity.namespace
        is_doubtful = False
        for reference in owners:
            owner = self._nodes.get(reference.uid)
            is_known = owner is not None
            if owner is None:
                owner = self._nodes[reference.uid] = GraphNode(reference.identity(namespace))
                changes.delete.append(reference.uid)
            if owner.dependents is _NO_DEPENDENTS:
                owner.dependents = {}
            owner.dependents[uid] = None
            if not is_known or _is_good(reference, node.identity, owner):
                continue
            is_doubtful = True
            if not owner.is_virtual and _is_elsewhere(owner.identity, namespace):
                changes.invalid.append((node.identity, reference))
        if is_doubtful:
            changes.delete.append(uid)

    def _leave_owners(
        self, node: GraphNode, owners: Iterable[PartialOwnerReference], changes: GraphChanges | None = None
    ) -> None:
        """With `changes`, the node is being removed: an owner that waits for it is examined again."""
        for reference in owners:
            owner = self._nodes.get(reference.uid)
            if owner is None:
                continue
            if node.identity.uid in owner.dependents:
                del owner.dependents[node.identity.uid]
                self._forget_if_unused(owner)
            if changes is not None and owner.is_deleting_dependents:
                changes.delete.append(reference.uid)

    def _forget_if_unused(self, node: GraphNode) -> None:
        if not node.dependents:
            node.dependents = _NO_DEPENDENTS
            if node.is_virtual:
                self._nodes.pop(node.identity.uid, None)

    def _doubt_dependents(self, node: GraphNode, identity: ObjectIdentity, changes: GraphChanges) -> None:
        """A virtual node has other coordinates than its dependents give: examine them."""
        _, others = self._partition(node, identity)
        for dependent in others:
            if _is_elsewhere(identity, dependent.identity.namespace):
                reference = next(owner for owner in dependent.owners if owner.uid == identity.uid)
                changes.invalid.append((dependent.identity, reference))
            changes.delete.append(dependent.identity.uid)

    def _begin_waiting(
        self, node: GraphNode, before: PartialMetadata | None, seen: PartialMetadata, changes: GraphChanges
    ) -> None:
        uid = node.identity.uid
        if seen.is_orphaning_dependents and not (before is not None and before.is_orphaning_dependents):
            changes.orphan.append(uid)
        elif seen.is_deleting_dependents and not (before is not None and before.is_deleting_dependents):
            changes.delete += node.dependents
            changes.delete.append(uid)

    def _remove(self, node: GraphNode, changes: GraphChanges) -> None:
        del self._nodes[node.identity.uid]
        if node.dependents:
            changes.absent.append(node.identity)
            changes.delete += node.dependents
        self._leave_owners(node, node.owners, changes)

    def _partition(
        self, node: GraphNode, identity: ObjectIdentity
    ) -> tuple[list[GraphNode], list[GraphNode]]:
        """The dependents that refer to the node by this identity, and those that use another one; a dependent with
        several references may be in both."""
        matching, others = [], []
        for dependent in self.dependents(node):
            is_elsewhere = _is_elsewhere(identity, dependent.identity.namespace)
            references = [owner for owner in dependent.owners if owner.uid == identity.uid]
            fits = [not is_elsewhere and reference.names(identity) for reference in references]
            if any(fits):
                matching.append(dependent)
            if not all(fits):
                others.append(dependent)
        return matching, others


def _is_elsewhere(owner: ObjectIdentity, namespace: str) -> bool:
    return owner.namespace not in ("", namespace)


def _is_good(reference: PartialOwnerReference, dependent: ObjectIdentity, owner: GraphNode) -> bool:
    """Whether the reference matches its owner as far as known. An unobserved owner of a cluster-scoped object may turn
    out to be of a namespaced kind: then this dependent has to be examined on its own."""
    if _is_elsewhere(owner.identity, dependent.namespace) or not reference.names(owner.identity):
        return False
    return not (owner.is_virtual and owner.identity.namespace != dependent.namespace)


def _next_identity(absent: ObjectIdentity, dependents: Iterable[GraphNode]) -> ObjectIdentity | None:
    """The next coordinates that dependents give for an owner that was not found, in order and cyclic, so that each is
    tried."""
    alternatives = set()
    for dependent in dependents:
        for reference in dependent.owners:
            if reference.uid != absent.uid:
                continue
            namespace = dependent.identity.namespace
            if not absent.namespace and (reference.kind, reference.api_version) == absent[:2]:
                # This kind is known to be cluster-scoped.
                namespace = ""
            alternatives.add(reference.identity(namespace))
    alternatives.discard(absent)
    return min((each for each in alternatives if each > absent), default=min(alternatives, default=None))
