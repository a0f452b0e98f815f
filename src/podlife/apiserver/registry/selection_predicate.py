"""Label and field selectors of a list, a watch or a deletecollection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from podlife.api.codec import Object, decode_object
from podlife.api.selectors import FieldSelector, LabelSelector, parse_field_selector, parse_label_selector
from podlife.apiserver.registry.conversion import records_in_version
from podlife.apiserver.registry.request_body import bad_request
from podlife.apiserver.registry.request_scope import RequestScope
from podlife.apiserver.registry.worker_threads import run_in_thread
from podlife.apiserver.resource import Resource
from podlife.apiserver.storage import Record

# Objects to examine, and time to spend on large ones, before yielding to other requests.
_MATCHED_AT_ONCE = 256
_TURN_SECONDS = 0.005
# Labels of larger objects are decoded once: decoding takes milliseconds, and a thousand watchers may need them.
_LARGE_BYTES = 64 * 1024
_LONG_QUERY = 4 * 1024


class _Labels(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct):
    metadata: _Labels


_decode_labels = msgspec.json.Decoder(_Labelled).decode


@dataclass(slots=True)
class _Derived:
    """Fields decoded from a record for selection, cached with it."""

    # Two resources may serve the same records with different field names.
    by: Mapping[str, Callable[[Object], str]] | None = None
    fields: dict[str, str] = field(default_factory=dict)
    labels: tuple[dict[str, str] | None] | None = None

    @classmethod
    def of(cls, record: Record) -> _Derived:
        if not isinstance(record.cache, cls):
            record.cache = cls()
        return record.cache


@dataclass(frozen=True, slots=True)
class SelectionPredicate:
    """Objects that a list or a watch selects. Hashable: watchers with equal selections share their work."""

    resource: Resource
    namespace: str
    labels: LabelSelector
    fields: FieldSelector

    @classmethod
    def from_request(cls, scope: RequestScope) -> SelectionPredicate:
        query = scope.request.query
        try:
            labels = parse_label_selector(query.get("labelSelector"))
            fields = parse_field_selector(query.get("fieldSelector"))
        except ValueError as error:
            raise bad_request(str(error)) from None
        resource = scope.resource
        kind = f" for {resource.api_version}, Kind={resource.kind}" * (resource.group == "resource.k8s.io")
        for requirement in fields.requirements:
            if requirement.path not in ("metadata.name", "metadata.namespace", *scope.resource.selectable):
                raise bad_request(
                    f"field label not supported{kind}: {requirement.path}"
                    if scope.resource.selectable
                    else f'"{requirement.path}" is not a known field selector: only "metadata.name", '
                    '"metadata.namespace"'
                )
        return cls(scope.resource, scope.namespace, labels, fields)

    @classmethod
    async def asked_for(cls, scope: RequestScope) -> SelectionPredicate:
        """As above; a selector of thousands of requirements is parsed in a worker thread."""
        if len(scope.request.query.raw) > _LONG_QUERY:
            return await run_in_thread(lambda: cls.from_request(scope))
        return cls.from_request(scope)

    @property
    def is_everything(self) -> bool:
        return self.labels.is_empty and self.fields.is_empty

    def matches(self, record: Record) -> bool:
        """Return whether the object is selected, namespace included, which a list has already filtered by."""
        if self.namespace and record.key.namespace != self.namespace:
            return False
        if not self.labels.is_empty and not self.labels.matches(_labels_of(record)):
            return False
        return self.fields.is_empty or self.fields.matches(self._fields_of(record))

    @property
    def exact_field(self) -> tuple[str, str] | None:
        """One of the resource's own fields and its required value: what most watchers select by."""
        for requirement in self.fields.requirements:
            if requirement.operator == "=" and requirement.path in self.resource.selectable:
                return requirement.path, requirement.value
        return None

    def field_of(self, record: Record, path: str) -> str:
        return self._selected(record)[path]

    def _fields_of(self, record: Record) -> dict[str, str]:
        fields = {"metadata.name": record.key.name, "metadata.namespace": record.key.namespace}
        if all(path in fields for path in self.fields.paths):
            return fields
        return fields | self._selected(record)

    def _selected(self, record: Record) -> dict[str, str]:
        selectable = self.resource.selectable
        derived = _Derived.of(record)
        if derived.by is not selectable:
            obj = decode_object(record.value)
            derived.by, derived.fields = selectable, {path: value(obj) for path, value in selectable.items()}
        return derived.fields


def _labels_of(record: Record) -> dict[str, str] | None:
    if len(record.value) <= _LARGE_BYTES:
        return _decode_labels(record.value).metadata.labels
    derived = _Derived.of(record)
    if derived.labels is None:
        derived.labels = (_decode_labels(record.value).metadata.labels,)
    return derived.labels[0]


async def select(
    scope: RequestScope, selection: SelectionPredicate, *, revision: int | None = None
) -> Sequence[Record]:
    """Return the selected objects in key order, as of the call or of a revision.

    Yields to other requests between batches; these may change the store. Objects that had to be read are in the
    version of the request; if everything is selected, all are as they are stored.
    """
    exact = selection.fields.exact("metadata.name")
    if exact is not None and revision is None and (scope.namespace or not scope.resource.namespaced):
        record = scope.registry.store.get(scope.key_of(scope.namespace, exact))
        records: Sequence[Record] = [record] if record is not None else []
    else:
        records = scope.registry.store.list(scope.resource.storage_key, scope.namespace, revision=revision)
    if selection.is_everything:
        return records
    records = await records_in_version(scope.resource, records)
    chosen: list[Record] = []
    now = asyncio.get_running_loop().time
    turn_ends = now() + _TURN_SECONDS
    for number, record in enumerate(records, 1):
        if number % _MATCHED_AT_ONCE == 0 or now() > turn_ends:
            await asyncio.sleep(0)
            turn_ends = now() + _TURN_SECONDS
        if selection.matches(record):
            chosen.append(record)
    return chosen
