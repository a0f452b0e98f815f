"""Where the entry of a pod lies: `NAMESPACE/NAME_UID.jsonl.gz`, below a folder or in a bucket.

Nothing that a server says leads anywhere else: what is no name of a namespace, of a pod, or no UID has no place. The
same pod always has the same place, so an entry that is written again replaces the first. File systems end a name at
255 bytes and a pod's may have 253 by itself: a long one is cut here and whole in the entry's header.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from podlife.api.names import check_dns_label, check_dns_subdomain
from podlife.podgc.archive.archive import ArchiveError

__all__ = ["Place", "is_namespace", "place_of", "place_of_file", "stem_of"]

_SUFFIX = ".jsonl.gz"
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")
# No name has an underscore in it, so what follows the first one is the UID.
_FILE = re.compile(rf"(?P<name>[a-z0-9.-]+)_(?P<uid>{_UID.pattern}){re.escape(_SUFFIX)}")
_LONGEST_NAME = 160


@dataclass(frozen=True, slots=True, order=True)
class Place:
    namespace: str
    file: str

    @property
    def uid(self) -> str:
        match = _FILE.fullmatch(self.file)
        return match["uid"] if match else ""

    @property
    def name(self) -> str:
        """The pod's name, or the beginning of a long one."""
        return self.file.partition("_")[0]

    def is_of(self, stem: str, uid: str) -> bool:
        """Whether the file's name begins so, and it is that of this UID; what is empty fits all."""
        return self.file.startswith(stem) and uid in ("", self.uid)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.file}"


def place_of(namespace: str, name: str, uid: str) -> Place:
    """Raises ArchiveError for what cannot be a pod."""
    if check_dns_label(namespace) or check_dns_subdomain(name) or not _UID.fullmatch(uid):
        raise ArchiveError("a pod whose namespace, name or UID is not one of Kubernetes' cannot be archived")
    return Place(namespace, f"{stem_of(name)}_{uid}{_SUFFIX}")


def stem_of(name: str) -> str:
    """What the name of a pod becomes in that of a file."""
    return name[:_LONGEST_NAME]


def place_of_file(namespace: str, file: str) -> Place | None:
    """None for a file that is no entry of an archive; such a file is nobody's business here."""
    return Place(namespace, file) if is_namespace(namespace) and _FILE.fullmatch(file) else None


def is_namespace(name: str) -> bool:
    return not check_dns_label(name)
