"""One request to the kubelet, the node that it is answered for, and the error that refuses it."""

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
    """Refuses the request with a status code and a line, in upstream's words where it has some."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class KubeletRequest:
    """`parts` are those after the first, which is `root`. A part may hold anything, a slash too."""

    request: web.BaseRequest
    path: str
    root: str
    parts: tuple[str, ...]
    query: Query


def parse_request(request: web.BaseRequest) -> KubeletRequest:
    raw, _, query = request.raw_path.partition("?")
    if not raw.startswith("/"):
        # A proxy's way to ask: the whole address stands in the request line.
        raw, query = request.rel_url.raw_path, request.rel_url.raw_query_string
    # The right to a path is asked for by its parts: two ways to write one must not be two rights.
    root, *parts = [unquote(part) for part in raw.strip("/").split("/")]
    path = "/" + "/".join((root, *parts))
    return KubeletRequest(request, path, root, tuple(parts), Query(query))


class ServedPods(Protocol):
    """The pods of the node as the kubelet knows them, each with the newest status that it has."""

    def find_pod(self, namespace: str, name: str) -> Pod | None: ...

    def pods(self) -> Iterable[Pod]: ...


@dataclass(frozen=True, slots=True)
class ServedNode:
    """`trouble` says what is wrong with the kubelet; empty when it is healthy. `registry` is what `/metrics` shows."""

    name: str
    pods: ServedPods
    runtime: Runtime
    clock: Clock
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    trouble: Callable[[], str] = str
    # How long a log or a command may stand still before its caller is given up.
    stream_idle_seconds: float = 4 * 3600.0
