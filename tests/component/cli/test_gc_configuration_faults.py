"""What is wrong before a server is ever spoken to: each is one line that says what, where, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.component.cli.commands import assert_one_line, podlife, write_kubeconfig
from tests.kit.real_parts import free_port

COMMANDS = [["plan"], ["sweep", "--yes"], ["run", "--no-leader-elect"]]

Config = dict[str, object]


def config(user: Config | None = None, cluster: Config | None = None) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "dev",
            "clusters": [
                {"name": "c", "cluster": {"server": f"https://127.0.0.1:{free_port()}", **(cluster or {})}}
            ],
            "users": [{"name": "u", "user": user or {"token": "t"}}],
            "contexts": [
                {"name": "dev", "context": {"cluster": "c", "user": "u"}},
                {"name": "prod", "context": {"cluster": "c", "user": "u"}},
            ],
        }
    )


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
async def test_a_server_that_is_not_there_is_named(tmp_path: Path, command: list[str]) -> None:
    url = f"https://127.0.0.1:{free_port()}"
    result = await podlife("gc", *command, "--server", url, "--token", "t", HOME=str(tmp_path))
    assert_one_line(result, url, "cannot be reached", "check the address")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
async def test_no_configuration_at_all_says_how_to_give_one(tmp_path: Path, command: list[str]) -> None:
    result = await podlife("gc", *command, HOME=str(tmp_path))
    assert_one_line(result, "no API server is configured", "--kubeconfig")


async def test_a_kubeconfig_that_is_missing_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    assert_one_line(await podlife("gc", "plan", "--kubeconfig", path), path, "No such file")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("clusters: [", "is not YAML"),
        ("just words", "holds no mapping"),
        ("clusters: [{name: a, cluster: 3}]", "an entry of clusters"),
        ("apiVersion: v1\nkind: Config\n", "no current-context"),
    ],
)
async def test_a_broken_kubeconfig_is_named_with_what_is_wrong(tmp_path: Path, text: str, word: str) -> None:
    path = write_kubeconfig(tmp_path / "config", text)
    assert_one_line(await podlife("gc", "plan", "--kubeconfig", str(path)), str(path), word)


async def test_an_unknown_context_is_told_which_there_are(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", config())
    result = await podlife("gc", "plan", "--kubeconfig", str(path), "--context", "staging")
    assert_one_line(result, "no context 'staging'", "dev, prod")


async def test_a_login_program_that_fails_is_quoted(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", "echo the session has expired >&2; exit 3"],
        "interactiveMode": "Never",
    }
    path = write_kubeconfig(tmp_path / "config", config({"exec": plugin}))
    result = await podlife("gc", "plan", "--kubeconfig", str(path))
    assert_one_line(result, "failed with 3", "the session has expired", "log in again")


async def test_a_login_program_that_is_not_installed_is_named(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-login"}
    path = write_kubeconfig(tmp_path / "config", config({"exec": plugin}))
    assert_one_line(await podlife("gc", "plan", "--kubeconfig", str(path)), "no-such-login", "No such file")


async def test_an_authority_that_is_not_pem_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("nothing")
    path = write_kubeconfig(tmp_path / "config", config(cluster={"certificate-authority": "ca.crt"}))
    assert_one_line(await podlife("gc", "plan", "--kubeconfig", str(path)), "certificate authority", "PEM")


async def test_without_a_terminal_a_sweep_wants_to_be_told_yes(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", config())
    result = await podlife("gc", "sweep", "--kubeconfig", str(path))
    assert_one_line(result, "no terminal to ask on", "--yes")
