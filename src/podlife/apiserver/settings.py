"""Settings of the API server: plain data, cheap to import."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ApiServerSettings:
    """Without a data folder nothing outlives the process."""

    data: Path | None = None
    # Keep identities in the data folder, but objects only in memory.
    in_memory: bool = False
    # The data folder was created for this run and is removed with it.
    is_temporary: bool = False
    bind: str = "127.0.0.1"
    # 0 selects any free port.
    port: int = 6443
    # Additional names under which clients reach this server.
    names: tuple[str, ...] = ()
    # Certificate and key to use instead of the server's own; with them, the CA of clients.
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    client_ca_file: str = ""
    # Address at which pods reach this server, if it is not the one it is bound to; it listens there, too.
    advertise_address: str = ""
    # Issuer of service account tokens, and what this server calls itself in them. Empty: a default one.
    service_account_issuer: str = ""
    # Private key that signs the tokens; empty: one in the data folder, created when it is first needed.
    service_account_signing_key_file: str = ""
    # Further keys to verify tokens with: those that signed before.
    service_account_key_files: tuple[str, ...] = ()
    # Admit pods with a service account only, and give them its token: upstream's plug-in ServiceAccount. It needs a
    # controller that creates the default accounts.
    needs_accounts: bool = False
    not_ready_toleration_seconds: int = 300
    unreachable_toleration_seconds: int = 300
    # New objects have managedFields, as on kube-apiserver; if not, objects have them from their first apply on, which
    # makes other writes faster and objects smaller.
    tracks_managers: bool = True
    # Run the namespace controller; off where kube-controller-manager runs its own.
    cleans_namespaces: bool = True
    # Events that were not written for so long are removed; 0 keeps them.
    event_ttl_seconds: float = 3600.0
    stop_seconds: float = 10.0
    # Empty disables the audit log, "-" is standard output. An empty policy file means the default policy.
    audit_log_path: str = ""
    audit_policy_file: str = ""
    audit_log_max_mb: int = 100
    audit_log_max_days: int = 0
    audit_log_max_backups: int = 10


def is_local(address: str) -> bool:
    """Whether this is no address, or one that other machines and pods cannot reach."""
    try:
        return ip_address(address).is_loopback or ip_address(address).is_unspecified
    except ValueError:
        return True
