"""One request to the node: the path in its parts, and the query."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from aiohttp import web

from podlife.wire import Query

__all__ = ["Asked", "asked_of"]


@dataclass(frozen=True, slots=True)
class Asked:
    """`parts` are those after the first, which is `root`. A part may hold anything, a slash too."""

    request: web.BaseRequest
    path: str
    root: str
    parts: tuple[str, ...]
    query: Query


def asked_of(request: web.BaseRequest) -> Asked:
    raw, _, query = request.raw_path.partition("?")
    if not raw.startswith("/"):
        # A proxy's way to ask: the whole address stands in the request line.
        raw, query = request.rel_url.raw_path, request.rel_url.raw_query_string
    # The right to a path is asked for by its parts: two ways to write one must not be two rights.
    root, *parts = [unquote(part) for part in raw.strip("/").split("/")]
    path = "/" + "/".join((root, *parts))
    return Asked(request, path, root, tuple(parts), Query(query))
