"""Where a connection is read from: flags, kubeconfig files, the pod's service account."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from podlife.client import (
    BasicAuth,
    Connection,
    ExecAuth,
    Flags,
    HttpTransport,
    TokenAuth,
    TokenFileAuth,
    in_cluster,
    load,
)
from podlife.client.config import proxy_for
from podlife.client.dialer import target_of
from podlife.errors import ConfigError

SECRET = "s3cr3t-value"


def write(path: Path, *, user: dict[str, Any] | None = None, **extra: Any) -> Path:
    """A kubeconfig with one context, cluster and user, all of them named after the file."""
    name = path.stem
    cluster = {"server": f"https://{name}.example:6443", **extra.pop("cluster", {})}
    document = {
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **extra.pop("context", {})}}],
        **extra,
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_the_current_context_is_used(tmp_path: Path) -> None:
    path = write(tmp_path / "dev", user={"token": SECRET}, context={"namespace": "team"})
    connection = load(environment={"KUBECONFIG": str(path)})
    assert connection.server == "https://dev.example:6443"
    assert connection.namespace == "team"
    assert connection.auth == TokenAuth(SECRET)


def test_the_file_in_the_home_folder_is_the_default(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config")
    assert load(environment={"HOME": str(tmp_path)}).server == "https://config.example:6443"


def test_several_files_are_merged_and_the_first_to_say_something_wins(tmp_path: Path) -> None:
    one = write(tmp_path / "one", user={"token": "first"})
    two = write(tmp_path / "two", user={"token": "second"})
    again = tmp_path / "again"
    again.write_text(one.read_text().replace("first", "late"))
    environment = {"KUBECONFIG": f"{one}:{tmp_path / 'missing'}:{two}:{again}:"}
    assert load(environment=environment).auth == TokenAuth("first")
    assert load(Flags(context="two"), environment).auth == TokenAuth("second")


def test_paths_are_relative_to_the_file_they_stand_in(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"authority")
    path = write(
        tmp_path / "dev",
        user={"tokenFile": "token", "token": "older"},
        cluster={"certificate-authority": "ca.pem"},
    )
    connection = load(Flags(kubeconfig=str(path)), {})
    assert connection.certificate_authority == b"authority"
    assert connection.auth == TokenFileAuth(tmp_path / "token")


def test_inline_data_wins_over_files(tmp_path: Path) -> None:
    data = base64.b64encode(b"inline").decode()
    user = {"client-certificate-data": data, "client-certificate": "nowhere", "client-key-data": data}
    connection = load(Flags(kubeconfig=str(write(tmp_path / "dev", user=user))), {})
    assert connection.client_certificate == b"inline"


def test_everything_a_cluster_and_a_user_may_say_is_read(tmp_path: Path) -> None:
    path = write(
        tmp_path / "dev",
        user={
            "username": "me",
            "password": SECRET,
            "as": "boss",
            "as-uid": "7",
            "as-groups": ["a", "b"],
            "as-user-extra": {"scope": ["x"]},
        },
        cluster={
            "insecure-skip-tls-verify": True,
            "tls-server-name": "inner",
            "proxy-url": "http://proxy:3128",
            "disable-compression": True,
        },
    )
    connection = load(Flags(kubeconfig=str(path)), {})
    assert connection.auth == BasicAuth("me", SECRET)
    assert connection.is_insecure
    assert connection.tls_server_name == "inner"
    assert connection.proxy_url == "http://proxy:3128"
    assert not connection.compression
    assert connection.impersonation == (
        ("Impersonate-User", "boss"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scope", "x"),
    )


def test_an_exec_plugin_is_read_with_its_command_relative_to_the_file(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./bin/login",
        "args": ["--cluster", "dev"],
        "env": [{"name": "REGION", "value": "eu"}],
        "provideClusterInfo": True,
        "interactiveMode": "Never",
    }
    auth = load(Flags(kubeconfig=str(write(tmp_path / "dev", user={"exec": plugin}))), {}).auth
    assert isinstance(auth, ExecAuth)
    assert auth.command == str(tmp_path / "bin/login")
    assert auth.arguments == ("--cluster", "dev")
    assert auth.environment == (("REGION", "eu"),)
    assert auth.cluster == {"server": "https://dev.example:6443"}


def test_flags_win_over_files(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"authority")
    path = write(tmp_path / "dev", user={"token": "old"}, cluster={"insecure-skip-tls-verify": True})
    flags = Flags(
        kubeconfig=str(path),
        server="https://other:1",
        token="new",
        namespace="here",
        certificate_authority=str(tmp_path / "ca.pem"),
        request_as="boss",
    )
    connection = load(flags, {})
    assert connection.server == "https://other:1"
    assert connection.auth == TokenAuth("new")
    assert connection.namespace == "here"
    assert connection.certificate_authority == b"authority"
    assert not connection.is_insecure
    assert connection.impersonation == (("Impersonate-User", "boss"),)


def test_a_server_and_a_token_need_no_file_at_all(tmp_path: Path) -> None:
    connection = load(Flags(server="https://host:1", token=SECRET), {"HOME": str(tmp_path)})
    assert connection.server == "https://host:1"
    assert connection.auth == TokenAuth(SECRET)


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    for name, content in (("token", "t0ken"), ("namespace", "team\n"), ("ca.crt", "authority")):
        (tmp_path / name).write_text(content)
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    connection = in_cluster(environment, tmp_path)
    assert connection.server == "https://[fd00::1]:443"
    assert connection.namespace == "team"
    assert connection.auth == TokenFileAuth(tmp_path / "token")
    assert connection.certificate_authority == b"authority"


def test_no_secret_shows_in_the_text_of_a_connection(tmp_path: Path) -> None:
    data = base64.b64encode(SECRET.encode()).decode()
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "login",
        "args": [SECRET],
        "env": [{"name": "PASSWORD", "value": SECRET}],
    }
    provider = {"name": "oidc", "config": {"refresh-token": SECRET}}
    users: list[dict[str, Any]] = [
        {"token": SECRET},
        {"username": "me", "password": SECRET},
        {"exec": plugin},
        {"auth-provider": provider},
        {"client-certificate-data": data, "client-key-data": data},
    ]
    for user in users:
        path = write(tmp_path / "dev", user=user, cluster={"proxy-url": f"http://me:{SECRET}@proxy"})
        connection = load(Flags(kubeconfig=str(path), token=""), {})
        assert SECRET not in f"{connection!r} {connection} {connection.auth!r}"
    assert SECRET not in repr(Flags(token=SECRET))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: b: c", "dev is not YAML at line 1"),
        ("- a", "dev is not a kubeconfig"),
        ("clusters: [x]", "an entry of clusters has no name"),
        ("{}", "has no current-context; run kubectl config use-context NAME"),
        ("current-context: prod", "has no context 'prod'; known: none"),
        (
            "{current-context: a, contexts: [{name: a, context: {cluster: b}}]}",
            "has no cluster 'b', referenced by context 'a'; known: none",
        ),
        (
            "{current-context: a, contexts: [{name: a, context: {cluster: b}}], clusters: [{name: b}]}",
            "invalid server address '': expected https://HOST:PORT",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_what_is_wrong(
    tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "dev"
    path.write_text(content)
    with pytest.raises(ConfigError) as refused:
        load(Flags(kubeconfig=str(path)), {})
    assert message in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"token": 7}, "token must be a string"),
        ({"client-key-data": "%%%"}, "client-key-data is not valid base64"),
        ({"client-certificate": "gone.pem"}, "gone.pem: No such file or directory"),
        ({"client-key-data": "YQ=="}, "client key without client certificate"),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}, "has no command"),
        ({"exec": {"apiVersion": "v0", "command": "x"}}, "unsupported apiVersion 'v0'"),
    ],
)
def test_a_user_that_cannot_be_used_is_refused_in_one_line(
    tmp_path: Path, user: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        load(Flags(kubeconfig=str(write(tmp_path / "dev", user=user))), {})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("flags", "environment", "message"),
    [
        # To be told to set what is set would help nobody.
        ({}, {"HOME": "/none", "KUBECONFIG": "/none/k"}, "KUBECONFIG names /none/k, which does not exist"),
        ({}, {"HOME": "/none"}, "set KUBECONFIG, or give --kubeconfig or --server"),
        ({"kubeconfig": "/none/nowhere"}, {}, "nowhere: No such file"),
        ({"server": "https://h", "token": "t", "client_key": "k"}, {}, "must be used together; specify both"),
        ({"server": "https://h", "token": "t", "request_as_groups": ("a",)}, {}, "require --as"),
    ],
)
def test_flags_and_an_environment_that_name_no_server_say_what_to_set(
    flags: dict[str, Any], environment: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load(Flags(**flags), environment)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"is_insecure": True, "certificate_authority": b"x"}, "are mutually exclusive"),
        ({"proxy_url": "socks5://p:1"}, "http:// or https://"),
        *(
            ({"proxy_url": proxy}, "unsupported proxy")
            for proxy in ("http://", "http://p:99999", "http://[::1", f"http://me:{SECRET}@p:x")
        ),
        *(
            ({"tls_server_name": name}, "tls-server-name")
            for name in ("a..b", "a" * 64, ".x", "é" * 80, "\0")
        ),
        ({"server": f"https://me:{SECRET}@api.example"}, "must not contain a user"),
        ({"server": "http://me@api.example"}, "must not contain a user"),
        *(
            ({"server": server}, "invalid server address")
            for server in (
                "https://api.example:99999",
                "https://api.example:port",
                "https://[::1",
                "https://[nonsense]:1",
                "https://api example",
                "https://a..example",
                f"https://{'a' * 64}.example",
                f"https://{'é' * 64}.example",
                "https://api.example\r\nX: y",
            )
        ),
    ],
)
def test_a_connection_that_cannot_be_is_told_in_one_line_without_its_secrets(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        Connection(**{"server": "https://api.example", **settings})
    assert "\n" not in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "server",
    ["https://bücher.example", "https://api.example.", "https://[fe80::1%eth0]:1", "http://127.0.0.1"],
)
def test_an_unusual_address_may_be_used(server: str) -> None:
    assert target_of(Connection(server)).host


@pytest.mark.parametrize("token", ["a\nX: y", "é", "\udc80"])
def test_a_token_that_no_header_can_carry_is_told_in_one_line(token: str) -> None:
    with pytest.raises(ConfigError) as raised:
        HttpTransport(Connection("https://api.example", auth=TokenAuth(token)))
    assert token not in str(raised.value)


def test_an_ipv6_address_is_named_as_the_wire_wants_it() -> None:
    target = target_of(Connection("https://[2001:db8::1]:6443/k8s"))
    assert (target.host, target.port, target.host_header) == ("2001:db8::1", 6443, "[2001:db8::1]:6443")
    assert target.server_name == "2001:db8::1"
    assert target.origin == "https://[2001:db8::1]:6443/k8s"


@pytest.mark.parametrize(
    ("server", "environment", "expected"),
    [
        ("https://api.example", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api.example", {"https_proxy": "p:1"}, "http://p:1"),
        ("https://api.example", {"HTTP_PROXY": "http://p:1"}, ""),
        ("https://api.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".example"}, ""),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p:1"}, ""),
    ],
)
def test_the_environments_proxy_is_used_with_its_exceptions(
    server: str, environment: dict[str, str], expected: str
) -> None:
    assert proxy_for(server, environment) == expected


def test_a_cluster_and_a_user_take_the_place_of_those_of_the_context(tmp_path: Path) -> None:
    one, two = (
        write(tmp_path / "one", user={"token": "first"}),
        write(tmp_path / "two", user={"token": "second"}),
    )
    environment = {"KUBECONFIG": f"{one}:{two}"}
    mixed = load(Flags(context="one", user="two"), environment)
    assert (mixed.server, mixed.auth) == ("https://one.example:6443", TokenAuth("second"))
    mixed = load(Flags(cluster="two"), environment)
    assert (mixed.server, mixed.auth) == ("https://two.example:6443", TokenAuth("first"))
    with pytest.raises(ConfigError, match="has no user 'nobody'; known: one, two"):
        load(Flags(user="nobody"), environment)


def test_a_cluster_and_a_user_need_no_context(tmp_path: Path) -> None:
    path = write(tmp_path / "one", user={"token": "first"})
    path.write_text(path.read_text().replace("current-context: one", "current-context: ''"))
    connection = load(Flags(cluster="one", user="one"), {"KUBECONFIG": str(path)})
    assert (connection.server, connection.auth) == ("https://one.example:6443", TokenAuth("first"))
    assert connection.origin == f"cluster 'one' in {path}"


def test_a_client_certificate_counts_in_place_of_the_token_of_the_kubeconfig(tmp_path: Path) -> None:
    path = write(tmp_path / "one", user={"token": "first"})
    (tmp_path / "crt").write_bytes(b"certificate")
    (tmp_path / "key").write_bytes(b"key")
    pair = Flags(client_certificate=str(tmp_path / "crt"), client_key=str(tmp_path / "key"))
    connection = load(pair, {"KUBECONFIG": str(path)})
    assert (connection.client_certificate, connection.client_key) == (b"certificate", b"key")
    assert connection.auth is None
    assert load(replace(pair, token="other"), {"KUBECONFIG": str(path)}).auth == TokenAuth("other")


def test_groups_and_a_uid_are_those_of_the_user_to_act_as() -> None:
    flags = Flags(
        server="https://h", token="t", request_as="eve", request_as_uid="7", request_as_groups=("a", "b")
    )
    assert load(flags, {}).impersonation == (
        ("Impersonate-User", "eve"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
    )
