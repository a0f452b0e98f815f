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


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Flags that need no value.
_SWITCHES = _words(
    """
    aggregator-reject-forwarding-redirect allow-privileged anonymous-auth audit-log-batch-throttle-enable
    audit-log-compress audit-log-truncate-enabled audit-webhook-batch-throttle-enable audit-webhook-truncate-enabled
    contention-profiling disable-http2-serving emulation-forward-compatible enable-aggregator-routing
    enable-bootstrap-token-auth enable-garbage-collector enable-logs-handler enable-priority-and-fairness
    encryption-provider-config-automatic-reload log-json-split-stream log-text-split-stream permit-address-sharing
    permit-port-sharing profiling runtime-config-emulation-forward-compatible service-account-extend-token-expiration
    service-account-lookup shutdown-send-retry-after watch-cache
    """
)
_OTHERS = _words(
    """
    admission-control admission-control-config-file advertise-address allow-metric-labels allow-metric-labels-manifest
    api-audiences audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-max-wait
    audit-log-batch-throttle-burst audit-log-batch-throttle-qps audit-log-format audit-log-mode
    audit-log-truncate-max-batch-size audit-log-truncate-max-event-size audit-log-version
    audit-webhook-batch-buffer-size audit-webhook-batch-max-size audit-webhook-batch-max-wait
    audit-webhook-batch-throttle-burst
    audit-webhook-batch-throttle-qps audit-webhook-config-file audit-webhook-initial-backoff audit-webhook-mode
    audit-webhook-truncate-max-batch-size audit-webhook-truncate-max-event-size audit-webhook-version
    authentication-config authentication-token-webhook-cache-ttl authentication-token-webhook-config-file
    authentication-token-webhook-version authorization-config authorization-mode authorization-policy-file
    authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
    authorization-webhook-config-file authorization-webhook-version coordinated-leadership-lease-duration
    coordinated-leadership-renew-deadline coordinated-leadership-retry-period cors-allowed-origins debug-socket-path
    delete-collection-workers disable-admission-plugins disabled-metrics egress-selector-config-file emulated-version
    enable-admission-plugins encryption-provider-config endpoint-reconciler-type etcd-cafile etcd-certfile
    etcd-compaction-interval etcd-count-metric-poll-period etcd-db-metric-poll-interval etcd-healthcheck-timeout
    etcd-keyfile etcd-prefix etcd-readycheck-timeout etcd-servers etcd-servers-overrides event-ttl external-hostname
    feature-gates goaway-chance http2-max-streams-per-connection kubelet-certificate-authority
    kubelet-client-certificate kubelet-client-key kubelet-preferred-address-types kubelet-timeout
    kubernetes-service-node-port lease-reuse-duration-seconds livez-grace-period log-flush-frequency
    log-json-info-buffer-size log-text-info-buffer-size logging-format max-connection-bytes-per-sec
    max-mutating-requests-inflight max-requests-inflight min-compatibility-version min-request-timeout oidc-ca-file
    oidc-client-id oidc-groups-claim oidc-groups-prefix oidc-issuer-url oidc-required-claim oidc-signing-algs
    oidc-username-claim oidc-username-prefix peer-advertise-ip peer-advertise-port peer-ca-file proxy-client-cert-file
    proxy-client-key-file request-timeout requestheader-allowed-names requestheader-client-ca-file
    requestheader-extra-headers-prefix requestheader-group-headers requestheader-uid-headers
    requestheader-username-headers runtime-config service-account-issuer service-account-jwks-uri
    service-account-key-file service-account-max-token-expiration service-account-signing-endpoint
    service-account-signing-key-file service-cluster-ip-range service-node-port-range show-hidden-metrics-for-version
    shutdown-delay-duration shutdown-watch-termination-grace-period storage-backend storage-initialization-timeout
    storage-media-type strict-transport-security-directives tls-cipher-suites tls-curve-preferences tls-min-version
    tls-sni-cert-key token-auth-file tracing-config-file v vmodule watch-cache-sizes
    """
)

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
        if name not in _SWITCHES | _OTHERS and name not in _SETTINGS and name != _CERT_DIR:
            raise ConfigError(f"unknown flag: --{name}")
        if not equals:
            value = "true" if name in _SWITCHES else next(words, "")
            if not value:
                raise ConfigError(f"flag needs an argument: --{name}")
        yield name, value


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ConfigError(f"invalid number {text!r}: expected digits")
    return int(text)
