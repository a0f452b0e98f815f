"""The flags that envtest and its users pass to kube-apiserver."""

from __future__ import annotations

import pytest

from podlife.envtest import parse_flags
from podlife.envtest.kube_apiserver import HELP
from podlife.errors import ConfigError

# As controller-runtime v0.24 starts it.
ENVTEST = [
    *(
        "--allow-privileged=true",
        "--authorization-mode=RBAC",
        "--bind-address=127.0.0.1",
        "--cert-dir=/tmp/k",
    ),
    "--client-ca-file=/tmp/k/client-cert-auth-ca.crt",
    "--disable-admission-plugins=ServiceAccount",
    *("--etcd-servers=http://127.0.0.1:2379", "--secure-port=7443", "--service-cluster-ip-range=10.0.0.0/24"),
    "--service-account-issuer=https://127.0.0.1:7443/",
    "--service-account-key-file=/tmp/k/sa-signer.crt",
    "--service-account-signing-key-file=/tmp/k/sa-signer.key",
]


def test_what_envtest_passes_becomes_settings_without_a_note() -> None:
    settings, notes = parse_flags(ENVTEST)
    assert notes == []
    assert (settings.bind, settings.port) == ("127.0.0.1", 7443)
    assert settings.tls_cert_file == "/tmp/k/apiserver.crt"
    assert settings.tls_private_key_file == "/tmp/k/apiserver.key"
    assert settings.client_ca_file == "/tmp/k/client-cert-auth-ca.crt"
    assert settings.in_memory
    assert not settings.cleans_namespaces


def test_a_given_certificate_replaces_that_of_the_folder() -> None:
    settings, _ = parse_flags([*ENVTEST, "--tls-cert-file=/a.crt", "--tls-private-key-file", "/a.key"])
    assert (settings.tls_cert_file, settings.tls_private_key_file) == ("/a.crt", "/a.key")


def test_a_later_flag_wins_and_a_switch_takes_no_word() -> None:
    settings, notes = parse_flags(["--secure-port=1", "--watch-cache", "--secure-port", "2"])
    assert (settings.port, notes) == (2, [])


@pytest.mark.parametrize(
    "flag",
    [
        "--feature-gates=A=true",
        "--runtime-config=api/all=true",
        "--enable-admission-plugins=ResourceQuota",
        "--disable-admission-plugins=ServiceAccount,Priority",
        "--authorization-mode=AlwaysAllow",
    ],
)
def test_a_flag_that_a_test_could_miss_is_noted(flag: str) -> None:
    assert parse_flags([*ENVTEST, flag])[1] == [f"{flag} has no effect"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--nope=1"], "unknown flag: --nope"),
        (["--insecure-port=0"], "unknown flag: --insecure-port"),
        (["--secure-port"], "flag needs an argument: --secure-port"),
        (["--secure-port=x"], "invalid number 'x': expected digits"),
        (["run"], 'unknown command "run" for "kube-apiserver"'),
        (["--"], 'unknown command "--" for "kube-apiserver"'),
    ],
)
def test_what_kube_apiserver_refuses_is_refused(words: list[str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=f"^{complaint}$"):
        parse_flags(words)


def test_help_does_not_offer_the_port_that_envtest_looks_for() -> None:
    assert "--secure-port" in HELP
    assert "--insecure-port" not in HELP
