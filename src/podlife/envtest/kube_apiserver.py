"""kube-apiserver's command line, as far as envtest and its users need it.

Flags of kube-apiserver v1.36 that podlife has no use for are accepted, with a note if a test could notice; a flag that
kube-apiserver does not have is refused in its words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from podlife.apiserver.settings import ApiServerSettings
from podlife.errors import ConfigError

# Flags that set something of the same kind here.
_SETTINGS = {
    "bind-address": "bind",
    "secure-port": "port",
    "tls-cert-file": "tls_cert_file",
    "tls-private-key-file": "tls_private_key_file",
    "client-ca-file": "client_ca_file",
    "default-not-ready-toleration-seconds": "not_ready_toleration_seconds",
    "default-unreachable-toleration-seconds": "unreachable_toleration_seconds",
    "audit-log-path": "audit_log_path",
    "audit-policy-file": "audit_policy_file",
    "audit-log-maxsize": "audit_log_max_mb",
    "audit-log-maxage": "audit_log_max_days",
    "audit-log-maxbackup": "audit_log_max_backups",
}
_CERT_DIR = "cert-dir"
# What envtest always passes, whose absence no test can notice.
_AS_PASSED = {
    "allow-privileged": ("true",),
    "authorization-mode": ("RBAC", "Node,RBAC"),
    "disable-admission-plugins": ("ServiceAccount",),
}
# Storage, logs, sizes and the like: nothing to see in a test.
_QUIET = (
    *("advertise-address", "endpoint-reconciler-type", "service-account-issuer", "service-account-key-file"),
    *("service-account-signing-key-file", "service-cluster-ip-range", "v", "vmodule", "watch-cache"),
    *("etcd-", "log", "max-", "profiling", "storage-"),
)

# All flags of kube-apiserver v1.36, by its --help: those that take a value with a `=`, the others are switches.
_FLAGS = frozenset(Path(__file__).with_name("kube_apiserver_flags.txt").read_text().split())

HELP = f"""\
kube-apiserver of `podlife envtest`: podlife's API server, with these flags of kube-apiserver's:

{chr(10).join(f"      --{name}" for name in sorted((*_SETTINGS, _CERT_DIR)))}

Its other flags are accepted and have no effect."""


def parse_flags(arguments: Sequence[str]) -> tuple[ApiServerSettings, list[str]]:
    """Return settings, and notes about flags without effect; raises ConfigError for what kube-apiserver refuses."""
    given = dict(_pairs(arguments))
    cert_dir = Path(given.pop(_CERT_DIR, ""))
    chosen: dict[str, Any] = {}
    notes = []
    for name, value in given.items():
        if name in _SETTINGS:
            chosen[_SETTINGS[name]] = value
        elif value not in _AS_PASSED.get(name, ()) and not name.startswith(_QUIET):
            notes.append(f"--{name}={value} has no effect")
    for field in fields(ApiServerSettings):
        if field.type == "int" and field.name in chosen:
            chosen[field.name] = _number(chosen[field.name])
    defaults = {
        "tls_cert_file": str(cert_dir / "apiserver.crt"),
        "tls_private_key_file": str(cert_dir / "apiserver.key"),
    }
    # Deleted namespaces stay Terminating, as beside kube-apiserver without controllers.
    return ApiServerSettings(**defaults | chosen, in_memory=True, cleans_namespaces=False), notes


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The flags in the forms `--name=value`, `--name value` and, for switches, `--name`."""
    words = iter(arguments)
    for word in words:
        name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
        if not word.startswith("-") or not name:
            raise ConfigError(f'unknown command "{word}" for "kube-apiserver"')
        is_switch = name in _FLAGS
        if not is_switch and f"{name}=" not in _FLAGS:
            raise ConfigError(f"unknown flag: --{name}")
        if not equals:
            value = "true" if is_switch else next(words, "")
            if not value:
                raise ConfigError(f"flag needs an argument: --{name}")
        yield name, value


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ConfigError(f"invalid number {text!r}: expected digits")
    return int(text)
