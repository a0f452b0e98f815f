"""The interface of an archive, and the path of an entry in it: `NAMESPACE/NAME_UID.jsonl.gz`, in a folder or a bucket.

A `put` that returns has made the entry durable. `ArchiveError` means that it has not; its message is one line and the
same for all pods concerned, so that they can be reported together.

Names from the server cannot lead out of the archive: an invalid namespace, pod name or UID has no path. A pod always
has the same path, so a new entry replaces the previous one. File names are limited to 255 bytes and a pod's name may
have 253: a long one is cut here, and complete in the entry's header.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from podlife.api.names import check_dns_label, check_dns_subdomain
from podlife.errors import PodlifeError
from podlife.podgc.archive.entry import Entry

_SUFFIX = ".jsonl.gz"
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")
# Names have no underscore, so the UID follows the first one.
_FILE = re.compile(rf"(?P<name>[a-z0-9.-]+)_(?P<uid>{_UID.pattern}){re.escape(_SUFFIX)}")
_LONGEST_NAME = 160


class ArchiveError(PodlifeError):
    """The archive cannot store or return an entry."""


class Archive(Protocol):
    async def check(self) -> None:
        """Raises ArchiveError if a `put` is certain to fail; cheap, called before anything is read for an entry."""

    async def get(self, namespace: str, name: str, uid: str) -> Entry | None:
        """The existing entry of the pod; None if it is missing or damaged. Raises ArchiveError."""

    async def put(self, entry: Entry) -> None:
        """Store the entry, replacing an older one of the same UID. Raises ArchiveError. Bounded in time."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, order=True)
class EntryPath:
    namespace: str
    file: str

    @property
    def uid(self) -> str:
        match = _FILE.fullmatch(self.file)
        return match["uid"] if match else ""

    @property
    def name(self) -> str:
        """The pod's name, possibly cut."""
        return self.file.partition("_")[0]

    def is_of(self, stem: str, uid: str) -> bool:
        """Whether the file name has this prefix and this UID; empty matches all."""
        return self.file.startswith(stem) and uid in ("", self.uid)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.file}"


def place_of(namespace: str, name: str, uid: str) -> EntryPath:
    """Raises ArchiveError for invalid names."""
    if check_dns_label(namespace) or check_dns_subdomain(name) or not _UID.fullmatch(uid):
        raise ArchiveError("cannot archive a pod with an invalid namespace, name or UID")
    return EntryPath(namespace, f"{stem_of(name)}_{uid}{_SUFFIX}")


def stem_of(name: str) -> str:
    """The pod's name as part of a file name."""
    return name[:_LONGEST_NAME]


def place_of_file(namespace: str, file: str) -> EntryPath | None:
    """None for a file that is not an entry; such files are left alone."""
    return EntryPath(namespace, file) if is_namespace(namespace) and _FILE.fullmatch(file) else None


def is_namespace(name: str) -> bool:
    return not check_dns_label(name)
