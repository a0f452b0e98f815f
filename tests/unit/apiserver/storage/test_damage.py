"""A damaged or lost store: rejected with a one-line error that says what to do, never taken for an empty one."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from podlife.apiserver.storage import CompactedError, Delete, Key, Put, SqliteStore, StoreError
from podlife.apiserver.storage.data_dir import DataDir
from podlife.apiserver.storage.maintenance import backup, check, restore, salvage
from podlife.errors import ConfigError
from tests.conformance.storage.storage_kit import held, pod
from tests.unit.apiserver.storage.stores import execute, opened, value

TEXT = "a text that stands in a value"
VALUE = value(TEXT)


def event(name: str) -> Key:
    return Key("events", "default", name)


async def filled(folder: Path, *keys: Key) -> None:
    async with opened(folder) as store:
        for key in keys:
            found = store.get(key)
            await store.commit(Put(key, VALUE, found.revision if found else 0))


def overwrite(folder: Path, revision: int) -> None:
    """Change four bytes in the middle of the text of one row, as a disk would."""
    file = folder / "store.db"
    content = file.read_bytes()
    at = content.index(b'"resourceVersion":"%d"' % revision)
    at = content.index(TEXT.encode(), at) + 4
    file.write_bytes(content[:at] + b"????" + content[at + 4 :])


async def refusal(folder: Path) -> str:
    with pytest.raises(StoreError) as refused:
        await SqliteStore.open(folder)
    message = str(refused.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("state", ["missing", "empty"])
@pytest.mark.parametrize(
    "trace", ["store.mark", "pki/ca.pem", "tokens.csv", "nodes/node-0/pods", "store.db-wal"]
)
async def test_a_lost_store_in_a_used_folder_is_not_replaced_by_an_empty_one(
    folder: Path, state: str, trace: str
) -> None:
    file = folder / trace
    file.parent.mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    file.write_text("left by a cluster")
    if state == "empty":
        (folder / "store.db").touch(0o600)
    message = await refusal(folder)
    assert message.startswith(f"{folder}/store.db is {state}, but a cluster has used this folder")
    assert trace.partition("/")[0] in message
    assert f"podlife apiserver restore FILE --data {folder}" in message
    assert f"to start an empty cluster instead, stop its nodes and remove {folder}" in message
    assert file.read_text() == "left by a cluster"
    with pytest.raises(StoreError, match=f"store.db is {state}"):
        check(folder)


async def test_a_folder_with_nothing_of_a_cluster_in_it_becomes_a_new_store(folder: Path) -> None:
    (folder / "nodes").mkdir(parents=True)
    folder.chmod(0o700)
    (folder / "store.db").touch(0o600)
    await filled(folder, pod("a"))
    assert check(folder).problems == ()


async def test_a_store_in_memory_is_refused_where_a_cluster_keeps_its_objects(folder: Path) -> None:
    await filled(folder, pod("a"))
    with pytest.raises(ConfigError, match="one in memory would be empty to its nodes"):
        DataDir(folder).prepare(in_memory=True)


async def test_four_bytes_changed_in_an_object_are_noticed_and_nothing_is_served(folder: Path) -> None:
    await filled(folder, pod("a"), pod("b"))
    overwrite(folder, 2)
    message = await refusal(folder)
    assert f"{folder}/store.db is damaged: revision 2 (pods default/b) does not match its checksum" in message
    assert "podlife apiserver check" in message
    assert "podlife apiserver restore FILE" in message
    assert check(folder).problems == (
        "revision 2 (pods default/b) is damaged: it does not match its checksum",
    )


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE log SET name = 'c' WHERE revision = 2",
        "UPDATE log SET deleted = 1 WHERE revision = 2",
        "UPDATE log SET previous = 1 WHERE revision = 2",
        "UPDATE log SET namespace = x'ff' WHERE revision = 2",
        "UPDATE log SET checksum = 1 WHERE revision = 2",
        "UPDATE log SET chain = 1 WHERE revision = 2",
        "DELETE FROM log WHERE revision = 2",
        "INSERT INTO log SELECT 9, resource, namespace, name, 0, 0, head, checksum, chain, value FROM log LIMIT 1",
        "UPDATE meta SET value = 1 WHERE name = 'standing'",
        "UPDATE meta SET value = 3 WHERE name = 'compacted'",
        "DELETE FROM meta WHERE name = 'compacted'",
        "DELETE FROM meta WHERE name = 'checksum'",
    ],
)
async def test_a_log_that_is_not_what_was_written_is_refused_and_check_says_so(
    folder: Path, harm: str
) -> None:
    await filled(folder, pod("a"), pod("b"), pod("c"))
    execute(folder, harm)
    assert "is damaged" in await refusal(folder)
    assert check(folder).problems


async def test_an_object_that_vanished_from_the_compacted_part_is_missed(folder: Path) -> None:
    await filled(folder, pod("a"), pod("b"), pod("a"))
    async with opened(folder) as store:
        store._database.compact(0, 3)
    assert check(folder).problems == ()
    execute(folder, "DELETE FROM log WHERE revision = 2")
    assert "rows are missing or damaged up to revision 3" in await refusal(folder)


async def test_a_damaged_event_is_set_aside_and_reported_and_the_rest_is_served(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await filled(folder, event("old"), event("x"), pod("a"), event("x"), pod("b"))
    overwrite(folder, 4)
    with caplog.at_level(logging.WARNING):
        store = await SqliteStore.open(folder)
    assert [record.key.name for record in store.list("pods")] == ["a", "b"]
    assert [record.key.name for record in store.list("events")] == ["old"], (
        "nor is the version before it served"
    )
    assert store.set_aside == ["revision 4 (events default/x)"]
    assert "revision 4 (events default/x)" in caplog.text
    assert (store.revision, store.oldest) == (5, 4)
    with pytest.raises(CompactedError):
        store.subscribe("events", since=3)
    (again,) = await store.commit(Put(event("x"), VALUE, 0))
    await store.close()
    assert check(folder).problems
    async with opened(folder) as store:
        assert held(store, event("x")).revision == again.revision


async def test_a_damaged_version_that_was_superseded_only_shortens_the_history(folder: Path) -> None:
    await filled(folder, pod("a"), pod("a"), pod("b"))
    overwrite(folder, 1)
    async with opened(folder) as store:
        assert [(record.key.name, record.revision) for record in store.list("pods")] == [("a", 2), ("b", 3)]
        assert store.oldest == 2


async def test_a_damaged_removal_still_removes(folder: Path) -> None:
    await filled(folder, pod("a"), pod("b"))
    async with opened(folder) as store:
        await store.commit(Delete(pod("a"), VALUE, 1))
    overwrite(folder, 3)
    async with opened(folder) as store:
        assert [record.key.name for record in store.list("pods")] == ["b"]


async def killed(folder: Path, tmp_path: Path) -> Path:
    """The files of a store whose process was killed, with all of its changes in the write-ahead log."""
    await filled(folder, pod("first"))
    async with opened(folder) as store:
        for name in "abc":
            await store.commit(Put(pod(name), VALUE, 0))
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*-shm"))
        copy.chmod(0o700)
    return copy


@pytest.mark.parametrize("harm", ["cut", "damaged", "removed"])
async def test_changes_missing_at_the_end_of_the_write_ahead_log_are_noticed(
    folder: Path, tmp_path: Path, harm: str
) -> None:
    copy = await killed(folder, tmp_path)
    wal = copy / "store.db-wal"
    content = wal.read_bytes()
    match harm:
        case "cut":
            wal.write_bytes(content[:-5_000])
        case "damaged":
            wal.write_bytes(content[:-5_000] + b"?" + content[-4_999:])
        case "removed":
            wal.unlink()
    before = wal.read_bytes() if wal.exists() else b""
    message = await refusal(copy)
    assert "but revision 4 was written: the newest changes are missing" in message
    assert any("the newest changes are missing" in problem for problem in check(copy).problems)
    assert (wal.read_bytes() if wal.exists() else b"") == before, (
        "what is left is kept for whoever can save more"
    )


async def test_an_older_copy_of_the_file_is_noticed(folder: Path, tmp_path: Path) -> None:
    await filled(folder, pod("a"))
    shutil.copy(folder / "store.db", tmp_path / "older.db")
    await filled(folder, pod("b"))
    shutil.copy(tmp_path / "older.db", folder / "store.db")
    assert "the log ends at revision 1, but revision 2 was written" in await refusal(folder)


async def test_an_older_copy_that_went_on_elsewhere_is_noticed(folder: Path, tmp_path: Path) -> None:
    await filled(folder, pod("a"))
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy").chmod(0o700)
    await filled(folder, pod("b"))
    await filled(tmp_path / "copy", pod("x"), pod("y"))
    shutil.copy(tmp_path / "copy" / "store.db", folder / "store.db")
    assert "the log is an older copy that went on" in await refusal(folder)


async def test_the_store_of_another_cluster_is_refused(folder: Path, tmp_path: Path) -> None:
    await filled(folder, pod("a"))
    await filled(tmp_path / "other", pod("b"), pod("c"))
    shutil.copy(tmp_path / "other" / "store.db", folder / "store.db")
    assert "the log is of another cluster than this folder" in await refusal(folder)


@pytest.mark.parametrize("harm", [None, b"", b"\0" * 96, b"podlife-store 1 1 1 1 00000000\n"])
async def test_without_its_mark_a_store_serves_and_says_what_it_cannot_show(
    folder: Path, harm: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    await filled(folder, pod("a"))
    mark = folder / "store.mark"
    if harm is None:
        mark.unlink()
    else:
        mark.write_bytes(harm)
    state = "missing" if harm is None else "damaged"
    assert check(folder).problems == (
        f"{mark} is {state}: whether the newest changes are there cannot be shown",
    )
    await filled(folder)
    assert f"store.mark is {state}" in caplog.text
    assert check(folder).problems == (), "it is written again"


async def test_a_backup_of_a_damaged_store_is_refused(folder: Path, tmp_path: Path) -> None:
    await filled(folder, pod("a"))
    overwrite(folder, 1)
    with pytest.raises(StoreError, match=r"is damaged, nothing was backed up: revision 1 \(pods default/a\)"):
        backup(folder, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.parametrize("harm", ["damaged", "emptied", "removed"])
async def test_a_restore_into_the_folder_of_a_damaged_store_moves_its_remains_aside(
    folder: Path, tmp_path: Path, harm: str
) -> None:
    copy = await killed(folder, tmp_path)
    backup(folder, tmp_path / "saved.db")
    remains = (copy / "store.db-wal").read_bytes()
    match harm:
        case "damaged":
            (copy / "store.db").write_bytes(b"?" * 20_000)
        case "emptied":
            (copy / "store.db").write_bytes(b"")
        case "removed":
            (copy / "store.db").unlink()
    report = restore(tmp_path / "saved.db", copy)

    assert report.remains == copy / "damaged-1"
    assert (report.remains / "store.db-wal").read_bytes() == remains
    assert check(copy).problems == ()
    async with opened(copy) as store:
        assert [record.key.name for record in store.list("pods")] == ["a", "b", "c", "first"]


async def test_what_is_sound_of_a_damaged_store_can_be_saved_and_what_is_lost_is_named(
    folder: Path, tmp_path: Path
) -> None:
    await filled(folder, pod("a"), pod("b"), pod("c"), pod("b"))
    overwrite(folder, 4)
    report = salvage(folder, tmp_path / "saved.db")
    assert (report.records, report.lost) == (2, ("revision 4 (pods default/b) is damaged",))
    assert check(tmp_path / "saved.db").problems == ()

    assert restore(tmp_path / "saved.db", folder).remains == folder / "damaged-1"
    async with opened(folder) as store:
        assert [record.key.name for record in store.list("pods")] == ["a", "c"], (
            "nor is an earlier version of b there"
        )
        assert store.revision > 4


async def test_what_stands_before_and_after_unreadable_pages_is_saved(folder: Path, tmp_path: Path) -> None:
    async with opened(folder) as store:
        await store.commit(*(Put(pod(f"p{number:04}"), VALUE, 0) for number in range(2_000)))
    content = (folder / "store.db").read_bytes()
    middle = len(content) // 2 // 8192 * 8192
    (folder / "store.db").write_bytes(content[:middle] + bytes(8192) + content[middle + 8192 :])
    assert "cannot be read" in await refusal(folder)
    report = salvage(folder, tmp_path / "saved.db")
    assert 1_800 < report.records < 2_000
    assert "cannot be read" in report.lost[0]
    assert check(tmp_path / "saved.db").problems == ()


async def test_saving_from_a_store_without_its_newest_changes_goes_on_after_them(
    folder: Path, tmp_path: Path
) -> None:
    copy = await killed(folder, tmp_path)
    (copy / "store.db-wal").unlink()
    report = salvage(copy, tmp_path / "saved.db")
    assert (report.records, report.lost) == (1, ("revisions 2 to 4 are missing",))
    assert check(tmp_path / "saved.db").revision == 4
