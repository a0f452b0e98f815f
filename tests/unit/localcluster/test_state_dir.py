"""The folder of `podlife up`: one at a time, of this format, and nobody is taken for another."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from podlife.errors import ConfigError
from podlife.localcluster.state_dir import Holder, StateDir, age_seconds, choose_state_dir, started_at


def test_what_it_makes_is_for_its_owner_alone(tmp_path: Path) -> None:
    folder = StateDir(tmp_path / "data")
    folder.claim()
    folder.record_holder("https://127.0.0.1:1")
    made = [folder.path, *folder.path.rglob("*")]
    assert {stat.S_IMODE(each.stat().st_mode) & 0o077 for each in made} == {0}


def test_a_folder_that_is_held_is_refused_with_who_holds_it(tmp_path: Path) -> None:
    first = StateDir(tmp_path)
    first.claim()
    first.record_holder("https://127.0.0.1:1")
    with pytest.raises(ConfigError, match=f"process {os.getpid()}: `podlife down"):
        StateDir(tmp_path).claim()


def test_a_file_in_its_place_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="it is a file; name another with --data"):
        StateDir(tmp_path / "file").claim()


def test_a_folder_of_another_format_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "up.json").write_text(json.dumps({"pid": 0, "started": 0, "version": "9.9", "format": 2}))
    with pytest.raises(ConfigError, match=r"written by podlife 9\.9 in another format"):
        StateDir(tmp_path).claim()


def test_one_who_has_ended_is_not_alive_but_its_format_is_known(tmp_path: Path) -> None:
    folder = StateDir(tmp_path)
    folder.claim()
    folder.record_holder("https://127.0.0.1:1")
    holder = folder.holder()
    assert holder is not None
    assert holder.is_alive
    folder.clear_holder()
    after = folder.holder()
    assert after is not None
    assert not after.is_alive
    assert after.format == holder.format


def test_a_process_that_has_the_number_by_now_is_another(tmp_path: Path) -> None:
    assert not Holder(os.getpid(), started_at(os.getpid()) - 1).is_alive
    assert not Holder(os.getpid(), 0).is_alive


def test_a_process_that_has_ended_but_was_not_waited_for_has_ended() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert started_at(child.pid) == 0
    assert started_at(child.pid) == 0


def test_the_age_of_this_process_is_no_more_than_that_of_its_machine() -> None:
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    assert 0 < age_seconds() <= uptime


def test_state_that_cannot_be_read_is_nobodys(tmp_path: Path) -> None:
    (tmp_path / "up.json").write_text("{")
    assert StateDir(tmp_path).holder() is None


def test_a_log_that_is_too_long_becomes_the_older_one_while_its_writer_goes_on(tmp_path: Path) -> None:
    folder = StateDir(tmp_path)
    folder.claim()
    log = folder.log("node-0")
    writer = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(writer, b"old\n" * 10)
        folder.trim_logs(most_bytes=20)
        os.write(writer, b"new\n")
    finally:
        os.close(writer)
    assert log.read_text() == "new\n"
    older = tmp_path / "logs" / "node-0.log.1"
    assert older.read_text() == "old\n" * 10
    assert stat.S_IMODE(older.stat().st_mode) == 0o600


def test_a_command_is_about_the_cluster_that_kubectl_uses_even_if_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "default"))
    killed = StateDir(tmp_path / "killed")
    killed.path.mkdir()
    # No process has this number and this moment.
    (killed.path / "up.json").write_text(json.dumps({"pid": 1, "started": 1, "url": ""}))
    monkeypatch.setenv("KUBECONFIG", f"{killed.kubeconfig}{os.pathsep}/elsewhere")
    assert choose_state_dir(None).path == killed.path


def test_the_token_of_the_page_is_kept_and_private(tmp_path: Path) -> None:
    token = StateDir(tmp_path).page_token()
    assert (len(token), StateDir(tmp_path).page_token()) == (32, token)
    assert (tmp_path / "ui.token").stat().st_mode & 0o777 == 0o600
    (tmp_path / "ui.token").write_bytes(b"\xff short")
    assert StateDir(tmp_path).page_token() not in ("", token)
