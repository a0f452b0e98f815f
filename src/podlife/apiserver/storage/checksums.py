"""Checksums of the log: of each row, of the order of the rows, and of the rows that survive compaction.

Each row has three CRC-32 values. `head` covers everything but the value, so that a damaged value still has a trusted
name; `checksum` covers the whole row; `chain` continues the previous row's chain, so that a missing row shows at its
successor. CRC-32 detects what disks and crashes do; it does not protect against someone who can write the files (ADR
9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from zlib import crc32

from podlife.apiserver.storage.state import Row

SealedRow = tuple[int, str, str, str, int, int, int, int, int, bytes]
"""A row with its checksums, in the order of the columns: head, checksum and chain precede the value."""


def head_of(
    revision: int, resource: bytes, namespace: bytes, name: bytes, deleted: int, previous: int
) -> int:
    return crc32(b"%d\0%b\0%b\0%b\0%d\0%d" % (revision, resource, namespace, name, deleted, previous))


def link(chain: int, checksum: int) -> int:
    """The chain after one more row."""
    return crc32(b"%d" % checksum, chain)


def seal(rows: Iterable[Row], chain: int) -> list[SealedRow]:
    """Add checksums to rows; `chain` is that of the row before the first."""
    sealed: list[SealedRow] = []
    for revision, resource, namespace, name, deleted, previous, value in rows:
        head = head_of(revision, resource.encode(), namespace.encode(), name.encode(), deleted, previous)
        checksum = crc32(value, head)
        chain = link(chain, checksum)
        sealed.append((revision, resource, namespace, name, deleted, previous, head, checksum, chain, value))
    return sealed


def meta_checksum(meta: Mapping[str, int]) -> int:
    """Checksum of all other entries of the table `meta`."""
    entries = [f"{name}={meta[name]}" for name in sorted(meta) if name != "checksum"]
    return crc32("\n".join(entries).encode())
