"""A data folder that others could read is made private, with a log line for each file that was not."""

from __future__ import annotations

import logging
import stat
from pathlib import Path

import pytest

from podlife.apiserver.storage.data_dir import DataDir
from podlife.errors import ConfigError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    "name",
    [
        "tokens.csv",
        "admin.kubeconfig",
        "join.kubeconfig",
        "pki/ca.pem",
        "pki/apiserver.pem",
        "store.db",
        "store.db-wal",
    ],
)
def test_a_secret_that_others_could_read_is_made_private_and_reported(
    folder: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = folder / name
    file.parent.mkdir(parents=True)
    folder.chmod(0o700)
    file.write_text("secret")
    file.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        data = DataDir(folder)
        data.claim()
        data.release()
    assert mode(file) == 0o600
    assert [record.message for record in caplog.records] == [
        f"{file} was open to other users (mode 0644): now 0600"
    ]


@pytest.mark.parametrize("found", [0o777, 0o775, 0o770])
def test_a_folder_that_others_could_write_to_is_made_private_and_reported(
    folder: Path, found: int, caplog: pytest.LogCaptureFixture
) -> None:
    folder.mkdir()
    folder.chmod(found)
    data = DataDir(folder)
    data.claim()
    data.release()
    assert mode(folder) == 0o700
    assert [record.message for record in caplog.records] == [
        f"{folder} was open to other users (mode {found:04o}): now 0700"
    ]


def test_a_folder_of_others_is_refused_and_not_changed(folder: Path) -> None:
    folder.mkdir()
    (folder / "somebody-elses").touch()
    folder.chmod(0o1777)
    with pytest.raises(
        ConfigError, match=r"can be written to by other users \(mode 1777\): take a folder of its own"
    ):
        DataDir(folder).claim()
    assert mode(folder) == 0o1777


def test_a_folder_whose_names_others_may_see_is_taken_as_it_is(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.mkdir()
    folder.chmod(0o755)
    data = DataDir(folder)
    data.claim()
    data.release()
    assert mode(folder) == 0o755
    assert caplog.records == []


def test_what_clients_trust_stays_readable(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.mkdir(mode=0o700)
    (folder / "pki").mkdir()
    (folder / "pki" / "ca.crt").write_text("for everybody")
    (folder / "pki" / "ca.crt").chmod(0o644)
    data = DataDir(folder)
    data.claim()
    data.release()
    assert mode(folder / "pki" / "ca.crt") == 0o644
    assert caplog.records == []


def test_a_folder_that_cannot_be_made_private_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir()
    folder.chmod(0o777)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(ConfigError) as refused:
        DataDir(folder).claim()
    assert str(refused.value) == (
        f"{folder} is open to other users (mode 0777) and cannot be made private: Operation not permitted; "
        f"run `chmod go= {folder}` as its owner"
    )


def test_what_a_killed_restore_left_behind_is_removed_and_nothing_else(folder: Path) -> None:
    folder.mkdir()
    left = (".store.db.0123456789abcdef", ".store.db.0123456789abcdef-journal")
    kept = (".store.db.mine", "store.db.0123456789abcdef", ".store.db.0123456789abcdef.bak")
    for name in (*left, *kept):
        (folder / name).touch()
    (folder / ".store.db.00000000000000aa").mkdir()
    data = DataDir(folder)
    data.claim()
    data.release()
    assert {each.name for each in folder.iterdir()} == {*kept, ".store.db.00000000000000aa", "store.lock"}
