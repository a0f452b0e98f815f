"""Starts and stops the real parts: etcd, kube-apiserver, kube-controller-manager, kubectl, and podlife's server.

Every part listens on free loopback ports, keeps its files in the caller's folder and is stopped when its `with` block
is left, even by an exception. A part that is not ready in time raises with the end of its log. This module does not
depend on pytest: the benchmarks and the schema generator use it, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import importlib.util
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType

import yaml

from tests.kit.real_pki import Pki

ROOT = Path(__file__).resolve().parents[2]
# Time limits, generous because the machine may be busy.
READY_SECONDS = 180.0
END_SECONDS = 60.0

TOKENS = {
    "admin": ("admin-token", "admin", "system:masters"),
    "nobody": ("nobody-token", "nobody", "people"),
    "node-a": ("node-a-token", "system:node:node-a", "system:nodes"),
    "node-b": ("node-b-token", "system:node:node-b", "system:nodes"),
}
"""Token, user and group of the servers' users, by their name in tests."""


# As in podlife's server: anonymous requests are only allowed for health checks.
_ANONYMOUS_HEALTH = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions: [{path: /healthz}, {path: /livez}, {path: /readyz}]
"""


class MissingPartError(Exception):
    """A real part is not installed."""


class NotReadyError(Exception):
    """A part was not ready in time; the message has the end of its log."""


def tools() -> ModuleType:
    """`tools/real_parts.py`, which is a script outside of any package."""
    spec = importlib.util.spec_from_file_location("podlife_real_parts", ROOT / "tools" / "real_parts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def part(name: str) -> Path:
    """The path of a program, as found by `tools/real_parts.py`; raises MissingPartError."""
    program: Path | None = tools().find(name)
    if program is None:
        raise MissingPartError(f"{name} is missing: run `make real-parts`, or set KUBEBUILDER_ASSETS")
    return program


@dataclass(frozen=True)
class Server:
    """A running API server. `kubeconfig` is the admin's; `log` is its output."""

    host: str
    port: int
    ca_file: Path
    kubeconfig: Path
    folder: Path
    pid: int
    log: Path
    tokens: Mapping[str, str]
    pki: Pki | None = None
    etcd_url: str = ""
    etcd_pid: int = 0

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"

    def compact(self, revision: str) -> None:
        """Compact etcd's history before a revision."""
        body = json.dumps({"revision": revision, "physical": True}).encode()
        request = urllib.request.Request(f"{self.etcd_url}/v3/kv/compaction", body)
        urllib.request.urlopen(request, timeout=END_SECONDS).close()

    def kubeconfig_for(self, who: str) -> Path:
        """A kubeconfig of mode 0600 with the token of one of TOKENS."""
        return write_kubeconfig(self.folder / f"{who}.kubeconfig", self, {"token": self.tokens[who]})

    def kubeconfig_with_certificate(self, user: str, *groups: str) -> Path:
        """A kubeconfig with a client certificate that this server trusts."""
        assert self.pki is not None
        certificate, key = self.pki.issue_client(user, *groups)
        user_entry = {"client-certificate": str(certificate), "client-key": str(key)}
        return write_kubeconfig(self.folder / f"{user}-certificate.kubeconfig", self, user_entry)


def write_kubeconfig(path: Path, server: Server, user: Mapping[str, object]) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "test", "cluster": {"server": server.url, "certificate-authority": str(server.ca_file)}}
        ],
        "users": [{"name": "test", "user": dict(user)}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path


@dataclass(frozen=True)
class Settings:
    """Settings of kube-apiserver that tests override."""

    flags: Sequence[str] = ()
    etcd_flags: Sequence[str] = ()
    disabled_admission: Sequence[str] = ("ServiceAccount",)
    ready_seconds: float = READY_SECONDS
    tokens: Mapping[str, tuple[str, str, str]] = field(default_factory=lambda: dict(TOKENS))


@contextmanager
def kube_apiserver(folder: Path, settings: Settings | None = None) -> Iterator[Server]:
    """A ready kube-apiserver with its own etcd; RBAC, tokens and client certificates."""
    settings = settings or Settings()
    program = part("kube-apiserver")
    folder.mkdir(parents=True, exist_ok=True)
    pki = Pki(folder / "pki")
    certificate, key = pki.issue_server()
    kubelet_certificate, kubelet_key = pki.issue_client("kube-apiserver-kubelet-client", "system:masters")
    token_file = folder / "tokens.csv"
    write_token_file(token_file, settings.tokens)
    authentication = folder / "authentication.yaml"
    authentication.write_text(_ANONYMOUS_HEALTH)
    with _etcd(folder / "etcd", settings.etcd_flags) as (etcd_url, etcd_pid):
        port = free_port()
        flags = [
            f"--etcd-servers={etcd_url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={pki.ca_file}",
            f"--kubelet-client-certificate={kubelet_certificate}",
            f"--kubelet-client-key={kubelet_key}",
            f"--token-auth-file={token_file}",
            f"--authentication-config={authentication}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--disable-admission-plugins={','.join(settings.disabled_admission)}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki.service_account_key}",
            f"--service-account-signing-key-file={pki.service_account_key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            # The endpoints that the server maintains for itself must not have a loopback address.
            "--endpoint-reconciler-type=none",
            *settings.flags,
        ]
        log = folder / "kube-apiserver.log"
        with _process([str(program), *flags], log) as process:
            server = replace(
                _server(folder, port, pki, process, log, settings), etcd_url=etcd_url, etcd_pid=etcd_pid
            )
            _wait_until(lambda: is_ready(server), process, log, settings.ready_seconds)
            yield server


def _server(
    folder: Path, port: int, pki: Pki, process: subprocess.Popen[bytes], log: Path, settings: Settings
) -> Server:
    server = Server(
        host="127.0.0.1",
        port=port,
        ca_file=pki.ca_file,
        kubeconfig=folder / "admin.kubeconfig",
        folder=folder,
        pid=process.pid,
        log=log,
        tokens={who: token for who, (token, _, _) in settings.tokens.items()},
        pki=pki,
    )
    write_kubeconfig(server.kubeconfig, server, {"token": server.tokens["admin"]})
    return server


@contextmanager
def _etcd(folder: Path, flags: Sequence[str]) -> Iterator[tuple[str, int]]:
    folder.mkdir(parents=True, exist_ok=True)
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    log = folder / "etcd.log"
    command = [
        str(part("etcd")),
        f"--data-dir={folder / 'data'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        *flags,
    ]
    with _process(command, log) as process:
        _wait_until(lambda: _responds(f"{client}/health"), process, log, READY_SECONDS)
        yield client, process.pid


@contextmanager
def controller_manager(
    folder: Path, server: Server, controllers: Sequence[str], *flags: str
) -> Iterator[Path]:
    """kube-controller-manager with only these controllers, against any API server; yields its log.

    It uses JSON, so that it works with servers that do not support protobuf."""
    with controller_manager_process(folder, server, controllers, *flags):
        yield folder / "kube-controller-manager.log"


@contextmanager
def controller_manager_process(
    folder: Path, server: Server, controllers: Sequence[str], *flags: str
) -> Iterator[subprocess.Popen[bytes]]:
    """The same; yields its process."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "kube-controller-manager.log"
    port = free_port()
    command = [
        str(part("kube-controller-manager")),
        f"--kubeconfig={server.kubeconfig}",
        f"--controllers={','.join(controllers)}",
        "--kube-api-content-type=application/json",
        "--use-service-account-credentials=false",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        *flags,
    ]
    with _process(command, log) as process:
        _wait_until(lambda: _responds(f"https://127.0.0.1:{port}/healthz"), process, log, READY_SECONDS)
        yield process


@contextmanager
def running_part(name: str, *arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A part without a sign of readiness: the caller sees when it works."""
    with _process([str(part(name)), *arguments], log) as process:
        yield process


@contextmanager
def sample_apiserver(folder: Path, server: Server, certificate: tuple[Path, Path]) -> Iterator[int]:
    """Kubernetes' sample API server with its own etcd; `server` knows its users. Yields its port."""
    log = folder / "sample-apiserver.log"
    port = free_port()
    with _etcd(folder / "etcd", ()) as (etcd_url, _):
        command = [
            str(part("sample-apiserver")),
            f"--etcd-servers={etcd_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={certificate[0]}",
            f"--tls-private-key-file={certificate[1]}",
            *(
                f"--{flag}={server.kubeconfig}"
                for flag in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
            ),
        ]
        with _process(command, log) as process:
            _wait_until(lambda: _responds(f"https://127.0.0.1:{port}/readyz"), process, log, READY_SECONDS)
            yield port


@contextmanager
def podlife_apiserver(folder: Path, *flags: str) -> Iterator[Server]:
    """podlife's server, as a user starts it, with the same tokens as kube-apiserver."""
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = folder / "podlife-apiserver.log"
    port = free_port()
    command = [sys.executable, "-m", "podlife", "apiserver", "--data", str(data), "--port", str(port), *flags]
    with _process(command, log, {"PYTHONUNBUFFERED": "1"}) as process:
        kubeconfig = data / "admin.kubeconfig"
        _wait_until(kubeconfig.exists, process, log, READY_SECONDS)
        server = _own_server(folder, port, process.pid, log, kubeconfig)
        _wait_until(lambda: is_ready(server), process, log, READY_SECONDS)
        # The first start writes the file, and the server reloads it on change.
        write_token_file(data / "tokens.csv", TOKENS, keep=True)
        yield server


def _own_server(folder: Path, port: int, pid: int, log: Path, kubeconfig: Path) -> Server:
    ca_file = folder / "data" / "pki" / "ca.crt"
    tokens = {who: token for who, (token, _, _) in TOKENS.items()}
    return Server("127.0.0.1", port, ca_file, kubeconfig, folder, pid, log, tokens)


def write_token_file(path: Path, tokens: Mapping[str, tuple[str, str, str]], *, keep: bool = False) -> None:
    """The CSV file of kube-apiserver's --token-auth-file: token, user, uid and groups."""
    old = path.read_text() if keep and path.exists() else ""
    lines = [f'{token},{user},{user},"{group}"\n' for token, user, group in tokens.values()]
    path.touch(mode=0o600)
    path.write_text(old + "".join(lines))


def run_kubectl(
    *arguments: str, kubeconfig: Path, stdin: str | None = None, seconds: float = READY_SECONDS
) -> subprocess.CompletedProcess[str]:
    """kubectl with its own home next to the kubeconfig, so that servers do not share a cache."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(kubeconfig.parent), "KUBECONFIG": str(kubeconfig)}
    return subprocess.run(
        [str(part("kubectl")), *arguments],
        check=False,
        input=stdin,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def free_port() -> int:
    """A free loopback port that no other process gets by chance before its server binds it.

    It is not in the kernel's ephemeral range: any outgoing connection might get such a port, and a connection to it
    without a listener might even connect to itself."""
    while True:
        # Not `random`, which gives the same numbers to all processes with the same seed.
        port = secrets.choice(_ports())
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in _used_ports:
            _used_ports.add(port)
            return port


_used_ports: set[int] = set()


def _ports() -> range:
    try:
        first_ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        first_ephemeral = 32_768
    return range(10_000, max(first_ephemeral, 15_000))


def is_ready(server: Server) -> bool:
    return server.ca_file.exists() and _responds(f"{server.url}/readyz")


def _responds(url: str) -> bool:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=10, context=context) as response:
            return bool(response.status == 200)
    except (OSError, http.client.HTTPException):
        return False


def _wait_until(
    done: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, seconds: float
) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        if process.poll() is not None:
            raise NotReadyError(f"{log.stem} ended with {process.returncode}:\n{tail(log)}")
        if time.monotonic() > deadline:
            raise NotReadyError(f"{log.stem} was not ready after {seconds:.0f} s:\n{tail(log)}")
        time.sleep(0.05)


def tail(log: Path, lines: int = 30) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""


@contextmanager
def _process(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    # Its own session, so that Ctrl-C reaches only the tests, which stop their parts in order.
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            preexec_fn=_end_with_parent(),  # noqa: PLW1509 - one system call, takes no lock
        )
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes], seconds: float = END_SECONDS) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(seconds)


def _end_with_parent() -> Callable[[], None] | None:
    """On Linux, end a part even if the tests are killed.

    The kernel watches the forking thread, so only the main thread may use it."""
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    prctl = ctypes.CDLL(None).prctl
    set_parent_death_signal = 1

    def set_signal() -> None:
        prctl(set_parent_death_signal, signal.SIGKILL)

    return set_signal


def remove_quietly(folder: Path) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree(folder)
