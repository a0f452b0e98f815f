"""Credentials: renewed in time, after a 401, once for all who wait; and never shown."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import select
import sys
from pathlib import Path
from typing import Any

import pytest

from podlife.client import BasicAuth, ExecAuth, ProviderAuth, TokenAuth, TokenFileAuth
from podlife.client.credentials import Credential, credentials_for
from podlife.clock import ManualClock
from podlife.errors import ConfigError
from podlife.testing import virtual_time
from tests.kit.moved_time import use_up
from tests.kit.wait import until

V1 = "client.authentication.k8s.io/v1"


def plugin(tmp_path: Path, code: str, **changes: Any) -> ExecAuth:
    """A login program that runs the code; each run adds a line to `runs`."""
    script = tmp_path / "login.py"
    script.write_text(
        f"import json, os, sys, time\nwith open({str(tmp_path / 'runs')!r}, 'a') as f: f.write('.')\n{code}\n"
    )
    settings: dict[str, Any] = {
        "command": sys.executable,
        "arguments": (str(script),),
        "api_version": V1,
        "origin": "the exec plugin of user 'me' in /k",
        "interactive_mode": "Never",
    }
    return ExecAuth(**{**settings, **changes})


def printing(**status: Any) -> str:
    return f"print({json.dumps({'apiVersion': V1, 'kind': 'ExecCredential', 'status': status})!r})"


def runs(tmp_path: Path) -> int:
    path = tmp_path / "runs"
    return len(path.read_text()) if path.exists() else 0


async def test_tokens_and_passwords_become_authorization_headers() -> None:
    assert (await credentials_for(TokenAuth("abc")).current()).authorization == "Bearer abc"
    assert (await credentials_for(BasicAuth("me", "pw")).current()).authorization == "Basic bWU6cHc="
    assert (await credentials_for(None).current()) == Credential()
    assert not await credentials_for(TokenAuth("abc")).renew(Credential("Bearer abc"))


@virtual_time
async def test_a_token_file_is_read_again_as_time_goes_by(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    credentials = credentials_for(TokenFileAuth(path))
    assert (await credentials.current()).authorization == "Bearer one"
    path.write_text("two")
    await asyncio.sleep(59)
    assert (await credentials.current()).authorization == "Bearer one"
    await asyncio.sleep(1)
    assert (await credentials.current()).authorization == "Bearer two"
    path.unlink()
    await asyncio.sleep(60)
    assert (await credentials.current()).authorization == "Bearer two"


async def test_a_token_file_is_read_again_at_once_when_its_token_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    credentials = credentials_for(TokenFileAuth(path))
    refused = await credentials.current()
    assert not await credentials.renew(refused)
    path.write_text("two")
    assert await credentials.renew(refused)
    assert (await credentials.current()).authorization == "Bearer two"


async def test_an_empty_or_missing_token_file_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "token"
    with pytest.raises(ConfigError, match="token: No such file"):
        await credentials_for(TokenFileAuth(path)).current()
    path.write_text("\n")
    with pytest.raises(ConfigError, match="is empty"):
        await credentials_for(TokenFileAuth(path)).current()


async def test_a_plugin_runs_once_for_all_who_wait_and_again_when_its_credential_has_expired(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    auth = plugin(tmp_path, printing(token="t", expirationTimestamp="2030-01-01T00:10:00Z"))
    credentials = credentials_for(auth, clock)
    both = await asyncio.gather(credentials.current(), credentials.current())
    assert [credential.authorization for credential in both] == ["Bearer t", "Bearer t"]
    assert runs(tmp_path) == 1
    clock.advance(minutes=9)
    await credentials.current()
    assert runs(tmp_path) == 1
    clock.advance(seconds=58)
    await credentials.current()
    assert runs(tmp_path) == 2


async def test_a_plugin_runs_again_when_a_server_has_refused_its_credential(tmp_path: Path) -> None:
    status = "{'token': str(os.path.getsize(sys.path[0] + '/runs'))}"
    code = f"print(json.dumps({{'apiVersion': {V1!r}, 'kind': 'ExecCredential', 'status': {status}}}))"
    credentials = credentials_for(plugin(tmp_path, code))
    refused = await credentials.current()
    assert await credentials.renew(refused)
    # A second request that was refused with the old one finds a new one already.
    assert await credentials.renew(refused)
    assert (await credentials.current()).authorization == "Bearer 2"
    assert runs(tmp_path) == 2


async def test_a_plugin_is_told_of_the_cluster_and_gets_its_environment(tmp_path: Path) -> None:
    code = (
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "token = '|'.join([info['spec']['cluster']['server'], str(info['spec']['interactive']), os.environ['R']])\n"
        f"print(json.dumps({{'apiVersion': {V1!r}, 'kind': 'ExecCredential', 'status': {{'token': token}}}}))"
    )
    auth = plugin(tmp_path, code, environment=(("R", "eu"),), cluster={"server": "https://s"})
    assert (await credentials_for(auth).current()).authorization == "Bearer https://s|False|eu"


async def test_a_plugin_may_give_a_client_certificate(tmp_path: Path) -> None:
    auth = plugin(tmp_path, printing(clientCertificateData="cert", clientKeyData="key"))
    credential = await credentials_for(auth).current()
    assert (credential.authorization, credential.certificate, credential.key) == ("", b"cert", b"key")
    assert "key=b" not in repr(credential)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('hello')", "did not print an ExecCredential"),
        ("print('{}')", "printed None None, not client.authentication.k8s.io/v1 ExecCredential"),
        (printing(), "returned neither a token nor a certificate"),
        (printing(clientCertificateData="x"), "returned neither a token nor a certificate"),
        (printing(token="t", expirationTimestamp="soon"), "an invalid expirationTimestamp 'soon'"),
        ("sys.stderr.write('x\\nlogin first\\n'); sys.exit(3)", "failed with 3: login first"),
    ],
)
async def test_a_plugin_that_fails_is_named_in_one_line(tmp_path: Path, code: str, message: str) -> None:
    with pytest.raises(ConfigError) as failed:
        await credentials_for(plugin(tmp_path, code)).current()
    assert message in str(failed.value)
    assert "the exec plugin of user 'me' in /k" in str(failed.value)
    assert "\n" not in str(failed.value)


async def test_a_plugin_that_hangs_is_ended_with_what_it_has_started(tmp_path: Path) -> None:
    script = f"sleep 600 & echo $! > {tmp_path / 'child'}; sleep 600"
    auth = plugin(tmp_path, "", command="/bin/sh", arguments=("-c", script), timeout_seconds=600)
    asking = asyncio.get_running_loop().create_task(credentials_for(auth).current())
    child = tmp_path / "child"
    await until(lambda: child.exists() and child.read_text().endswith("\n"))
    await use_up(600, asking)
    with pytest.raises(ConfigError, match="did not end within 600 s"):
        await asking
    assert ends(int(child.read_text()))


def ends(pid: int) -> bool:
    """A process that was killed is gone only when the kernel has had the time for it."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return process in select.select([process], [], [], 60)[0]
    finally:
        os.close(process)


async def test_a_plugin_that_is_not_installed_shows_its_hint(tmp_path: Path) -> None:
    auth = plugin(tmp_path, "", command="/nowhere/login", install_hint="get it at example.com\nmore")
    with pytest.raises(
        ConfigError, match=r"cannot run /nowhere/login: No such file.*; get it at example.com$"
    ):
        await credentials_for(auth).current()


async def test_a_plugin_that_must_ask_needs_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ConfigError, match="run this in a terminal"):
        await credentials_for(plugin(tmp_path, "", interactive_mode="Always")).current()


async def test_an_old_login_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kubernetes_asyncio", "kubernetes_asyncio.client", "kubernetes_asyncio.config"):
        monkeypatch.setitem(sys.modules, name, None)  # also where another test has brought it
    auth = ProviderAuth("oidc", "dev", "'me' in /k", {})
    with pytest.raises(ConfigError) as failed:
        await credentials_for(auth).current()
    assert str(failed.value) == (
        "'me' in /k: auth-provider 'oidc' needs kubernetes_asyncio, which is not installed: install podlife[kubeconfig]"
    )


async def test_an_old_login_is_done_by_the_library_that_knows_it() -> None:
    pytest.importorskip("kubernetes_asyncio")

    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    token = f"{part({'alg': 'none'})}.{part({'exp': 4102444800})}.x"
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "dev",
        "clusters": [{"name": "dev", "cluster": {"server": "https://s"}}],
        "users": [{"name": "me", "user": {"auth-provider": {"name": "oidc", "config": {"id-token": token}}}}],
        "contexts": [{"name": "dev", "context": {"cluster": "dev", "user": "me"}}],
    }
    credential = await credentials_for(ProviderAuth("oidc", "dev", "'me' in /k", kubeconfig)).current()
    assert credential.authorization == f"Bearer {token}"
