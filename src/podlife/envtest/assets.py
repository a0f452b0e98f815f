"""Writes the programs that envtest looks for in KUBEBUILDER_ASSETS."""

from __future__ import annotations

import hashlib
import os
import secrets
import shlex
import shutil
import sys
from pathlib import Path

from podlife.envtest import etcd
from podlife.errors import ConfigError

_KUBECTL = "kubectl"


def default_folder() -> Path:
    """A folder in the user's cache, one per installation of podlife: a test run of one must not start another."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "podlife" / "envtest" / hashlib.sha256(sys.prefix.encode()).hexdigest()[:12]


def write_assets(folder: Path) -> None:
    """Write `etcd` and `kube-apiserver`, and a link to kubectl if there is one on PATH; raises ConfigError."""
    # -I -S: no environment and no site-packages, which takes half of the time. -P: nothing from the working directory.
    commands = {
        "etcd": [sys.executable, "-I", "-S", etcd.__file__],
        "kube-apiserver": [sys.executable, "-P", "-m", "podlife.cli.envtest_exec"],
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, command in commands.items():
            _write(folder / name, f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        kubectl, link = shutil.which(_KUBECTL), folder / _KUBECTL
        if kubectl is not None and not link.exists():
            link.unlink(missing_ok=True)
            link.symlink_to(Path(kubectl).absolute())
    except OSError as error:
        raise ConfigError(f"cannot write {error.filename or folder}: {error.strerror}") from error


def _write(path: Path, script: str) -> None:
    """Atomically, and only if it changed: a test may be about to start it."""
    if path.is_file() and path.read_text() == script and os.access(path, os.X_OK):
        return
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    partial.write_text(script)
    partial.chmod(0o755)
    partial.replace(path)
