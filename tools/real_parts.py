"""The real parts that the tests and the benchmarks run against: found, or made once per machine.

`find` looks where envtest looks (KUBEBUILDER_ASSETS), then on PATH, then in the user's cache. `python
tools/real_parts.py` makes what is missing: built from the Go modules beside this file, or unpacked from Debian's
packages: containerd and its company always, etcd where there is no Go. Chromium needs many libraries: as root, it is
installed as a package. Nothing is ever put into the checkout. Needs only the standard library, since it runs before
anything is installed. A part appears in the cache whole or not at all, and two runs at once build once.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["PARTS", "PartsError", "cache_folder", "find", "prepare"]

MODULE = Path(__file__).parent / "real-parts"
ETCD_MODULE = MODULE / "etcd"
KWOK_MODULE = MODULE / "kwok"
CONFORMANCE_MODULE = MODULE / "conformance"
CONTROLLER_RUNTIME_MODULE = MODULE / "controller-runtime"
# Evaluates CEL as kube-apiserver does: a program of ours on upstream's libraries.
CEL = "cel-upstream"
CEL_SOURCE = MODULE / "cel" / "main.go"
# Programs of Debian's packages, and where they lie in them. Those of CNI have names that others have on PATH, and a
# busybox that is not static cannot stand alone in an image: these are never taken from there.
DEBIAN = {
    "containerd": ("containerd", "usr/bin/containerd"),
    "containerd-shim-runc-v2": ("containerd", "usr/bin/containerd-shim-runc-v2"),
    "ctr": ("containerd", "usr/bin/ctr"),
    "runc": ("runc", "usr/sbin/runc"),
    "cni-bridge": ("containernetworking-plugins", "usr/lib/cni/bridge"),
    "cni-host-local": ("containernetworking-plugins", "usr/lib/cni/host-local"),
    "cni-loopback": ("containernetworking-plugins", "usr/lib/cni/loopback"),
    "busybox-static": ("busybox-static", "bin/busybox"),
}
# Kubernetes' conformance suite, its runner, and programs of its images.
CONFORMANCE = ("e2e.test", "ginkgo", "agnhost", "sample-apiserver")
# controller-runtime's own suites, by the package they test. They run against the programs of KUBEBUILDER_ASSETS.
SUITES = {
    f"controller-runtime-{package.replace('/', '-')}.test": package
    for package in (
        *(
            "builder",
            "cache",
            "client",
            "client/apiutil",
            "cluster",
            "controller",
            "controller/controllerutil",
        ),
        *("envtest", "handler", "internal/controller", "internal/recorder", "internal/testing/controlplane"),
        *("manager", "manager/internal/integration", "metrics/filters", "reconcile", "source", "webhook"),
    )
}
# Those that are run with every change; `make ecosystem` makes and runs the others.
_USUAL_SUITES = tuple(
    f"controller-runtime-{name}.test" for name in ("client", "controller", "envtest", "webhook")
)
KUBERNETES = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
# Software that others run on Kubernetes, each of a module of its own and of exactly that version.
ECOSYSTEM = {name: MODULE / name for name in ("helm", "cert-manager", "descheduler")}
BROWSER = "chromium"
PARTS = (*KUBERNETES, CEL, *ECOSYSTEM, *DEBIAN, BROWSER, *CONFORMANCE, *_USUAL_SUITES)
# A cold build takes about 25 minutes on two cores; a machine that needs longer than this has another problem.
BUILD_SECONDS = 3600
VERSION_PACKAGE = "k8s.io/component-base/version"


class PartsError(Exception):
    """A part cannot be made here. The text is one line that says what to do."""


def kubernetes_version() -> str:
    """`v1.36.3`: what go.mod asks for."""
    match = re.search(r"^require k8s\.io/kubernetes (v\S+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise PartsError(f"{MODULE / 'go.mod'} does not require k8s.io/kubernetes")
    return match[1]


def cache_folder() -> Path:
    """Where this machine keeps the parts of exactly these versions."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    locks = [module / name for module in (MODULE, ETCD_MODULE) for name in ("go.mod", "go.sum")]
    sums = hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()
    key = f"{kubernetes_version()}-{platform.machine()}-{sums[:12]}"
    return home / "podlife" / "real-parts" / key / "bin"


def _folder_of(part: str) -> Path:
    """What has a module of its own, CEL and Debian's programs have separate folders: a new version of one rebuilds no
    other."""
    if part in DEBIAN:
        return cache_folder().parent.parent / f"debian-{platform.machine()}" / "bin"
    if part == CEL:
        key = f"cel-{cache_folder().parent.name}-{hashlib.sha256(CEL_SOURCE.read_bytes()).hexdigest()[:12]}"
        return cache_folder().parent.parent / key / "bin"
    module = _module_of(part)
    if module in (MODULE, ETCD_MODULE):
        return cache_folder()
    inputs = (module / name for name in ("go.mod", "go.sum", "main.go"))
    locks = b"".join(each.read_bytes() for each in inputs if each.exists())
    key = f"{module.name}-{platform.machine()}-{hashlib.sha256(locks).hexdigest()[:12]}"
    return cache_folder().parent.parent / key / "bin"


def find(part: str) -> Path | None:
    """The program, or None. KUBEBUILDER_ASSETS is a choice; what merely lies on PATH must be recent."""
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):
        chosen = Path(assets) / part
        if os.access(chosen, os.X_OK):
            return chosen
    is_ours = part in CONFORMANCE or part in SUITES or part in ECOSYSTEM
    if not is_ours and (on_path := shutil.which(part)) is not None and _is_recent(part, on_path):
        return Path(on_path)
    cached = _folder_of(part) / part
    return cached if os.access(cached, os.X_OK) else None


def _is_recent(part: str, program: str) -> bool:
    """The tests compare with one minor version of Kubernetes: programs of another answer otherwise."""
    if part in ("etcd", "kwok", CEL, BROWSER) or part in DEBIAN:
        return True
    arguments = ["version", "--client", "-o", "json"] if part == "kubectl" else ["--version"]
    try:
        shown = subprocess.run(
            [program, *arguments], check=False, capture_output=True, text=True, timeout=30
        ).stdout
        text = json.loads(shown)["clientVersion"]["gitVersion"] if part == "kubectl" else shown
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError):
        return False
    found, wanted = _minor(text), _minor(kubernetes_version())
    return found >= wanted if part == "kubectl" else found == wanted


def _minor(text: str) -> tuple[int, int]:
    match = re.search(r"v(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def prepare(parts: Sequence[str] = PARTS) -> None:
    """Put every missing part into the cache; raises PartsError when one cannot be made."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(cache_folder()):
        for part in parts:
            # Asked again under the lock, and after every part: somebody, or another part, may have brought it along.
            if find(part) is not None:
                continue
            started = time.monotonic()
            if part == BROWSER:
                _install_browser()
                continue
            folder = _folder_of(part)
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as scratch:
                for name, made in _make(part, Path(scratch)).items():
                    made.chmod(0o755)
                    made.rename(folder / name)
            _say(f"{part} is ready after {time.monotonic() - started:.0f} s")


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    with (folder.parent / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another run is making the parts, waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(part: str, scratch: Path) -> dict[str, Path]:
    """The part, and whatever else comes with it."""
    if part in DEBIAN:
        package = DEBIAN[part][0]
        unpacked = _unpack(part, package, scratch)
        return {name: unpacked / path for name, (other, path) in DEBIAN.items() if other == package}
    # Debian's etcd is too old for some of what kube-apiserver offers (streaming lists), so it comes second.
    if part == "etcd" and shutil.which("go") is None:
        return {part: _unpack(part, "etcd-server", scratch) / "usr" / "bin" / "etcd"}
    return {part: _build(part, scratch)}


def _install_browser() -> None:
    """Without it only the tests of the page are skipped, so that a user who may not install packages has the rest."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        _say(f"{BROWSER} is missing, and the tests of the page need it: install it, or put one on PATH")
        return
    _say(f"installing Debian's package {BROWSER}")
    install = ["apt-get", "install", "--yes", "--no-install-recommends", BROWSER]
    if _run(install, cwd=MODULE, seconds=900) != "":
        _run(["apt-get", "update"], cwd=MODULE, seconds=300)
        if failure := _run(install, cwd=MODULE, seconds=900):
            _say(f"apt-get could not install {BROWSER}: {failure}")


def _unpack(part: str, package: str, scratch: Path) -> Path:
    """A folder with what is in Debian's package."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise PartsError(f"{part} is missing and there is no apt-get to fetch it: put one on PATH")
    _say(f"fetching {part} out of Debian's package {package}")
    fetch = ["apt-get", "download", package]
    if _run(fetch, cwd=scratch, seconds=300) != "":
        # Fresh images come with empty package lists.
        if os.geteuid() != 0:
            raise PartsError(
                f"apt-get could not download {package}: run `apt-get update` as root, or put {part} on PATH"
            )
        _run(["apt-get", "update"], cwd=scratch, seconds=300)
        if failure := _run(fetch, cwd=scratch, seconds=300):
            raise PartsError(f"apt-get could not download {package}: {failure}")
    archive = next(scratch.glob(f"{package}_*.deb"))
    if failure := _run(["dpkg-deb", "-x", str(archive), str(scratch / "unpacked")], cwd=scratch, seconds=60):
        raise PartsError(f"dpkg-deb could not unpack {archive.name}: {failure}")
    return scratch / "unpacked"


def _build(part: str, scratch: Path) -> Path:
    if shutil.which("go") is None:
        raise PartsError(
            f"{part} is missing and there is no Go to build it: install Go, or set KUBEBUILDER_ASSETS"
        )
    _say(f"building {part} from source; the first of them takes some minutes")
    if failure := _run(build_command(part, scratch / part), cwd=_module_of(part), seconds=BUILD_SECONDS):
        raise PartsError(f"go could not build {part}: {failure}")
    return scratch / part


def _module_of(part: str) -> Path:
    modules = {
        "etcd": ETCD_MODULE,
        "kwok": KWOK_MODULE,
        **dict.fromkeys(CONFORMANCE, CONFORMANCE_MODULE),
        **dict.fromkeys(SUITES, CONTROLLER_RUNTIME_MODULE),
        **ECOSYSTEM,
    }
    return modules.get(part, MODULE)


def build_command(part: str, output: Path) -> list[str]:
    """The version is linked in, as the release does it: clients decide by what /version says."""
    version = kubernetes_version()
    major, minor = _minor(version)
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    flags = " ".join(["-s -w", *(f"-X {VERSION_PACKAGE}.{name}={value}" for name, value in stamps.items())])
    verb = ["test", "-c", "-vet=off"] if part.endswith(".test") else ["build"]
    command = ["go", *verb, "-mod=readonly", "-trimpath", "-ldflags", flags]
    elsewhere = {
        "etcd": "go.etcd.io/etcd/server/v3",
        "kwok": "sigs.k8s.io/kwok/cmd/kwok",
        "e2e.test": "k8s.io/kubernetes/test/e2e",
        "ginkgo": "github.com/onsi/ginkgo/v2/ginkgo",
        "agnhost": "k8s.io/kubernetes/test/images/agnhost",
        "sample-apiserver": "k8s.io/sample-apiserver",
        "helm": "helm.sh/helm/v4/cmd/helm",
        "cert-manager": ".",
        "descheduler": "sigs.k8s.io/descheduler/cmd/descheduler",
        CEL: "./cel",
        **{name: f"sigs.k8s.io/controller-runtime/pkg/{package}" for name, package in SUITES.items()},
    }
    package = elsewhere.get(part, f"k8s.io/kubernetes/cmd/{part}")
    return [*command, "-o", str(output), package]


def _run(command: list[str], *, cwd: Path, seconds: float) -> str:
    """Empty when it went well, otherwise the last line that the program said."""
    environment = {
        **os.environ,
        "GOFLAGS": "",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
        "DEBIAN_FRONTEND": "noninteractive",
    }
    try:
        done = subprocess.run(
            command,
            check=False,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {seconds:.0f} s"
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    return lines[-1] if lines else f"{command[0]} ended with {done.returncode}"


def _say(line: str) -> None:
    print(f"real-parts: {line}", file=sys.stderr, flush=True)


def main() -> int:
    try:
        prepare()
    except PartsError as error:
        _say(str(error))
        # The tests that need the part skip themselves on a developer's machine, and fail in CI: so does this.
        return 1 if os.environ.get("CI") == "true" else 0
    except KeyboardInterrupt:
        return 130
    for part in PARTS:
        print(f"{part:24} {find(part)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
