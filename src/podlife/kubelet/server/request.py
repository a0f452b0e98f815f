"""One request to the kubelet: its path in parts and its query, and the error that refuses it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from aiohttp import web

from podlife.errors import PodlifeError
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
