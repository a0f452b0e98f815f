"""Reads the archived parts of a pod: the object, its events, and the end of each container's log. Read-only.

The pod and its events must be readable. A log may be missing, because the node is gone or the container never ran; the
reason is recorded instead. Only missing permissions and an overloaded server raise. The logs of a pod share one
deadline and one size limit, and a node that did not answer is skipped for a while: of a hundred pods on a dead node,
only the first few wait for it.

To find the events of one pod, the server scans its whole namespace. If a namespace is requested often, all its events
are listed once and cached for a few seconds: otherwise a sweep of ten thousand pods would cost ten thousand scans. In a
namespace with too many events to cache, each pod is requested on its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import msgspec

from podlife.api.codec import Object
from podlife.client import (
    EVENTS,
    PODS,
    Client,
    Limiter,
    LimiterSettings,
    ListOptions,
    LogOptions,
    WithdrawnError,
)
from podlife.errors import (
    ApiError,
    ExpiredError,
    ForbiddenError,
    PodlifeError,
    TooManyRequestsError,
    UnauthorizedError,
)
from podlife.lru import TtlCache
from podlife.podgc.archive.entry import Log

# Maximum read of one log at a time: the requested lines may have any length.
_MAX_READ_BYTES = 8 << 20
_SILENT_SECONDS = 60.0
_MAX_SILENT = 1000
_AT_ONCE = 4
_MAX_REASON = 500
_LOG_LIMITER = LimiterSettings(initial=64, least=64, most=64)
# Of one pod.
MAX_EVENTS = 500
# An event has about a kilobyte, but may have a megabyte.
MAX_EVENT_BYTES = 4 << 20
# Cached per namespace, undecoded.
_MAX_CACHED, _MAX_CACHED_BYTES = 20_000, 40 << 20
_PAGE = 2_000
# After this many requests within this time, the whole namespace is listed and cached for the same time.
_CACHE_REQUESTS, _CACHE_SECONDS = 20, 10.0


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Limits for the logs of one pod; 0 lines disables logs."""

    lines: int = 100
    most_bytes: int = 1 << 20
    seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class ContainerLog:
    container: str
    kind: str
    is_previous: bool = False


class _Tail:
    """The end of a stream, and its size."""

    def __init__(self) -> None:
        self.end = bytearray()
        self.bytes = 0
        self.lines = 0

    @property
    def is_full(self) -> bool:
        return self.bytes >= _MAX_READ_BYTES

    def add(self, piece: bytes, share: int) -> None:
        self.bytes += len(piece)
        self.lines += piece.count(b"\n")
        self.end += piece
        # The end shows why the container ended.
        del self.end[: max(0, len(self.end) - share)]


class PodReader:
    def __init__(self, client: Client, settings: LogSettings) -> None:
        self._client = client.apart()
        self._events = PodEvents(self._client)
        # A separate limiter with a fixed size: a dead node is not a server problem, and must delay neither deletions
        # nor other logs. The step bounds the concurrency.
        self._logs = client.with_timeout(settings.seconds, limiter=Limiter(_LOG_LIMITER))
        self._settings = settings
        self._silent = TtlCache[str, bool](_MAX_SILENT)

    def withdraw(self) -> None:
        """Send no more requests; see `Client.withdraw`."""
        self._client.withdraw()
        self._logs.withdraw()

    async def pod(self, namespace: str, name: str) -> Object:
        """Raises NotFoundError if it does not exist."""
        pod: Object = await self._client.get(PODS, name, namespace)
        return pod

    async def events(self, namespace: str, uid: str) -> tuple[Sequence[Object], bool]:
        """The events of the pod with this UID, and whether some were left out."""
        return await self._events.of(namespace, uid)

    async def logs(self, pod: Object) -> tuple[Log, ...]:
        wanted = logs_of(pod) if self._settings.lines else []
        node = (pod.get("spec") or {}).get("nodeName") or ""
        if not wanted:
            return ()
        if not node:
            return tuple(_without(each, "the pod was never scheduled") for each in wanted)
        if self._silent.get(node):
            return tuple(_without(each, f"node {node} did not answer") for each in wanted)
        return await self._read_all(pod, node, wanted)

    async def _read_all(self, pod: Object, node: str, wanted: Sequence[ContainerLog]) -> tuple[Log, ...]:
        share = max(1, self._settings.most_bytes // len(wanted))
        late = f"no answer within {self._settings.seconds:g} s"
        logs = {each: _without(each, late) for each in wanted}
        waiting = iter(wanted)
        has_data = False

        def on_data() -> None:
            nonlocal has_data
            has_data = True

        async def read() -> None:
            for each in waiting:
                logs[each] = await self._read(pod, each, share, on_data)

        try:
            async with asyncio.timeout(self._settings.seconds), asyncio.TaskGroup() as group:
                for _ in range(min(_AT_ONCE, len(wanted))):
                    group.create_task(read())
        except TimeoutError:
            # One slow log does not mean a dead node: logs of its other pods may still be read.
            if not has_data:
                self._silent.keep(node, True, seconds=_SILENT_SECONDS)
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return tuple(logs.values())

    async def _read(self, pod: Object, wanted: ContainerLog, share: int, on_data: Callable[[], None]) -> Log:
        lines = self._settings.lines
        try:
            tail = await self._tail(pod, wanted, lines, share, on_data)
            while tail.is_full and lines > 1:
                # At the size limit the server returns the beginning of the requested lines, but the end is wanted.
                lines = max(1, min(lines // 2, tail.lines * share // tail.bytes))
                tail = await self._tail(pod, wanted, lines, share, on_data)
        except (ForbiddenError, UnauthorizedError, TooManyRequestsError, WithdrawnError):
            raise
        except PodlifeError as error:
            return _without(wanted, _reason(error))
        return Log(
            container=wanted.container,
            kind=wanted.kind,  # type: ignore[arg-type]
            is_previous=wanted.is_previous,
            text=tail.end.decode(errors="replace"),
            is_cut=tail.bytes > len(tail.end) or tail.is_full or lines < self._settings.lines,
        )

    async def _tail(
        self, pod: Object, wanted: ContainerLog, lines: int, share: int, on_data: Callable[[], None]
    ) -> _Tail:
        options = LogOptions(
            container=wanted.container,
            previous=wanted.is_previous,
            tail_lines=lines,
            limit_bytes=_MAX_READ_BYTES,
        )
        metadata = pod["metadata"]
        tail = _Tail()
        async with aclosing(self._logs.logs(metadata["name"], metadata["namespace"], options)) as pieces:
            async for piece in pieces:
                on_data()
                tail.add(piece, share)
        return tail


def logs_of(pod: Object) -> list[ContainerLog]:
    """The logs that may exist: one per container of the spec, and the previous one of restarted containers."""
    return [
        wanted
        for kind, in_spec, in_status in (
            ("init", "initContainers", "initContainerStatuses"),
            ("main", "containers", "containerStatuses"),
            ("ephemeral", "ephemeralContainers", "ephemeralContainerStatuses"),
        )
        for wanted in _of_kind(pod, kind, in_spec, in_status)
    ]


def _of_kind(pod: Object, kind: str, in_spec: str, in_status: str) -> Iterator[ContainerLog]:
    statuses = {each.get("name"): each for each in (pod.get("status") or {}).get(in_status) or ()}
    for container in (pod.get("spec") or {}).get(in_spec) or ():
        name = container["name"]
        status = statuses.get(name) or {}
        if status.get("restartCount"):
            yield ContainerLog(name, kind, is_previous=True)
        yield ContainerLog(name, kind)


def _without(wanted: ContainerLog, problem: str) -> Log:
    return Log(
        container=wanted.container,
        kind=wanted.kind,  # type: ignore[arg-type]
        is_previous=wanted.is_previous,
        problem=problem,
    )


def _reason(error: PodlifeError) -> str:
    text = " ".join(str(error).split())[:_MAX_REASON]
    return f"{error.code} {text}" if isinstance(error, ApiError) else text


class _Involved(msgspec.Struct):
    uid: str = ""


class _Event(msgspec.Struct, rename="camel"):
    involved_object: _Involved = msgspec.field(default_factory=_Involved)


_event = msgspec.json.Decoder(_Event)


@dataclass(slots=True)
class _Namespace:
    """Number of requests since a time, and cached events by UID, if any."""

    since: float
    requests: int = 0
    until: float = 0.0
    events: dict[str, list[msgspec.Raw]] | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class PodEvents:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._namespaces: dict[str, _Namespace] = {}

    async def of(self, namespace: str, uid: str) -> tuple[Sequence[Object], bool]:
        """The events of a pod, and whether some were left out."""
        now = asyncio.get_running_loop().time()
        known = self._namespace(namespace, now)
        if known.requests > _CACHE_REQUESTS:
            # Concurrent callers share one list.
            async with known.lock:
                if known.until <= asyncio.get_running_loop().time():
                    await self._read(namespace, known)
        if known.events is None:
            return await self._list_one(namespace, uid)
        return _bounded(known.events.get(uid, ()))

    def _namespace(self, name: str, now: float) -> _Namespace:
        """Drops namespaces that were not requested lately."""
        for each, known in list(self._namespaces.items()):
            if known.since + _CACHE_SECONDS <= now and known.until <= now and not known.lock.locked():
                del self._namespaces[each]
        known = self._namespaces.setdefault(name, _Namespace(now))
        known.requests += 1
        return known

    async def _list_one(self, namespace: str, uid: str) -> tuple[Sequence[Object], bool]:
        options = ListOptions(field_selector=f"involvedObject.uid={uid}", limit=MAX_EVENTS)
        page = await self._client.list(EVENTS, namespace, options=options, view=msgspec.Raw)
        events, has_more = _bounded(page.items)
        return events, has_more or bool(page.continue_token)

    async def _read(self, namespace: str, known: _Namespace) -> None:
        """Cache all events of the namespace, unless there are too many."""
        try:
            known.events = await self._list_all(namespace)
        except ExpiredError:
            # Too many or too slow: request pod by pod.
            known.events = None
        known.until = asyncio.get_running_loop().time() + _CACHE_SECONDS

    async def _list_all(self, namespace: str) -> dict[str, list[msgspec.Raw]] | None:
        events: dict[str, list[msgspec.Raw]] = {}
        number = size = 0
        options = ListOptions(limit=_PAGE)
        async for page in self._client.pages(EVENTS, namespace, options=options, view=msgspec.Raw):
            number += len(page.items)
            size += sum(len(memoryview(event)) for event in page.items)
            if number > _MAX_CACHED or size > _MAX_CACHED_BYTES:
                return None
            for event in page.items:
                events.setdefault(_uid_of(event), []).append(event)
        return events


def _bounded(events: Sequence[msgspec.Raw]) -> tuple[Sequence[Object], bool]:
    """The events kept of one pod, and whether some were left out."""
    kept: list[msgspec.Raw] = []
    size = 0
    for event in events[:MAX_EVENTS]:
        size += len(memoryview(event))
        if size > MAX_EVENT_BYTES:
            break
        kept.append(event)
    return [msgspec.json.decode(each, type=Object) for each in kept], len(kept) < len(events)


def _uid_of(event: msgspec.Raw) -> str:
    try:
        return _event.decode(event).involved_object.uid
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # An event without an object.
        return ""
