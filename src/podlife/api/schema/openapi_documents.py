"""kube-apiserver's OpenAPI documents, reduced to the served resources.

They are one compressed file beside this module (written by `tools/generate_schema.py`), unpacked on request. Only the
index is kept in memory.
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
    """Start of the documents, and offset, length and hash of each."""
    data = _unpacked()
    end = data.index(b"\n") + 1
    return end, msgspec.json.decode(data[:end], type=dict[str, tuple[int, int, str]])


def hashes() -> dict[str, str]:
    """Every document, by its path below /openapi (`v2`, `v3/apis/apps/v1`), and the hash of its content."""
    return {path: entry[2] for path, entry in _index()[1].items()}


def document(path: str) -> bytes | None:
    """The document as JSON; None if there is none at that path."""
    start, index = _index()
    if path not in index:
        return None
    offset, length, _ = index[path]
    return _unpacked()[start + offset : start + offset + length]
