"""ControllerRevisions: the history of the templates of StatefulSets and DaemonSets.

A revision holds a patch that restores the template. It is byte for byte what kube-controller-manager writes and has
the same hash in its name: switching between the two causes neither a new revision nor a rollout. This module finds,
claims and writes revisions; the controllers decide which are needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from podlife.api.codec import Object, escape_as_go
from podlife.api.selectors import LabelSelector
from podlife.api.views import controller_of
from podlife.client import CONTROLLER_REVISIONS, Client, DeleteOptions, PatchType, Ref
from podlife.errors import AlreadyExistsError, ConflictError, NotFoundError
from podlife.informer import CacheReader
from podlife.informer.indexes import Indexer
from podlife.podcontrol import ClaimSettings, ControllerRefManager, Owner, controller_index_key, recheck_owner
from podlife.workloads.status import next_collision_count, safe_encode
from podlife.workloads.views import Template, WorkloadMetadata

HASH_LABEL = "controller.kubernetes.io/hash"

_BY_CONTROLLER = "controller"
# Leaves room for the hash in a name of 253 characters.
_MOST_OF_OWNER_NAME = 223
_LONG_NUMBER = re.compile(rb"\d{16}")
# Go cannot parse such a number, so no template has it.
_BEYOND_FLOATS = 10**308
_BEGINNING = datetime.min.replace(tzinfo=UTC)


class ControllerRevision(msgspec.Struct):
    metadata: WorkloadMetadata
    revision: int = 0
    # Any JSON: its owner interprets it.
    data: Any = None


def _by_controller(revision: ControllerRevision) -> tuple[str, ...]:
    return (controller_index_key(revision.metadata.namespace, controller_of(revision.metadata)),)


REVISION_INDEXERS: Mapping[str, Indexer[ControllerRevision]] = {_BY_CONTROLLER: _by_controller}
"""For the shared informer of ControllerRevisions."""


# Content of a revision. Pure.


def canonical_json(value: object) -> bytes:
    """As Go encodes plain JSON: sorted keys, numbers as floats, `<`, `>`, `&` and two line separators escaped."""
    data = msgspec.json.encode(value, order="deterministic")
    if _LONG_NUMBER.search(data):
        data = msgspec.json.encode(_through_floats(value), order="deterministic")
    return escape_as_go(data)


def _through_floats(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _through_floats(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_through_floats(each) for each in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _BEYOND_FLOATS:
        return int(Decimal(repr(float(value))))
    return value


def template_patch(template: Template) -> bytes:
    """The patch that restores this template, as in a revision's data."""
    return canonical_json({"spec": {"template": {**template, "$patch": "replace"}}})


def template_of(revision: ControllerRevision) -> Template | None:
    """The template that the revision restores; None if it has none."""
    data = revision.data
    spec = data.get("spec") if isinstance(data, Mapping) else None
    template = spec.get("template") if isinstance(spec, Mapping) else None
    if not isinstance(template, Mapping):
        return None
    return {name: value for name, value in template.items() if name != "$patch"}


def is_written_as(revision: ControllerRevision, patch: bytes) -> bool:
    return canonical_json(revision.data) == patch


def is_revision_of(revision: ControllerRevision, template: Template) -> bool:
    """Whether restoring the revision would change nothing, even if it is encoded differently: servers before 1.34 wrote
    empty times as null (upstream: semantic comparison)."""
    restored = template_of(revision)
    return restored is not None and canonical_json(_without_nulls(restored)) == canonical_json(
        _without_nulls(template)
    )


def _without_nulls(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_without_nulls(each) for each in value]
    return value


# Order, names and numbers. Pure.


def in_order(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """From the oldest to the newest: by number, then by age, then by name."""

    def age(each: ControllerRevision) -> tuple[int, datetime, str]:
        return each.revision, each.metadata.creation_timestamp or _BEGINNING, each.metadata.name

    return sorted(revisions, key=age)


def next_number(revisions: Iterable[ControllerRevision]) -> int:
    return max((each.revision for each in revisions), default=0) + 1


def revision_hash(data: bytes, collision_count: int | None) -> str:
    """FNV-1 of 32 bits over the data and the count."""
    number = 0x811C9DC5
    for byte in data + (b"" if collision_count is None else str(collision_count).encode()):
        number = (number * 0x01000193 & 0xFFFFFFFF) ^ byte
    return safe_encode(number)


def revision_name(owner_name: str, hash_: str) -> str:
    return f"{owner_name[:_MOST_OF_OWNER_NAME]}-{hash_}"


def surplus(
    revisions: Sequence[ControllerRevision], live: Collection[str], limit: int
) -> list[ControllerRevision]:
    """The oldest revisions beyond the limit, except live ones. `revisions` are sorted; a negative limit means none."""
    history = [each for each in revisions if each.metadata.name not in live]
    return history[: len(history) - limit] if 0 <= limit < len(history) else []


# Finding, claiming and writing


@dataclass(frozen=True, slots=True)
class RevisionDraft:
    data: bytes
    number: int
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    # The label for the hash.
    hash_label: str = HASH_LABEL

    def to_object(self, owner: Owner, collision_count: int) -> Object:
        hash_ = revision_hash(self.data, collision_count)
        return {
            "apiVersion": CONTROLLER_REVISIONS.api_version,
            "kind": CONTROLLER_REVISIONS.kind,
            "metadata": {
                "name": revision_name(owner.name, hash_),
                "namespace": owner.namespace,
                "labels": {**self.labels, self.hash_label: hash_},
                "annotations": dict(self.annotations),
                "ownerReferences": [owner.controller_ref().to_object()],
            },
            # Sent unchanged: the server keeps the bytes, and they are compared.
            "data": msgspec.Raw(self.data),
            "revision": self.number,
        }


class History:
    """The revisions of workloads of one kind. `on_write` is called with the result of each write."""

    def __init__(
        self,
        client: Client,
        revisions: CacheReader[ControllerRevision],
        kind: Ref,
        *,
        on_write: Callable[[Owner, Object], None] = lambda owner, written: None,
    ) -> None:
        self._client = client
        self._revisions = revisions
        self._kind = kind
        self._on_write = on_write

    async def claim(self, owner: Owner, selector: LabelSelector) -> list[ControllerRevision]:
        """The owner's revisions in order, after adopting selected orphans and releasing those it no longer selects.

        Raises AdoptionRefusedError, ClaimError and the server's errors."""

        async def patch(namespace: str, name: str, body: Object) -> None:
            written = await self._client.patch(
                CONTROLLER_REVISIONS, name, body, namespace, type=PatchType.STRATEGIC
            )
            self._on_write(owner, written)

        references = ControllerRefManager[ControllerRevision](
            owner,
            selector,
            patch,
            can_adopt=recheck_owner(self._client, self._kind, owner),
            settings=ClaimSettings(kind="ControllerRevision"),
        )
        return in_order(await references.claim_all(self._of(owner)))

    async def create(
        self, owner: Owner, draft: RevisionDraft, collision_count: int
    ) -> tuple[ControllerRevision, int]:
        """Create the revision and return it with the count of collisions. An existing one with the same data is used;
        if its name has other data, the next name is tried."""
        body = draft.to_object(owner, collision_count)
        while True:
            try:
                written: Object = await self._client.create(CONTROLLER_REVISIONS, body, owner.namespace)
                self._on_write(owner, written)
                return msgspec.convert(written, ControllerRevision), collision_count
            except AlreadyExistsError:
                found = await self._client.get(
                    CONTROLLER_REVISIONS, body["metadata"]["name"], owner.namespace, view=ControllerRevision
                )
                if is_written_as(found, draft.data):
                    return found, collision_count
            collision_count = next_collision_count(collision_count)
            # The label keeps the first hash, as upstream's does.
            body["metadata"]["name"] = revision_name(owner.name, revision_hash(draft.data, collision_count))

    async def renumber(self, owner: Owner, revision: ControllerRevision, number: int) -> ControllerRevision:
        """Make it the newest, by its number. Raises NotFoundError if it is gone, and the server's other errors."""
        if revision.revision == number:
            return revision
        metadata = revision.metadata
        body = {"metadata": {"uid": metadata.uid}, "revision": number}
        written: Object = await self._client.patch(
            CONTROLLER_REVISIONS, metadata.name, body, metadata.namespace
        )
        self._on_write(owner, written)
        return msgspec.convert(written, ControllerRevision)

    async def delete(self, revision: ControllerRevision) -> None:
        """Ignores a revision that is gone or was replaced."""
        metadata, options = revision.metadata, DeleteOptions(uid=revision.metadata.uid)
        try:
            await self._client.delete(
                CONTROLLER_REVISIONS, metadata.name, metadata.namespace, options=options
            )
        except (NotFoundError, ConflictError):
            return

    def _of(self, owner: Owner) -> list[ControllerRevision]:
        own = controller_index_key(owner.namespace, owner)
        orphans = controller_index_key(owner.namespace, None)
        return [each for key in (own, orphans) for each in self._revisions.by_index(_BY_CONTROLLER, key)]
