from __future__ import annotations

import os
import stat
import tempfile
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podlife.kubelet.volumemanager.atomic_writer import File, write
from podlife.kubelet.volumemanager.layout import SetUpError

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def put(folder: Path, *empty: str, mode: int = 0o644, **files: str) -> bool:
    return put_all(folder, {**dict.fromkeys(empty, ""), **files}, mode)


def put_all(folder: Path, files: dict[str, str], mode: int = 0o644) -> bool:
    payload = {name: File(text.encode(), mode) for name, text in files.items()}
    return write(folder, payload, NOW, lambda: None)


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def version(folder: Path) -> str:
    return str((folder / "..data").readlink())


def test_the_folder_has_the_shape_that_readers_know(folder: Path) -> None:
    payload = {"a": File(b"1", 0o640), "deep/er/b": File(b"2", 0o600)}
    assert write(folder, payload, NOW, lambda: None)
    assert version(folder).startswith("..2030_01_02_03_04_05.")
    assert {each: str((folder / each).readlink()) for each in ("a", "deep")} == {
        "a": "..data/a",
        "deep": "..data/deep",
    }
    assert names(folder) == {"a", "deep", "..data", version(folder)}
    modes = {
        each: stat.S_IMODE((folder / each).stat().st_mode) for each in ("..data", "deep", "a", "deep/er/b")
    }
    assert modes == {"..data": 0o755, "deep": 0o755, "a": 0o640, "deep/er/b": 0o600}


def test_modes_are_exact_whatever_the_umask_is(folder: Path) -> None:
    before = os.umask(0o077)
    try:
        write(folder, {"d/all": File(b"", 0o777), "none": File(b"", 0)}, NOW, lambda: None)
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "d/all").stat().st_mode) == 0o777
    assert stat.S_IMODE((folder / "none").stat().st_mode) == 0
    assert stat.S_IMODE((folder / "d").stat().st_mode) == 0o755


def test_no_mode_makes_a_file_run_as_somebody_else(folder: Path) -> None:
    put(folder, "a", mode=0o6755)
    assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o755


def test_the_same_again_changes_nothing(folder: Path) -> None:
    put(folder, a="1", b="2")
    before = version(folder)
    assert not put(folder, b="2", a="1")
    assert version(folder) == before


def test_a_link_that_a_crash_left_unmade_is_made_without_a_new_version(folder: Path) -> None:
    put(folder, a="1", b="2")
    before = version(folder)
    (folder / "b").unlink()
    assert not put(folder, a="1", b="2")
    assert (folder / "b").read_text() == "2"
    assert version(folder) == before


def test_what_a_crash_left_half_done_is_cleaned_up(folder: Path) -> None:
    put(folder, a="1")
    (folder / "..data_tmp").symlink_to("..nowhere")
    (folder / "..2029_half").mkdir()
    (folder / "..2029_half/a").write_text("half")
    (folder / "stale").symlink_to("..data/stale")
    put(folder, a="2")
    assert names(folder) == {"a", "..data", version(folder)}
    assert (folder / "a").read_text() == "2"


def test_a_version_that_is_gone_is_written_again(folder: Path) -> None:
    put(folder, a="1")
    (folder / "..data").unlink()
    (folder / "..data").symlink_to("/etc")
    assert put(folder, a="1")
    assert (folder / "a").read_text() == "1"


def test_a_file_becomes_a_folder_and_a_folder_a_file(folder: Path) -> None:
    put_all(folder, {"a": "1", "b/c": "2"})
    put_all(folder, {"a/x": "3", "b": "4"})
    assert (folder / "a/x").read_bytes() == b"3"
    assert (folder / "b").read_bytes() == b"4"


def test_a_version_that_cannot_be_finished_is_never_seen(folder: Path) -> None:
    put(folder, a="1")

    def fail() -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        write(folder, {"a": File(b"2", 0o644)}, NOW, fail)
    assert (folder / "a").read_text() == "1"
    assert names(folder) == {"a", "..data", version(folder)}


def test_one_path_as_a_file_and_as_a_folder_is_refused_and_the_old_version_stays(folder: Path) -> None:
    put(folder, a="1")
    with pytest.raises(OSError):
        put(folder, "x", "x/y")
    assert names(folder) == {"a", "..data", version(folder)}


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "..",
        "../a",
        "a/../../b",
        "a/..",
        "..data",
        "..data/a",
        ".",
        "./",
        "x" * 256,
        "a\0b",
        "/".join(["y" * 200] * 30),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused_before_anything_is_written(folder: Path, path: str) -> None:
    with pytest.raises(SetUpError, match="invalid path"):
        put(folder, "good", path)
    assert names(folder) == set()


def test_names_with_dots_that_lead_nowhere_are_files(folder: Path) -> None:
    put_all(folder, {".hidden": "1", "a..b": "2"})
    assert (folder / ".hidden").read_text() == "1"
    assert (folder / "a..b").read_text() == "2"


def test_a_reader_never_sees_half_an_update(folder: Path) -> None:
    """Both files of one version always say the same, to a reader who holds the folder behind ..data."""
    put(folder, a="0" * 10_000, b="0" * 10_000)
    is_over = threading.Event()
    seen: set[str] = set()
    problems: list[str] = []

    def read() -> None:
        while not is_over.is_set():
            if not (folder / "..data").is_symlink():
                problems.append("no link")
            try:
                held = os.open(folder / "..data", os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                # Replaced and removed between reading the link and following it.
                continue
            try:
                texts = set()
                for name in ("a", "b"):
                    with os.fdopen(os.open(name, os.O_RDONLY, dir_fd=held)) as file:
                        texts.add(file.read())
            except FileNotFoundError:
                # The version it held was replaced and removed as a whole.
                continue
            finally:
                os.close(held)
            if len(texts) != 1 or len(texts.copy().pop()) != 10_000:
                problems.append("a mixture")
            seen.update(texts)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(1, 100):
            put(folder, a=str(number % 10) * 10_000, b=str(number % 10) * 10_000)
    finally:
        is_over.set()
        reader.join(10)
    assert not problems
    assert len(seen) > 1


_names = st.sampled_from(["a", "b", "c", "d/x", "d/y", "e/f/g"])
_versions = st.lists(st.dictionaries(_names, st.binary(max_size=4), max_size=5), min_size=1, max_size=6)


@given(_versions, st.data())
@settings(max_examples=25, deadline=None)
def test_whatever_came_before_or_was_left_by_a_crash_the_last_version_is_what_is_read(
    versions: list[dict[str, bytes]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each in versions:
            if data.draw(st.booleans()):
                # As if the last write had ended somewhere in its middle.
                found = sorted(folder.iterdir())
                if found and (victim := data.draw(st.sampled_from(found))).is_symlink():
                    victim.unlink()
            write(folder, {key: File(value, 0o600) for key, value in each.items()}, NOW, lambda: None)
            read = {key: (folder / key).read_bytes() for key in each}
            assert read == each
            tops = {key.split("/")[0] for key in each}
            assert names(folder) == {"..data", version(folder), *tops}
