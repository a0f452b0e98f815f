"""Audit log of a server that is started with kube-apiserver's flags."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.component.apiserver.requests import PODS
from tests.component.apiserver.test_server import server
from tests.kit import objects


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_was_asked_is_in_a_private_file_once_the_server_has_ended(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "audit.log"
    with server("--data", str(tmp_path / "data"), "--port", "0", "--audit-log-path", str(log)) as process:
        process.request(PODS, method="POST", body=objects.pod())
        assert process.request(f"{PODS}/web")[0] == 200
        assert process.request(f"{PODS}/web", method="DELETE")[0] == 200
        metrics = process.request("/metrics")[1].decode()
        # Requests without credentials cannot fill the log, even if the body still arrives when they are refused.
        for size in (1, 500_000):
            assert process.request(PODS, identity="", method="POST", body={"data": "x" * size})[0] == 401
        assert process.request("/healthz", identity="", method="POST")[0] in (200, 401, 405)
        assert process.stop() == 0
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert "apiserver_audit_event_total 2" in metrics
    assert all(each["user"] for each in events(log))
    created, deleted = (each for each in events(log) if each.get("objectRef", {}).get("resource") == "pods")
    assert (created["verb"], created["level"]) == ("create", "Metadata")
    assert (deleted["verb"], deleted["level"]) == ("delete", "Request")
    assert deleted["objectRef"]["name"] == "web"
    assert deleted["user"]["username"] == "admin"
    assert deleted["sourceIPs"] == ["127.0.0.1"]
    assert deleted["userAgent"].startswith("Python-urllib")


def test_a_policy_of_ones_own_records_requests_without_credentials_as_upstream_does(tmp_path: Path) -> None:
    log, policy = tmp_path / "audit.log", tmp_path / "policy.yaml"
    policy.write_text(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, verbs: [create]}]\n"
    )
    flags = ("--audit-log-path", str(log), "--audit-policy-file", str(policy))
    with server("--data", str(tmp_path / "data"), "--port", "0", *flags) as process:
        assert process.request(PODS, identity="", method="POST", body={"data": "x" * 500_000})[0] == 401
        assert process.stop() == 0
    (stranger,) = (each for each in events(log) if not each["user"])
    assert (stranger["verb"], stranger["responseStatus"]["code"]) == ("create", 401)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--audit-policy-file", "policy.yaml"], "--audit-policy-file needs --audit-log-path"),
        (["--audit-policy-file", "policy.yaml", "--audit-log-path", "log"], "rules[0].level"),
        (["--audit-log-path", "log", "--audit-log-maxsize", "0"], "--audit-log-maxsize"),
    ],
)
def test_a_log_that_cannot_be_written_is_one_line_and_no_server(
    tmp_path: Path, flags: list[str], message: str
) -> None:
    (tmp_path / "policy.yaml").write_text(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: All}]\n"
    )
    command = [sys.executable, "-P", "-m", "podlife", "apiserver", "--data", str(tmp_path / "data")]
    ended = subprocess.run(
        [*command, "--port", "0", *flags],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode != 0
    assert message in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
