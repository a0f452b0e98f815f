"""The archive: pods, their events and the end of their logs, saved before deletion.

`ArchiveStep` is a pre-delete step; it reads the pod, its events and the end of its logs, and stores them as one `Entry`
in an `Archive`: a folder (`FolderArchive`) or a bucket (`S3Archive`). If that fails, the pod stays. `ArchiveReader`
reads an archive.
"""

from podlife.podgc.archive.archive import Archive, ArchiveError
from podlife.podgc.archive.entry import DamagedError, Entry, Header, Log
from podlife.podgc.archive.folder import ArchiveFolder, ArchiveLimits, FolderArchive
from podlife.podgc.archive.pod_reader import LogSettings
from podlife.podgc.archive.reader import ArchiveReader, FolderReader
from podlife.podgc.archive.step import ArchiveStep

__all__ = [
    "Archive",
    "ArchiveError",
    "ArchiveFolder",
    "ArchiveLimits",
    "ArchiveReader",
    "ArchiveStep",
    "DamagedError",
    "Entry",
    "FolderArchive",
    "FolderReader",
    "Header",
    "Log",
    "LogSettings",
]
