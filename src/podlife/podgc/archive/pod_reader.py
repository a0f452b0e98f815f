"""Reads what is archived of a pod: the pod, its events, and the end of each container's log. Read-only.

The pod and its events must be readable. A log may be missing, because the node is gone or the container never ran; the
reason is recorded instead. Only missing permissions and an overloaded server raise. The logs of a pod share one
deadline and one size limit, and a node that did not answer is skipped for a while: of a hundred pods on a dead node,
only the first few wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from podlife.api.codec import Object
from podlife.client import PODS, Client, Limiter, LimiterSettings, LogOptions, WithdrawnError
from podlife.errors import ApiError, ForbiddenError, PodlifeError, TooManyRequestsError, UnauthorizedError
from podlife.podgc.archive.entry import Log
from podlife.podgc.archive.events import PodEvents

# Maximum read of one log at a time: the requested lines may have any length.
_MOST_READ_BYTES = 8 << 20
_SILENT_SECONDS = 60.0
_MOST_SILENT = 1000
_AT_ONCE = 4
_MOST_REASON = 500
_LOG_LINE = LimiterSettings(initial=64, least=64, most=64)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Limits for the logs of one pod; 0 lines disables logs."""

    lines: int = 100
    most_bytes: int = 1 << 20
    seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class ContainerLog:
    """A log to read."""

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
        return self.bytes >= _MOST_READ_BYTES

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
        self._logs = client.with_timeout(settings.seconds, limiter=Limiter(_LOG_LINE))
        self._settings = settings
        self._silent: dict[str, float] = {}

    def withdraw(self) -> None:
        """Send no more requests; see `Client.withdraw`."""
        self._client.withdraw()
        self._logs.withdraw()

    async def pod(self, namespace: str, name: str) -> Object:
        """Raises NotFoundError if it does not exist."""
        found: Object = await self._client.get(PODS, name, namespace)
        return found

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
        if self._is_silent(node):
            return tuple(_without(each, f"node {node} did not answer") for each in wanted)
        return await self._read_all(pod, node, wanted)

    async def _read_all(self, pod: Object, node: str, wanted: Sequence[ContainerLog]) -> tuple[Log, ...]:
        share = max(1, self._settings.most_bytes // len(wanted))
        late = f"no answer within {self._settings.seconds:g} s"
        found = {each: _without(each, late) for each in wanted}
        waiting = iter(wanted)
        has_heard = False

        def hear() -> None:
            nonlocal has_heard
            has_heard = True

        async def read() -> None:
            for each in waiting:
                found[each] = await self._read(pod, each, share, hear)

        try:
            async with asyncio.timeout(self._settings.seconds), asyncio.TaskGroup() as group:
                for _ in range(min(_AT_ONCE, len(wanted))):
                    group.create_task(read())
        except TimeoutError:
            # One slow log does not mean a dead node: logs of its other pods may still be read.
            if not has_heard:
                self._note_silent(node)
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return tuple(found.values())

    async def _read(self, pod: Object, wanted: ContainerLog, share: int, hear: Callable[[], None]) -> Log:
        lines = self._settings.lines
        try:
            found = await self._tail(pod, wanted, lines, share, hear)
            while found.is_full and lines > 1:
                # At the size limit the server returns the beginning of the requested lines, but the end is wanted.
                lines = max(1, min(lines // 2, found.lines * share // found.bytes))
                found = await self._tail(pod, wanted, lines, share, hear)
        except (ForbiddenError, UnauthorizedError, TooManyRequestsError, WithdrawnError):
            raise
        except PodlifeError as error:
            return _without(wanted, _reason(error))
        return Log(
            container=wanted.container,
            kind=wanted.kind,  # type: ignore[arg-type]
            is_previous=wanted.is_previous,
            text=found.end.decode(errors="replace"),
            is_cut=found.bytes > len(found.end) or found.is_full or lines < self._settings.lines,
        )

    async def _tail(
        self, pod: Object, wanted: ContainerLog, lines: int, share: int, hear: Callable[[], None]
    ) -> _Tail:
        options = LogOptions(
            container=wanted.container,
            previous=wanted.is_previous,
            tail_lines=lines,
            limit_bytes=_MOST_READ_BYTES,
        )
        metadata = pod["metadata"]
        tail = _Tail()
        async with aclosing(self._logs.logs(metadata["name"], metadata["namespace"], options)) as pieces:
            async for piece in pieces:
                hear()
                tail.add(piece, share)
        return tail

    def _is_silent(self, node: str) -> bool:
        return self._silent.get(node, 0.0) > asyncio.get_running_loop().time()

    def _note_silent(self, node: str) -> None:
        now = asyncio.get_running_loop().time()
        if len(self._silent) >= _MOST_SILENT:
            self._silent = {name: until for name, until in self._silent.items() if until > now}
            if len(self._silent) >= _MOST_SILENT:
                return
        self._silent[node] = now + _SILENT_SECONDS


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
    text = " ".join(str(error).split())[:_MOST_REASON]
    return f"{error.code} {text}" if isinstance(error, ApiError) else text
