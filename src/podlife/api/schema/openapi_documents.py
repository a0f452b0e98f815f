"""The OpenAPI documents of the real API server, cut down to what is served here.

All of them are one compressed file beside this module (`tools/generate_schema.py` writes it), unpacked when
one is asked for. Nothing of it is kept in memory but the index.
"""

from __future__ import annotations

import lzma
from functools import cache
from importlib import resources

import msgspec


def _unpacked() -> bytes:
    return lzma.decompress(resources.files(__package__).joinpath("documents.xz").read_bytes())


@cache
def _index() -> tuple[int, dict[str, tuple[int, int, str]]]:
    """Where the documents begin, and each one's offset, length and hash."""
    data = _unpacked()
    end = data.index(b"\n") + 1
    return end, msgspec.json.decode(data[:end], type=dict[str, tuple[int, int, str]])


def hashes() -> dict[str, str]:
    """Every document, by its path below /openapi (`v2`, `v3/apis/apps/v1`), and the hash of its content."""
    return {path: entry[2] for path, entry in _index()[1].items()}


def document(path: str) -> bytes | None:
    """The document as JSON, or None when there is none at that path."""
    start, index = _index()
    if path not in index:
        return None
    offset, length, _ = index[path]
    return _unpacked()[start + offset : start + offset + length]
