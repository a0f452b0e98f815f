"""The programs as envtest starts them: processes, their health URLs, their users, their end."""

from __future__ import annotations

import contextlib
import json
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podlife.clock import SystemClock
from podlife.envtest import default_folder, write_assets
from podlife.errors import ConfigError
from podlife.pki import CertificateAuthority, Subject
from tests.kit.real_parts import free_port

SECONDS = 60.0


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("it's an assets folder")
    write_assets(folder)
    return folder


@contextlib.contextmanager
def running(*command: str | Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def get(url: str, context: ssl.SSLContext | None = None) -> tuple[int, bytes]:
    """The answer, as soon as somebody listens."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=SECONDS, context=context) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError) or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


@pytest.mark.parametrize("program", ["etcd", "kube-apiserver"])
def test_help_is_an_answer_without_the_flags_that_envtest_would_pass(assets: Path, program: str) -> None:
    shown = subprocess.run([assets / program, "--help"], capture_output=True, text=True, timeout=SECONDS)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "--insecure-port" not in shown.stdout


def test_etcd_is_healthy_until_it_is_told_to_stop(assets: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    flags = [f"--listen-client-urls={url}", f"--advertise-client-urls={url}", "--data-dir=/nowhere"]
    with running(assets / "etcd", *flags) as etcd:
        assert get(f"{url}/health") == (200, b'{"health":"true","reason":""}')
        assert get(f"{url}/v3/kv/range")[0] == 404
        etcd.send_signal(signal.SIGTERM)
        assert etcd.wait(SECONDS) == -signal.SIGTERM


@pytest.mark.parametrize("url", ["https://127.0.0.1:1", "nonsense", "http://192.0.2.1:70000"])
def test_etcd_refuses_in_one_line_what_it_cannot_listen_on(assets: Path, url: str) -> None:
    done = subprocess.run(
        [assets / "etcd", "--listen-client-urls", url], capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 1
    assert done.stderr.startswith("etcd: ")
    assert done.stderr.count("\n") == 1


class Pki:
    """Certificates as envtest makes them: the server's and the clients' by different authorities."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._server, self.clients = (
            CertificateAuthority(folder / name, SystemClock()) for name in ("server", "clients")
        )
        self._server.ensure_authority()
        self.clients.ensure_authority()
        pair = self._server.issue(Subject("kube-apiserver", names=("127.0.0.1", "localhost")))
        (folder / "apiserver.crt").write_bytes(pair.certificate)
        (folder / "apiserver.key").write_bytes(pair.key)

    def context(self, *user: Any, authority: CertificateAuthority | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._server.authority_file))
        if user:
            context.load_cert_chain((authority or self.clients).ensure(f"{user[0]}.pem", Subject(*user)))
        return context


def test_the_api_server_knows_users_by_certificates_of_the_given_ca(assets: Path, tmp_path: Path) -> None:
    pki, port = Pki(tmp_path), free_port()
    flags = [
        *(f"--secure-port={port}", "--bind-address=127.0.0.1", f"--cert-dir={tmp_path}"),
        *(f"--client-ca-file={pki.clients.authority_file}", "--feature-gates=A=true"),
    ]
    url = f"https://127.0.0.1:{port}"
    with running(assets / "kube-apiserver", *flags) as server:
        assert get(f"{url}/healthz", pki.context()) == (200, b"ok")
        assert get(f"{url}/api/v1/namespaces", pki.context())[0] == 401
        assert get(f"{url}/api/v1/namespaces", pki.context("jane", ("people",)))[0] == 403
        admin = pki.context("default", ("system:masters",))
        code, body = get(f"{url}/api/v1/namespaces/kube-system/configmaps", admin)
        assert code == 200
        [published] = json.loads(body)["items"]
        assert published["data"] == {"client-ca-file": pki.clients.authority_file.read_text()}
        other = CertificateAuthority(tmp_path / "other", SystemClock())
        stranger = pki.context("stranger", ("system:masters",), authority=other)
        with pytest.raises(OSError, match=r"unknown ca|reset|closed connection"):
            get(f"{url}/api/v1/namespaces", stranger)
        server.send_signal(signal.SIGTERM)
        output, errors = server.communicate(timeout=SECONDS)
    assert (server.returncode, output) == (0, f"serving on {url}\n")
    assert errors == "podlife: --feature-gates=A=true has no effect\n"


def test_missing_certificates_are_one_line(assets: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [assets / "kube-apiserver", "--cert-dir", tmp_path, "--secure-port=0"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"podlife: cannot use the certificates in {tmp_path}/apiserver.crt")
    assert done.stderr.count("\n") == 1


def test_the_folder_is_kept_per_installation_and_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = default_folder()
    assert folder.parent == tmp_path / "podlife" / "envtest"
    write_assets(folder)
    before = {path: path.lstat().st_ino for path in folder.iterdir()}
    write_assets(folder)
    assert {path: path.lstat().st_ino for path in folder.iterdir()} == before
    monkeypatch.setattr(sys, "prefix", "/elsewhere")
    assert default_folder() != folder


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"^cannot write .*/file/assets: Not a directory$"):
        write_assets(tmp_path / "file" / "assets")
