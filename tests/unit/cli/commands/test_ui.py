"""`podlife ui`: what it refuses before anything is connected to, each in one line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Refused, Run

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
"""


@pytest.fixture(autouse=True)
def kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::"])
def test_beyond_this_machine_it_needs_a_certificate(run: Run, host: str) -> None:
    said = run("ui", "--bind", host)
    assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)
    assert "without TLS" in said.err


def test_a_certificate_needs_its_key_and_both_must_be_readable(run: Run, tmp_path: Path) -> None:
    assert "need each other" in run("ui", "--tls-cert-file", "x").err
    said = run("ui", "--tls-cert-file", str(tmp_path / "none"), "--tls-private-key-file", "k")
    assert "No such file" in said.err
    (tmp_path / "bad").write_text("bad")
    said = run(
        "ui", "--tls-cert-file", str(tmp_path / "bad"), "--tls-private-key-file", str(tmp_path / "bad")
    )
    assert (said.code, said.err.count("\n")) == (1, 1)


def test_a_server_that_is_not_there_is_said(run: Run) -> None:
    said = run("ui", "--request-timeout", "2s")
    assert (said.code, said.out) == (1, "")
    assert "127.0.0.1:9" in said.err


def test_an_address_that_is_none_and_a_log_that_is_not_there_are_refused_at_once(refused: Refused) -> None:
    assert "invalid --bind address 'nonsense'" in refused("ui", "--bind", "nonsense", "--replay", "none")
    assert "cannot read the audit log none" in refused("ui", "--audit-log", "none")


def test_recording_and_replaying_exclude_each_other(refused: Refused) -> None:
    assert "--record and --replay" in refused("ui", "--record", "a", "--replay", "b")


@pytest.mark.parametrize("content", [None, b"", b"text", gzip.compress(b"{}\n", mtime=0)])
def test_a_file_that_is_not_a_recording_is_refused(run: Run, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "r.gz"
    if content is not None:
        path.write_bytes(content)
    said = run("ui", "--replay", str(path))
    assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)
    assert f"cannot replay {path}" in said.err
