"""Checks the log of a store against its checksums, and decides what damage means for clients.

A missing object looks like a deleted one: kubelets stop its containers, controllers delete its dependents. So a store
with damage among its existing objects is rejected as a whole. Damage that cannot be mistaken for a deletion is set
aside and reported: a superseded version only shortens the history, and nothing acts on the absence of an Event.

`Inspection` checks the rules that every log keeps, independent of its checksums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from zlib import crc32

import msgspec

from podlife.apiserver.storage.database import ReadRow, head_of, link
from podlife.apiserver.storage.records import Row

# No component acts on the absence of one of these.
EXPENDABLE = frozenset({"events"})
PROBLEMS_KEPT = 100


@dataclass(frozen=True, slots=True)
class DamagedRow:
    """`is_named`: everything but the value is intact."""

    revision: int
    resource: str
    title: str
    deleted: bool
    is_named: bool

    @property
    def is_harmless(self) -> bool:
        """Whether not serving it misleads no client."""
        return self.is_named and (self.deleted or self.resource in EXPENDABLE)


@dataclass(frozen=True, slots=True)
class DamageAssessment:
    """What damaged rows mean: which make the store unusable, which are set aside, and up to which revision the
    history is lost with them."""

    fatal: tuple[DamagedRow, ...]
    set_aside: tuple[DamagedRow, ...]
    history_lost_until: int


class Verification:
    """Reads rows once, oldest first. `damaged` and `problems` are complete when all have been read."""

    def __init__(self, meta: Mapping[str, int]) -> None:
        self._meta = meta
        self.damaged: dict[int, DamagedRow] = {}
        # Problems of the log as a whole: missing or surplus rows.
        self.problems: list[str] = []
        self.revision = meta["compacted"]
        self.chain = meta["chain"]
        self._successors: dict[int, int] = {}

    def trusted(self, rows: Iterable[ReadRow]) -> Iterator[Row]:
        """The intact rows. A row that is set aside is returned as the removal of its object."""
        compacted, standing = self._meta["compacted"], 0
        for row in rows:
            revision, resource, namespace, name, deleted, previous, _, checksum, chain, value = row
            is_whole, is_named = judge(row)
            if revision > compacted:
                self._continue_chain(revision, checksum, chain)
            elif isinstance(checksum, int):
                standing += checksum
            if is_whole:
                if previous in self.damaged:
                    self._successors[previous] = revision
                yield revision, resource.decode(), namespace.decode(), name.decode(), deleted, previous, value
            else:
                damaged = self.damaged[revision] = _describe(row, is_named=is_named)
                if damaged.is_harmless:
                    # The version before it is superseded in any case.
                    yield revision, resource.decode(), namespace.decode(), name.decode(), 1, previous, b""
            self.revision = revision
        self.revision = max(self.revision, compacted)
        if standing != self._meta["standing"]:
            self.problems.append(
                f"rows are missing or damaged up to revision {compacted}: they do not add up"
            )

    def _continue_chain(self, revision: int, checksum: object, chain: object) -> None:
        is_next = isinstance(checksum, int) and link(self.chain, checksum) == chain
        if not is_next and not self.problems:
            self.problems.append(
                f"rows are missing or damaged before revision {revision}: the chain is broken"
            )
        # Continue from here: one gap is one problem.
        self.chain = chain if isinstance(chain, int) else 0

    def verdict(self) -> DamageAssessment:
        """What the damaged rows mean, once all rows have been read."""
        fatal, set_aside, lost = [], [], 0
        for row in self.damaged.values():
            successor = self._successors.get(row.revision)
            if successor is None and not row.is_harmless:
                fatal.append(row)
            else:
                set_aside.append(row)
                lost = max(lost, successor or row.revision)
        return DamageAssessment(tuple(fatal), tuple(set_aside), lost)


def judge(row: ReadRow) -> tuple[bool, bool]:
    """Whether a row is intact, and whether at least everything but its value is."""
    revision, resource, namespace, name, deleted, previous, head, checksum, _, value = row
    try:
        found = head_of(revision, resource, namespace, name, deleted, previous)
        return found == head and crc32(value, found) == checksum, found == head
    except TypeError:
        # A column has another type than written.
        return False, False


def title_of(revision: int, resource: object, namespace: object, name: object) -> str:
    """A row's name in a message; damaged names are shown as they are."""
    path = "/".join(part for part in (_text(namespace), _text(name)) if part)
    return f"revision {revision} ({_text(resource)} {path})"


def _text(value: object) -> str:
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    # Damaged text may hold anything, and may be of any length.
    return "".join(character if character.isprintable() else "?" for character in text[:253])


def _describe(row: ReadRow, *, is_named: bool) -> DamagedRow:
    revision, resource, namespace, name, deleted, *_ = row
    title = title_of(revision, resource, namespace, name)
    return DamagedRow(revision, _text(resource), title, bool(deleted), is_named)


class _Metadata(msgspec.Struct):
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class _Value(msgspec.Struct):
    metadata: _Metadata


class Inspection:
    """Replays a log: each change must follow the version it supersedes, compaction must have left nothing behind, and
    each value must be an object with its own revision."""

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
