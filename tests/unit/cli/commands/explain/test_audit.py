"""Audit logs as they lie on disks: rotated, compressed, cut, large."""

from __future__ import annotations

import gzip
import io
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from podlife.cli.commands.explain.audit import find_own_log, read_audit
from podlife.client import Connection
from podlife.diagnosis import read_audit_file
from podlife.diagnosis.audit_file import siblings_of
from podlife.errors import ConfigError
from podlife.explain import AuditCollection
from podlife.localcluster.cluster_state import AuditTail
from tests.unit.explain.test_audit_log import line

SERVER = Connection("https://127.0.0.1:7443")


def users(path: Path | str) -> list[str]:
    return [each.user for each in read_audit(str(path), SERVER, "shop", "web")[0]]


def put(path: Path, data: bytes, age: int = 0) -> Path:
    path.write_bytes(data)
    os.utime(path, (1_000_000 - age, 1_000_000 - age))
    return path


def test_rotated_and_compressed_files_are_read_with_the_one_that_is_named(tmp_path: Path) -> None:
    log = put(tmp_path / "audit.log", line("delete", "web", user="now", minutes=1))
    put(tmp_path / "audit-2030-01-01T00-00-00.000.log", line("delete", "web", user="before", minutes=2), 10)
    packed = gzip.compress(line("delete", "web", user="packed", minutes=3))
    put(tmp_path / "audit-2029-12-31T00-00-00.000.log.gz", packed, 20)
    put(tmp_path / "audit.log.1", line("delete", "web", user="logrotate", minutes=4), 30)
    put(tmp_path / "other.log", line("delete", "web", user="other"))
    assert users(log) == ["logrotate", "packed", "before", "now"]
    assert read_audit(str(log), SERVER, "shop", "web")[1] == []


@pytest.mark.parametrize("name", ["audit", "audit[1].log", "*"])
def test_a_file_of_any_name_is_read(tmp_path: Path, name: str) -> None:
    log = put(tmp_path / name, line("delete", "web"))
    put(tmp_path / f"{name}.1", line("delete", "web"))
    assert users(log) == ["jane", "jane"]
    assert siblings_of(log) == [tmp_path / f"{name}.1"]


def test_of_a_log_with_a_bound_the_newest_part_is_read_and_the_rest_is_told(tmp_path: Path) -> None:
    lines = [line("delete", "web", user=f"u{number}", minutes=9 - number) for number in range(4)]
    log = put(tmp_path / "audit.log", b"".join(lines))
    put(tmp_path / "audit.log.1", line("delete", "web", user="old", minutes=20), 10)
    found = AuditCollection("shop", "web")
    unread = read_audit_file(found, str(log), 2 * len(lines[0]) + 1)
    assert [each.user for each in found.requests] == ["u2", "u3"]
    assert "before its last" in unread[0]


def test_a_log_from_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line("delete", "web"))))
    assert users("-") == ["jane"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_log_from_a_pipe_is_read_from_its_first_byte(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        written = pool.submit(pipe.write_bytes, pack(line("delete", "web")))
        found, unread = read_audit(str(pipe), SERVER, "shop", "web")
        written.result(timeout=10)
    assert ([each.user for each in found], unread) == (["jane"], [])


def test_lines_that_cannot_be_read_are_counted_and_told(tmp_path: Path) -> None:
    log = put(tmp_path / "audit.log", b"junk\n" + line("delete", "web") + b'{"shop ResponseComplete')
    found, unread = read_audit(str(log), SERVER, "shop", "web")
    assert len(found) == 1
    assert unread == [f"2 lines of the audit log {log} not readable as audit events"]


def test_a_line_without_an_end_in_sight_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podlife.diagnosis.audit_file._MOST_LINE_BYTES", 2000)
    log = put(tmp_path / "audit.log", b"{" * 100_000 + b"\n" + line("delete", "web"))
    found, unread = read_audit(str(log), SERVER, "shop", "web")
    assert (len(found), unread[0][:6]) == (1, "1 line")


def test_a_broken_sibling_is_told_and_a_missing_log_is_one_line(tmp_path: Path) -> None:
    log = put(tmp_path / "audit.log", line("delete", "web"))
    put(tmp_path / "audit.log.2.gz", gzip.compress(line("delete", "web"))[:-20])
    found, [unread] = read_audit(str(log), SERVER, "shop", "web")
    assert len(found) == 1
    assert unread.startswith(f"{tmp_path / 'audit.log.2.gz'}: ")
    with pytest.raises(ConfigError, match=r"cannot read the audit log .*: No such file or directory"):
        read_audit(str(tmp_path / "absent"), SERVER, "shop", "web")


def test_the_log_of_the_cluster_on_this_machine_is_found_by_its_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    url, folder = "https://127.0.0.1:7443", tmp_path / "data"
    (folder / "audit").mkdir(parents=True)
    log = put(folder / "audit" / "audit.log", b"")
    put(folder / "admin.kubeconfig", f"server: {url}\n".encode())
    origin = f"context 'x' in {folder / 'admin.kubeconfig'}"
    assert find_own_log(Connection(url, origin=origin)) == str(log)
    assert find_own_log(Connection("https://10.0.0.1:6443", origin=origin)) == ""
    assert find_own_log(Connection(url)) == ""
    folder.rename(tmp_path / "moved")
    (tmp_path / "share").mkdir()
    (tmp_path / "moved").rename(tmp_path / "share" / "podlife")
    assert find_own_log(Connection(url)) == str(tmp_path / "share" / "podlife" / "audit" / "audit.log")


def test_a_log_that_was_not_named_and_cannot_be_read_is_only_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podlife.cli.commands.explain.audit.find_own_log", lambda connection: str(tmp_path))
    found, [unread] = read_audit(None, SERVER, "shop", "web")
    assert found == []
    assert unread == f"cannot read the audit log {tmp_path}: Is a directory"


def test_a_log_is_followed_from_its_end_over_a_rotation(tmp_path: Path) -> None:
    log = put(tmp_path / "audit.log", line("delete", "old"))
    tail = AuditTail(log)
    assert tail.poll() == []
    whole = line("delete", "web")
    with log.open("ab") as file:
        file.write(whole + whole[:50])
    assert [each.name for each in tail.poll()] == ["web"]
    with log.open("ab") as file:
        file.write(whole[50:])
    assert [each.name for each in tail.poll()] == ["web"]
    log.rename(tmp_path / "audit-1.log")
    assert tail.poll() == []
    put(log, line("delete", "next"))
    assert [each.name for each in tail.poll()] == ["next"]


def test_a_log_that_is_not_there_yet_is_followed_from_its_beginning(tmp_path: Path) -> None:
    tail = AuditTail(tmp_path / "audit.log")
    assert tail.poll() == []
    put(tmp_path / "audit.log", line("delete", "web"))
    assert [each.name for each in tail.poll()] == ["web"]


def test_of_a_flood_between_two_looks_the_end_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = line("delete", "web")
    monkeypatch.setattr("podlife.localcluster.cluster_state._MOST_LOG_BYTES", 3 * len(one) + 10)
    log = put(tmp_path / "audit.log", b"")
    tail = AuditTail(log)
    put(log, one * 100)
    assert len(tail.poll()) == 3
