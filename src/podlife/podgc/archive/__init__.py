"""The archive: what a pod was, and what it said last, kept before it is deleted.

`ArchiveStep` is the step before a deletion; it reads the pod, its events and the end of its logs, and gives them as one
`Entry` to an `Archive`: a folder (`FolderArchive`) or a bucket (`S3Archive`). If the archive does not take it, the pod
stays. What lies in an archive is read with a `Shelf`.
"""

from podlife.podgc.archive.archive import Archive, ArchiveError
from podlife.podgc.archive.entry import DamagedError, Entry, Header, Log
from podlife.podgc.archive.folder import ArchiveFolder, Limits
from podlife.podgc.archive.folder_archive import FolderArchive
from podlife.podgc.archive.pod_reader import LogSettings
from podlife.podgc.archive.reader import FolderShelf, Shelf
from podlife.podgc.archive.step import ArchiveStep

__all__ = [
    "Archive",
    "ArchiveError",
    "ArchiveFolder",
    "ArchiveStep",
    "DamagedError",
    "Entry",
    "FolderArchive",
    "FolderShelf",
    "Header",
    "Limits",
    "Log",
    "LogSettings",
    "Shelf",
]
