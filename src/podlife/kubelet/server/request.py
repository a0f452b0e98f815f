"""A request to the kubelet, the node that serves it, and the error that rejects it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import unquote

from aiohttp import web
from prometheus_client import CollectorRegistry

from podlife.clock import Clock
from podlife.errors import PodlifeError
from podlife.kubelet.pod_fields import Pod
from podlife.kubelet.runtime import Runtime
from podlife.wire import Query


class HttpError(PodlifeError):
    """Rejects the request with a status code and a message, upstream's if it has one."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class KubeletRequest:
    """`parts` are the path segments after the first, `root`. A decoded segment may contain a slash."""

    http: web.BaseRequest
    path: str
    root: str
    parts: tuple[str, ...]
    query: Query


def parse_request(request: web.BaseRequest) -> KubeletRequest:
    raw, _, query = request.raw_path.partition("?")
    if not raw.startswith("/"):
        # Absolute form: the request line contains the whole URL.
        raw, query = request.rel_url.raw_path, request.rel_url.raw_query_string
    # Authorize the decoded path: two spellings of one path must not have different permissions.
    root, *parts = [unquote(part) for part in raw.strip("/").split("/")]
    path = "/" + "/".join((root, *parts))
    return KubeletRequest(request, path, root, tuple(parts), Query(query))


class ServedPods(Protocol):
    """The pods of the node, each with its newest status."""

    def find_pod(self, namespace: str, name: str) -> Pod | None: ...

    def pods(self) -> Iterable[Pod]: ...


@dataclass(frozen=True, slots=True)
class ServedNode:
    """`trouble` returns what is wrong with the kubelet; empty if it is healthy. `/metrics` serves `registry`."""

    name: str
    pods: ServedPods
    runtime: Runtime
    clock: Clock
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    trouble: Callable[[], str] = str
    # Idle timeout of logs and exec sessions.
    stream_idle_seconds: float = 4 * 3600.0
