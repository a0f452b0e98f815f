"""GET: one object, or a list of them: selected, in pages, now or as of a revision."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, forbidden, invalid, not_supported
from podlife.api.integers import parse_int64
from podlife.api.selectors import FieldSelector, LabelSelector, parse_field_selector, parse_label_selector
from podlife.apiserver.registry import response as output
from podlife.apiserver.registry.object_codec import thaw
from podlife.apiserver.registry.request_body import bad_request
from podlife.apiserver.registry.request_scope import Registry, Scope
from podlife.apiserver.registry.worker_threads import in_thread
from podlife.apiserver.resource import Resource
from podlife.apiserver.storage.store import CompactedError, Record
from podlife.errors import ApiError, ExpiredError
from podlife.wire import Query, Response

__all__ = ["ListOptions", "Selection", "expired", "get", "list_", "reach", "select"]

# How long a reader waits for a revision that this server has not reached yet.
_FRESHNESS_SECONDS = 3.0
# How many objects are looked at before others get their turn, and for how long: they may be large.
_MATCHED_AT_ONCE = 256
_TURN_SECONDS = 0.005
# Labels of larger objects are read once: that takes milliseconds, and a thousand watchers may ask for them.
_LARGE_BYTES = 64 * 1024
_LONG_QUERY = 4 * 1024


async def get(registry: Registry, scope: Scope) -> Response:
    revision = parse_revision(scope.request.query.get("resourceVersion"))
    await reach(registry, revision)
    return await output.one(registry, scope, scope.find(registry).value)


class _Labels(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct):
    metadata: _Labels


_decode_labels = msgspec.json.Decoder(_Labelled).decode


@dataclass(slots=True)
class _Derived:
    """What was read of a record to select by, kept with it."""

    # Two resources may show the same records under other names.
    by: Mapping[str, Callable[[Object], str]] | None = None
    fields: dict[str, str] = field(default_factory=dict)
    labels: tuple[dict[str, str] | None] | None = None

    @classmethod
    def of(cls, record: Record) -> _Derived:
        if not isinstance(record.cache, cls):
            record.cache = cls()
        return record.cache


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects a list or a watch is about. Hashable: watchers that select the same share their work."""

    resource: Resource
    namespace: str
    labels: LabelSelector
    fields: FieldSelector

    @classmethod
    def from_request(cls, scope: Scope) -> Selection:
        query = scope.request.query
        try:
            labels = parse_label_selector(query.get("labelSelector"))
            fields = parse_field_selector(query.get("fieldSelector"))
        except ValueError as error:
            raise bad_request(str(error)) from None
        for requirement in fields.requirements:
            if requirement.path not in ("metadata.name", "metadata.namespace", *scope.resource.selectable):
                raise bad_request(
                    f"field label not supported: {requirement.path}"
                    if scope.resource.selectable
                    else f'"{requirement.path}" is not a known field selector: only "metadata.name", '
                    '"metadata.namespace"'
                )
        return cls(scope.resource, scope.namespace, labels, fields)

    @classmethod
    async def asked_for(cls, scope: Scope) -> Selection:
        """The same; one of thousands of requirements is read beside the event loop."""
        if len(scope.request.query.raw) > _LONG_QUERY:
            return await in_thread(lambda: cls.from_request(scope))
        return cls.from_request(scope)

    @property
    def is_everything(self) -> bool:
        return self.labels.is_empty and self.fields.is_empty

    def matches(self, record: Record) -> bool:
        """Whether the object is meant; the namespace too, which a list has chosen by already."""
        if self.namespace and record.key.namespace != self.namespace:
            return False
        if not self.labels.is_empty and not self.labels.matches(_labels_of(record)):
            return False
        return self.fields.is_empty or self.fields.matches(self._fields_of(record))

    @property
    def exact_field(self) -> tuple[str, str] | None:
        """A field of the resource's own, with the value that it must have: what most kinds of watcher select by."""
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
            obj = thaw(record.value)
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
    registry: Registry, scope: Scope, selection: Selection, *, revision: int | None = None
) -> Sequence[Record]:
    """The chosen objects in the order of their keys, as they stand when it is called, or as of a revision.

    Among many it takes a while to choose: others get their turns in between, and may move the store on."""
    exact = selection.fields.exact("metadata.name")
    if exact is not None and revision is None and (scope.namespace or not scope.resource.namespaced):
        record = registry.store.get(scope.key_of(scope.namespace, exact))
        records: Sequence[Record] = [record] if record is not None else []
    else:
        records = registry.store.list(scope.resource.storage_key, scope.namespace, revision=revision)
    if selection.is_everything:
        return records
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


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The parameters that a list and a watch share, checked."""

    limit: int
    continue_: str
    revision: int | None
    match: str
    send_initial_events: bool | None
    bookmarks: bool
    timeout_seconds: int | None

    @classmethod
    def from_query(cls, query: Query, *, watch: bool) -> ListOptions:
        options = cls(
            limit=_integer(query, "limit") or 0,
            continue_=query.get("continue"),
            revision=parse_revision(
                query.get("resourceVersion"), prefix="" if watch else "invalid resource version: "
            ),
            match=query.get("resourceVersionMatch"),
            send_initial_events=_boolean(query, "sendInitialEvents"),
            bookmarks=bool(_boolean(query, "allowWatchBookmarks")),
            timeout_seconds=_integer(query, "timeoutSeconds"),
        )
        errors = options._watch_errors() if watch else options._list_errors()
        if errors:
            raise invalid("ListOptions", "meta.k8s.io", "", errors)
        return options

    def _list_errors(self) -> list[FieldError]:
        errors = []
        match = "resourceVersionMatch"
        if self.match:
            if self.revision is None:
                errors.append(forbidden(match, f"{match} is forbidden unless resourceVersion is provided"))
            if self.continue_:
                errors.append(forbidden(match, f"{match} is forbidden when continue is provided"))
            if self.match not in ("Exact", "NotOlderThan"):
                errors.append(not_supported(match, self.match, ["Exact", "NotOlderThan", ""]))
            if self.match == "Exact" and self.revision == 0:
                errors.append(forbidden(match, f'{match} "exact" is forbidden for resourceVersion "0"'))
        if self.send_initial_events is not None:
            errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
        return errors

    def _watch_errors(self) -> list[FieldError]:
        errors = []
        match = "resourceVersionMatch"
        if self.send_initial_events is not None and self.match != "NotOlderThan":
            errors.append(forbidden(match, f"sendInitialEvents requires setting {match} to NotOlderThan"))
        if self.match:
            if self.send_initial_events is None:
                errors.append(
                    forbidden(match, f"{match} is forbidden for watch unless sendInitialEvents is provided")
                )
            if self.match != "NotOlderThan":
                errors.append(not_supported(match, self.match, ["NotOlderThan"]))
            if self.continue_:
                errors.append(forbidden(match, f"{match} is forbidden when continue is provided"))
        return errors


def parse_revision(text: str, *, prefix: str = "") -> int | None:
    """A resourceVersion parameter; None where there is none."""
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise bad_request(
            f'{prefix}resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    return int(text)


def _integer(query: Query, key: str) -> int | None:
    if not (text := query.get(key)):
        return None
    try:
        return parse_int64(text)
    except ValueError as error:
        raise bad_request(str(error)) from None


def _boolean(query: Query, key: str) -> bool | None:
    """As upstream reads it: everything but false and 0 is true."""
    text = query.get(key)
    return None if not text and key not in query else text.lower() not in ("false", "0")


async def list_(registry: Registry, scope: Scope) -> Response:
    options = ListOptions.from_query(scope.request.query, watch=False)
    selection = await Selection.asked_for(scope)
    revision, start = await _starting_point(registry, options)
    shown = revision if revision is not None else registry.store.revision
    try:
        records = await select(registry, scope, selection, revision=revision)
    except CompactedError as error:
        raise expired(error, is_page=bool(start)) from None
    if start:
        records = [record for record in records if record.key.path >= start]
    meta: Object = {"resourceVersion": str(shown)}
    if 0 < options.limit < len(records):
        meta["continue"] = _continue_token(shown, records[options.limit].key.path)
        if selection.is_everything:
            meta["remainingItemCount"] = len(records) - options.limit
        records = records[: options.limit]
    return output.many(registry, scope, [record.value for record in records], meta)


async def _starting_point(registry: Registry, options: ListOptions) -> tuple[int | None, str]:
    """The revision to list at (None: now) and the key to begin with."""
    if options.continue_:
        if options.revision:
            raise bad_request("specifying resource version is not allowed when using continue")
        revision, start = _read_token(options.continue_)
        if revision > registry.store.revision:
            # A page of another life of this server, before an older backup was restored: the list begins anew.
            raise expired(CompactedError(revision, registry.store.oldest), is_page=True)
        return revision, start
    await reach(registry, options.revision)
    # Without a match, a list in pages at a revision means exactly that one; else at least that fresh.
    if options.revision and (options.match == "Exact" or (options.limit and not options.match)):
        return options.revision, ""
    return None, ""


async def reach(registry: Registry, revision: int | None) -> None:
    if revision and not await registry.store.wait_for_revision(revision, seconds=_FRESHNESS_SECONDS):
        raise _too_large(revision, registry.store.revision)


def _too_large(asked: int, current: int) -> ApiError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ApiError(
        f"Timeout: Too large resource version: {asked}, current: {current}",
        code=504,
        reason="Timeout",
        details={"causes": [cause], "retryAfterSeconds": 1},
    )


def expired(error: CompactedError, *, is_page: bool = False) -> ExpiredError:
    if is_page:
        return ExpiredError(
            "The provided continue parameter is too old to display a consistent list result. You can start a "
            "new list without the continue parameter."
        )
    return ExpiredError(f"too old resource version: {error.revision} ({error.oldest})")


def _continue_token(revision: int, start: str) -> str:
    token = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": revision, "start": start})
    return base64.urlsafe_b64encode(token).decode().rstrip("=")


class _Token(msgspec.Struct):
    v: str
    rv: int
    start: str


_decode_token = msgspec.json.Decoder(_Token).decode


def _read_token(text: str) -> tuple[int, str]:
    try:
        token = _decode_token(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise bad_request(f"invalid continue token: continue key is not valid: {text[:64]!r}") from None
    if token.rv <= 0 or not token.start:
        raise bad_request(f"invalid continue token: continue key is not valid: {text[:64]!r}")
    return token.rv, token.start
