"""Watches a resource: every change after a revision, once and in order, over as many connections as needed.

A stream that ends, breaks or is silent for too long resumes at the last revision seen, so no event is lost or
repeated. The watch raises ExpiredError if the server no longer has that revision (list again), any other refusal
immediately, and an outage that lasts longer than the caller allows.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic
from urllib.parse import urlencode

import msgspec

from podlife.api.status import from_status
from podlife.client.options import METADATA_ONLY
from podlife.client.retry import backoff_seconds, is_transient
from podlife.client.views import BadAnswerError, T, decode, decode_lenient, envelope_decoder, misfit
from podlife.errors import ApiError, PodlifeError, UnreachableError
from podlife.wire import Query, Request

if TYPE_CHECKING:
    from podlife.client.options import WatchOptions
    from podlife.client.rest_client import RestClient

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
# A streaming list arrives object by object. Reading them in batches saves a third of the work, and no caller can use
# the list before it is complete.
_GATHER_SECONDS = 0.01
# A stream that ends sooner than this without data counts as a failure.
_LEAST_SECONDS = 1.0


class EventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One change. After a deletion `object` is the last state; `resource_version` is where to resume, and
    empty for the objects of an initial list, from which no watch may start."""

    type: EventType
    object: T
    resource_version: str


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Everything up to this revision has been seen. `is_synced` marks the end of an initial list."""

    resource_version: str
    is_synced: bool = False


class _EventLine(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Event(msgspec.Struct, Generic[T]):
    type: EventType
    object: T


_line_decoder = msgspec.json.Decoder(_EventLine)


@lru_cache(maxsize=256)
def _event_decoder(view: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Event[dict[str, Any] if view is None else view])  # type: ignore[misc]


class LineSplitter:
    """Splits a stream into lines, in linear time however long a line is. Empty lines are left out."""

    def __init__(self, *, most_bytes: int = 32 * 1024 * 1024) -> None:
        self._most_bytes = most_bytes
        # Chunks of the incomplete line, joined once; only new chunks are searched.
        self._begun: list[bytes] = []
        self._begun_bytes = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that this chunk completes; raises BadAnswerError for one that is too long."""
        head, newline, _ = piece.partition(b"\n")
        if not newline:
            self._keep(piece)
            return []
        self._keep(head)
        lines = [b"".join(self._begun)]
        *whole, rest = piece[len(head) + 1 :].split(b"\n")
        lines += whole
        self._begun, self._begun_bytes = [], 0
        self._keep(rest)
        return [line for line in lines if line and not line.isspace()]

    def rest(self) -> bytes:
        """The incomplete last line."""
        return b"".join(self._begun).strip()

    def _keep(self, part: bytes) -> None:
        self._begun_bytes += len(part)
        if self._begun_bytes > self._most_bytes:
            raise BadAnswerError(f"a line of the stream is longer than {self._most_bytes} bytes")
        if part:
            self._begun.append(part)


class CutError(UnreachableError):
    """The stream broke within a line."""


def decode_line(line: bytes, view: type[T] | None) -> WatchEvent[T] | Bookmark:
    """Raises the ApiError that the line describes, CutError for anything but an event, and BadAnswerError for an object
    that does not fit the view."""
    try:
        # Fast path: decode directly into the view.
        event = _event_decoder(view).decode(line)  # type: ignore[arg-type] # every type is hashable
        obj = event.object
        revision = obj["metadata"]["resourceVersion"] if view is None else obj.metadata.resource_version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError, LookupError, TypeError):
        return _decode_other_line(line, view)
    return WatchEvent(event.type, obj, revision) if type(revision) is str else _decode_other_line(line, view)


def _decode_other_line(line: bytes, view: type[T] | None) -> WatchEvent[T] | Bookmark:
    """A line that is not a change, does not fit the view, or whose view has no revision."""
    try:
        event = _split_line(line)
        if event.type == "ERROR":
            raise from_status(msgspec.json.decode(event.object), 500)
        metadata = envelope_decoder.decode(event.object).metadata
        if event.type == "BOOKMARK":
            is_synced = (metadata.annotations or {}).get(_INITIAL_EVENTS_END) == "true"
            return Bookmark(metadata.resource_version, is_synced)
        type_ = EventType(event.type)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise CutError(f"invalid watch event: {error}") from None
    try:
        return WatchEvent(type_, decode(event.object, view, "a watch"), metadata.resource_version)
    except BadAnswerError as error:
        raise misfit(error, metadata, is_deleted=type_ is EventType.DELETED) from None


def _split_line(line: bytes) -> _EventLine:
    try:
        return _line_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # A strict error would repeat forever and block all later events.
        return decode_lenient(_line_decoder, line)


@dataclass(frozen=True, slots=True)
class WatchTarget(Generic[T]):
    """What is watched: resource, collection path, view and options."""

    resource: str
    path: str
    view: type[T] | None
    options: WatchOptions


async def connect(
    calls: RestClient, target: WatchTarget[T], parameters: dict[str, str]
) -> AsyncGenerator[WatchEvent[T] | Bookmark | BadAnswerError, None]:
    """The events of one connection, until the server ends it. For an object that does not fit the view, the error is
    yielded and the stream continues. Raises ApiError or UnreachableError."""
    options = target.options
    seconds = options.timeout_seconds or random.randint(300, 600)  # noqa: S311 - spreads load, guards nothing
    query = {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(seconds),
        **options.selection(),
        **parameters,
    }
    raw = urlencode({name: value for name, value in query.items() if value})
    accept = METADATA_ONLY if options.metadata_only else "application/json"
    request = Request("GET", target.path, Query(raw), {"Accept": accept})
    lines = LineSplitter(most_bytes=options.most_line_bytes)
    answer = await calls.open(request)
    is_alive = options.on_alive or _nothing
    is_listing = "sendInitialEvents" in parameters
    try:
        is_alive()
        while piece := await answer.next_piece(seconds=options.read_seconds):
            calls.note_life()
            is_alive()
            for line in lines.feed(piece):
                try:
                    event = decode_line(line, target.view)
                except BadAnswerError as error:
                    yield error
                    continue
                is_listing = is_listing and not (isinstance(event, Bookmark) and event.is_synced)
                yield event
            if is_listing:
                await asyncio.sleep(_GATHER_SECONDS)
        if lines.rest():
            raise CutError("the stream ended within a line")
    finally:
        await answer.close()


def _nothing() -> None: ...


class WatchOutage:
    """How long a watch has been interrupted, and the delay before the next attempt."""

    def __init__(self, most_seconds: float) -> None:
        self._most_seconds = most_seconds
        self._since: float | None = None
        self._failures = 0

    def is_over(self) -> None:
        self._since, self._failures = None, 0

    def next_delay(self, error: PodlifeError | None) -> float:
        """Raises the error if the outage has lasted too long."""
        now = asyncio.get_running_loop().time()
        self._since = now if self._since is None else self._since
        self._failures += 1
        if error is not None and now - self._since >= self._most_seconds:
            raise error
        asked = error.retry_after_seconds if isinstance(error, ApiError) else None
        return max(backoff_seconds(self._failures), float(asked or 0))


async def watch(
    calls: RestClient, target: WatchTarget[T], resource_version: str
) -> AsyncGenerator[WatchEvent[T] | Bookmark, None]:
    """Every change after `resource_version`, until closed."""
    if resource_version in ("", "0"):
        # Such a watch starts with the existing objects in any order, so it could not be resumed.
        raise ValueError("a watch starts from the resourceVersion of a list")
    loop = asyncio.get_running_loop()
    outage = WatchOutage(target.options.resume_seconds)
    report = target.options.report
    while True:
        began_at, ended = loop.time(), None
        try:
            async with aclosing(connect(calls, target, {"resourceVersion": resource_version})) as events:
                async for event in events:
                    resource_version = event.resource_version or resource_version
                    outage.is_over()
                    if not isinstance(event, BadAnswerError):
                        yield event
                    elif report is None:
                        raise event
                    else:
                        report(event)
            if loop.time() - began_at >= _LEAST_SECONDS:
                outage.is_over()
                continue
        except (ApiError, UnreachableError) as error:
            if not is_transient(error):
                raise
            ended = error
        delay = outage.next_delay(ended)
        if report is not None and ended is not None:
            report(ended)
        await asyncio.sleep(delay)
