"""The archive in a folder: what it holds is what it says, it is never too full, and nothing leads out of it."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from podlife.clock import ManualClock
from podlife.podgc.archive import ArchiveError, ArchiveFolder, ArchiveLimits, FolderArchive, FolderReader
from podlife.podgc.archive import files as files_module
from podlife.podgc.archive.archive import EntryPath, place_of, place_of_file
from podlife.podgc.archive.entry import decode_entry, encode_entry
from podlife.podgc.archive.ledger import FILE, Holdings
from podlife.podgc.archive.reader import DamagedEntry, find
from tests.unit.podgc.archive.entries import NOW, UID, files_in, make_entry

LABELS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
NAMES = st.lists(LABELS, min_size=1, max_size=4).map(".".join).filter(lambda name: len(name) <= 253)
UIDS = st.uuids().map(str)


def opened(path: Path, most_bytes: int = 1 << 20, most_age_seconds: float = 3600.0) -> ArchiveFolder:
    folder = ArchiveFolder(path, ArchiveLimits(most_bytes, most_age_seconds))
    folder.open(NOW)
    return folder


def put(
    folder: ArchiveFolder, name: str = "web", uid: str = UID, *, at: datetime = NOW, log_bytes: int = 0
) -> int:
    entry = make_entry(name, uid=uid, at=at, log_bytes=log_bytes)
    data = encode_entry(entry)
    folder.put(place_of("default", name, uid), data, at)
    return len(data)


def holdings(path: Path) -> Holdings:
    return msgspec.json.decode((path / FILE).read_bytes()[:256], type=Holdings)


def uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


@given(LABELS, NAMES, UIDS)
def test_any_pod_has_a_place_of_its_own_that_a_file_system_takes(namespace: str, name: str, uid: str) -> None:
    place = place_of(namespace, name, uid)
    assert place_of_file(place.namespace, place.file) == place
    assert place.uid == uid
    assert name.startswith(place.name)
    assert len(place.file.encode()) <= 255
    assert Path(str(place)).parts == (namespace, place.file)


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_whatever_a_server_says_leads_nowhere_else(namespace: str, name: str, uid: str) -> None:
    try:
        place = place_of(namespace, name, uid)
    except ArchiveError:
        return
    assert set(str(place)) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/")
    assert not {".", ".."} & set(Path(str(place)).parts)


@pytest.mark.parametrize(
    ("namespace", "name", "uid"),
    [
        ("..", "web", UID),
        ("a/b", "web", UID),
        ("a", "../web", UID),
        ("a", "web", "../x"),
        ("a", "", UID),
        ("a", "b", ""),
    ],
)
def test_a_name_that_would_lead_out_of_the_archive_has_no_place(namespace: str, name: str, uid: str) -> None:
    with pytest.raises(ArchiveError, match="cannot archive"):
        place_of(namespace, name, uid)


def test_what_is_kept_is_its_owners_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        folder = opened(tmp_path / "a" / "b")
        put(folder)
    finally:
        os.umask(old)
    modes = {
        path.relative_to(tmp_path): stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a").rglob("*")
    }
    assert modes == {
        Path("a/b"): 0o700,
        Path("a/b/.lock"): 0o600,
        Path("a/b/.partial"): 0o700,
        Path("a/b/default"): 0o700,
        Path(f"a/b/default/web_{UID}.jsonl.gz"): 0o600,
    }


def test_the_same_pod_again_replaces_its_entry_and_is_counted_once(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    put(folder, log_bytes=5000)
    size = put(folder, log_bytes=1000, at=NOW + timedelta(minutes=1))
    assert files_in(tmp_path) == {f"default/web_{UID}.jsonl.gz": size}
    assert (holdings(tmp_path).entries, holdings(tmp_path).bytes) == (1, size)
    data = (tmp_path / "default" / f"web_{UID}.jsonl.gz").read_bytes()
    assert decode_entry(data) == make_entry(at=NOW + timedelta(minutes=1), log_bytes=1000)


def test_a_full_archive_refuses_and_keeps_what_is_not_too_old(tmp_path: Path) -> None:
    folder = opened(tmp_path, most_bytes=10_000)
    put(folder, "one", uid(1), log_bytes=10_000)
    before = files_in(tmp_path)
    with pytest.raises(ArchiveError, match=r"is full \(limit 9\.8Ki, no entry is older than 1h\)"):
        put(folder, "two", uid(2), log_bytes=10_000, at=NOW + timedelta(minutes=59))
    assert files_in(tmp_path) == before
    folder.check(NOW)


def test_what_has_become_too_old_makes_room(tmp_path: Path) -> None:
    folder = opened(tmp_path, most_bytes=8_000)
    put(folder, "one", uid(1), log_bytes=10_000)
    later = NOW + timedelta(hours=1)
    folder.check(later)
    put(folder, "two", uid(2), log_bytes=10_000, at=later)
    assert list(files_in(tmp_path)) == [f"default/two_{uid(2)}.jsonl.gz"]


def test_an_entry_that_replaces_its_own_expired_predecessor_is_counted_in_full(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    folder.limits = ArchiveLimits(put(folder, "web") + put(folder, "old", uid(1), log_bytes=5_000), 3600)
    size = put(folder, "web", at=NOW + timedelta(hours=2), log_bytes=1_000)
    assert files_in(tmp_path) == {f"default/web_{UID}.jsonl.gz": size}
    assert (holdings(tmp_path).entries, holdings(tmp_path).bytes) == (1, size)


def test_an_entry_whose_expired_predecessor_made_too_little_room_is_refused(tmp_path: Path) -> None:
    folder, later = opened(tmp_path), NOW + timedelta(hours=2)
    old = put(folder, "web", log_bytes=1_000)
    young = put(folder, "young", uid(1), at=later, log_bytes=5_000)
    folder.limits = ArchiveLimits(old + young, 3600)
    with pytest.raises(ArchiveError, match="is full"):
        put(folder, "web", at=later, log_bytes=2_000)
    assert files_in(tmp_path) == {f"default/young_{uid(1)}.jsonl.gz": young}
    assert (holdings(tmp_path).entries, holdings(tmp_path).bytes) == (1, young)


def test_full_to_the_last_byte_is_told_before_anything_is_read_for_an_entry(tmp_path: Path) -> None:
    size = put(opened(tmp_path / "other"))
    folder = opened(tmp_path / "full", most_bytes=size)
    put(folder)
    with pytest.raises(ArchiveError, match="is full"):
        folder.check(NOW)


def test_without_an_age_nothing_is_ever_removed(tmp_path: Path) -> None:
    folder = opened(tmp_path, most_age_seconds=0)
    put(folder)
    folder.check(NOW + timedelta(days=10_000))
    opened(tmp_path, most_age_seconds=0)
    assert len(files_in(tmp_path)) == 1


def test_no_entry_costs_a_look_at_the_others_neither_when_it_is_full_nor_while_they_grow_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = opened(tmp_path, most_bytes=60_000)
    for second in range(100):
        put(folder, "small", uid(second), at=NOW + timedelta(seconds=second))
    looks: list[int] = []
    real = files_module._names

    def noted(each: int) -> list[str]:
        looks.append(each)
        return real(each)

    monkeypatch.setattr(files_module, "_names", noted)
    for second in range(100):
        with pytest.raises(ArchiveError, match="is full"):
            put(folder, "two", uid(1000), log_bytes=100_000, at=NOW + timedelta(seconds=second))
    # Once in a minute at most: the folder and its one namespace. Somebody may have made room by hand.
    assert len(looks) == 2
    looks.clear()
    for second in range(100):
        folder.check(NOW + timedelta(hours=1, seconds=second))
    assert 2 <= len(looks) <= 4
    assert holdings(tmp_path).entries < 50


def test_what_is_not_an_entry_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "photos").mkdir()
    mine = {"notes.txt": 3, "photos/cat.jsonl.gz": 3, f"UPPER_{UID}.jsonl.gz": 3, f"web_{UID}.jsonl.gz": 3}
    for name in mine:
        (tmp_path / name).write_text("abc")
        os.utime(tmp_path / name, (0, 0))
    folder = opened(tmp_path)
    put(folder, at=NOW - timedelta(hours=2))
    folder.prune(NOW)
    assert files_in(tmp_path) == mine
    assert (tmp_path / "empty").is_dir()
    assert not (tmp_path / "default").exists(), "a namespace of which nothing is left goes too"
    assert holdings(tmp_path).entries == 0


def test_a_link_in_the_place_of_a_namespace_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = opened(tmp_path / "archive")
    (tmp_path / "archive" / "default").symlink_to(outside)
    with pytest.raises(ArchiveError, match="cannot use archive"):
        put(folder)
    assert list(outside.iterdir()) == []
    assert files_in(tmp_path / "archive") == {}


def test_what_a_killed_writer_left_is_cleared_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    opened(tmp_path)
    (tmp_path / ".partial" / "dead").write_bytes(b"half")
    alive = (tmp_path / ".partial" / "alive").open("wb")
    with alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        opened(tmp_path)
        assert [path.name for path in (tmp_path / ".partial").iterdir()] == ["alive"]
    opened(tmp_path)
    assert list((tmp_path / ".partial").iterdir()) == []


@pytest.mark.parametrize(
    "left", [b"", b"{", b"\xff" * 300, b'{"bytes":"much"}', b'{"bytes":5,"isChanging":true}']
)
def test_whatever_is_left_of_the_count_by_a_killed_process_the_next_one_counts_anew(
    tmp_path: Path, left: bytes
) -> None:
    folder = opened(tmp_path)
    size = put(folder)
    (tmp_path / FILE).write_bytes(left)
    more = put(folder, "two", uid(2))
    assert (holdings(tmp_path).entries, holdings(tmp_path).bytes) == (2, size + more)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_as_such_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    folder = opened(tmp_path)
    put(folder)
    before = files_in(tmp_path)

    def no_space(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", no_space)
        with pytest.raises(ArchiveError, match="no space left on device"):
            put(folder, "two", uid(2))
    assert files_in(tmp_path) == before
    put(folder, "two", uid(2))
    assert holdings(tmp_path).entries == 2


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArchiveError, match="not a directory"):
        opened(tmp_path / where)


def test_threads_that_write_at_once_are_all_counted(tmp_path: Path) -> None:
    folder = opened(tmp_path, most_bytes=1 << 30)
    threads = [
        threading.Thread(
            target=lambda start=start: [put(folder, "web", uid(start + each)) for each in range(10)]
        )
        for start in range(0, 80, 10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found = files_in(tmp_path)
    assert len(found) == 80
    assert (holdings(tmp_path).entries, holdings(tmp_path).bytes) == (80, sum(found.values()))


WRITER = """
import sys
from pathlib import Path
from tests.unit.podgc.archive.test_folder import opened, put, uid
folder = opened(Path(sys.argv[1]), most_bytes=1 << 30)
for each in range(40):
    put(folder, "web", uid(int(sys.argv[2]) + each), log_bytes=2000)
"""


def test_processes_that_write_at_once_are_all_counted(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[4]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(start)], cwd=root)
        for start in (0, 1000, 2000)
    ]
    try:
        assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    found = files_in(tmp_path)
    assert len(found) == 120
    assert (holdings(tmp_path).entries, holdings(tmp_path).bytes) == (120, sum(found.values()))


class Keeping(RuleBasedStateMachine):
    """Two writers on one folder, time that passes, one of them dying: the count is the folder's, and never too much."""

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp(prefix="archive"))
        self.now = NOW
        self.limits = ArchiveLimits(most_bytes=4_000, most_age_seconds=100.0)
        self.writers = [ArchiveFolder(self.path, self.limits) for _ in range(2)]
        for writer in self.writers:
            writer.open(self.now)
        self.kept: dict[EntryPath, datetime] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.path)

    @rule(writer=st.integers(0, 1), number=st.integers(0, 5), log_bytes=st.integers(0, 1500))
    def put(self, writer: int, number: int, log_bytes: int) -> None:
        entry = make_entry("web", uid=uid(number), at=self.now, log_bytes=log_bytes)
        place = place_of("default", "web", uid(number))
        try:
            self.writers[writer].put(place, encode_entry(entry), self.now)
        except ArchiveError:
            return
        self.kept[place] = self.now

    @rule(writer=st.integers(0, 1))
    def check(self, writer: int) -> None:
        with suppress(ArchiveError):
            self.writers[writer].check(self.now)

    @rule(seconds=st.floats(0, 60))
    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(writer=st.integers(0, 1))
    def start_again(self, writer: int) -> None:
        self.writers[writer] = ArchiveFolder(self.path, self.limits)
        self.writers[writer].open(self.now)
        (self.path / ".partial" / "left").write_bytes(b"half")

    @precondition(lambda self: self.kept)
    @rule()
    def die_in_the_middle(self) -> None:
        """Renamed, and not counted yet."""
        changing = holdings(self.path)
        changing.is_changing = True
        changing.bytes += 77
        (self.path / FILE).write_bytes(msgspec.json.encode(changing))
        self.writers[0].prune(self.now)

    @invariant()
    def the_count_is_the_folders(self) -> None:
        found = {name: size for name, size in files_in(self.path).items() if not name.startswith(".partial")}
        known = holdings(self.path)
        assert (known.entries, known.bytes, known.is_changing) == (len(found), sum(found.values()), False)
        assert known.bytes <= self.limits.most_bytes

    @invariant()
    def nothing_is_gone_before_its_time(self) -> None:
        names = set(files_in(self.path))
        for place, stored_at in self.kept.items():
            if (self.now - stored_at).total_seconds() < self.limits.most_age_seconds:
                assert str(place) in names


Keeping.TestCase.settings = settings(deadline=None, max_examples=15, stateful_step_count=25)
test_the_count_is_always_that_of_the_folder = Keeping.TestCase


async def test_what_is_kept_already_is_read_and_what_is_damaged_is_as_nothing(tmp_path: Path) -> None:
    archive = FolderArchive(tmp_path, clock=ManualClock(NOW))
    archive.open()
    entry = make_entry(log_bytes=1000)
    assert await archive.get("default", "web", UID) is None
    await archive.put(entry)
    assert await archive.get("default", "web", UID) == entry
    assert await archive.get("other", "web", UID) is None
    [path] = tmp_path.glob("default/*")
    path.write_bytes(path.read_bytes()[:50])
    assert await archive.get("default", "web", UID) is None
    path.unlink()
    path.mkdir()
    with pytest.raises(ArchiveError, match="cannot use archive"):
        await archive.get("default", "web", UID)
    await archive.close()


def test_who_makes_room_by_hand_need_not_tell_the_collector_that_runs(tmp_path: Path) -> None:
    folder = opened(tmp_path, most_bytes=3000, most_age_seconds=0)
    put(folder, log_bytes=3600)
    with pytest.raises(ArchiveError, match="is full"):
        put(folder, uid=uid(2), log_bytes=3600, at=NOW + timedelta(seconds=10))
    shutil.rmtree(tmp_path / "default")
    # Not for each pod that has to stay: to count a folder takes its time.
    with pytest.raises(ArchiveError, match="is full"):
        put(folder, uid=uid(2), log_bytes=3600, at=NOW + timedelta(seconds=50))
    put(folder, uid=uid(2), log_bytes=3600, at=NOW + timedelta(seconds=70))
    assert holdings(tmp_path).entries == 1
    assert holdings(tmp_path).bytes == sum(files_in(tmp_path).values())


def refusing(monkeypatch: pytest.MonkeyPatch, namespace: str, number: int) -> None:
    """Let that folder not be opened: whoever runs the tests may be root, who may read all."""
    real = files_module._open_folder

    def open_folder(root: int, name: str) -> int:
        if name == namespace:
            raise OSError(number, os.strerror(number))
        return real(root, name)

    monkeypatch.setattr(files_module, "_open_folder", open_folder)


async def test_a_namespace_that_may_not_be_read_is_told_and_not_taken_for_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(opened(tmp_path))
    refusing(monkeypatch, "default", errno.EACCES)
    shelf = FolderReader(tmp_path)
    told = [DamagedEntry(EntryPath("default", ""), "Permission denied")]
    assert [each async for each in shelf.items()] == told
    assert await find(shelf, "web") == told
    assert [each async for each in shelf.items("other")] == []
    # To whoever writes it is somebody else's.
    assert opened(tmp_path).count(NOW) == (0, 0)
    await shelf.close()


async def test_a_folder_that_cannot_be_counted_is_not_taken_for_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a process that has too many files open: it would write beyond the limit."""
    folder = opened(tmp_path)
    put(folder)
    refusing(monkeypatch, "default", errno.EMFILE)
    with pytest.raises(ArchiveError, match="Too many open files"):
        folder.prune(NOW)
    shelf = FolderReader(tmp_path)
    with pytest.raises(ArchiveError, match="Too many open files"):
        [each async for each in shelf.items()]
    await shelf.close()


def test_an_archive_that_somebody_has_emptied_takes_entries_again_and_one_that_is_gone_does_not(
    tmp_path: Path,
) -> None:
    path = tmp_path / "archive"
    folder = opened(path)
    put(folder)
    for each in path.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    size = put(folder, uid=uid(1))
    assert list(files_in(path).values()) == [size]
    assert (holdings(path).entries, holdings(path).bytes) == (1, size)
    shutil.rmtree(path)
    # It may have been a disk that is not there just now.
    with pytest.raises(ArchiveError, match="No such file or directory"):
        put(folder, uid=uid(2))
    assert not path.exists()
