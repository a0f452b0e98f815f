"""Replays a log and checks it against the rules that every log keeps, independent of its checksums.

Each change must follow the version it supersedes, compaction must have left nothing behind, and each value must be an
object with its own revision.
"""

from __future__ import annotations

import msgspec

from podlife.apiserver.storage.database import ReadRow
from podlife.apiserver.storage.verification import title_of

PROBLEMS_KEPT = 100


class _Metadata(msgspec.Struct):
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class _Value(msgspec.Struct):
    metadata: _Metadata


class Inspection:
    def __init__(self, compacted: int) -> None:
        self.compacted = compacted
        self.problems: list[str] = []
        self.revision = compacted
        self.events = 0
        self._standing: dict[tuple[bytes, bytes, bytes], int] = {}
        self._decoder = msgspec.json.Decoder(_Value)

    @property
    def records(self) -> int:
        return len(self._standing)

    def note(self, problem: str) -> None:
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(problem)

    def visit(self, row: ReadRow) -> None:
        revision, resource, namespace, name, deleted, previous, *_, value = row
        key = (resource, namespace, name)
        title = title_of(revision, *key)
        found = self._standing.get(key, 0)
        if revision <= 0:
            self.note(f"{title} is not a revision")
        elif revision > self.compacted:
            self.events += 1
            if previous != found:
                self.note(f"{title} follows revision {previous}, but {found} stood there")
            if deleted and not found:
                self.note(f"{title} removes what was not there")
        elif deleted or found:
            self.note(f"{title} should have been compacted")
        if deleted:
            self._standing.pop(key, None)
        else:
            self._standing[key] = revision
        self.revision = max(self.revision, revision)
        self._visit_value(title, revision, value)

    def _visit_value(self, title: str, revision: int, value: bytes) -> None:
        try:
            # The decoder does not check skipped text; all of it is sent to clients.
            value.decode()
            stated = self._decoder.decode(value).metadata.resource_version
        except (msgspec.MsgspecError, UnicodeDecodeError, TypeError, AttributeError, RecursionError) as error:
            self.note(f"{title} holds no object: {error}")
            return
        if stated != str(revision):
            self.note(f"{title} holds an object that says its resourceVersion is {stated!r}")
