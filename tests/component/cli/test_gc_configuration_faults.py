"""What is wrong before a server is ever spoken to: each is one line that says what, where, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.component.cli.commands import assert_one_line, podlife, write_kubeconfig
from tests.kit.real_parts import free_port

COMMANDS = [["plan"], ["sweep", "--yes"], ["run", "--no-leader-elect"]]

Config = dict[str, object]


def config(user: Config | None = None) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "dev",
            "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{free_port()}"}}],
            "users": [{"name": "u", "user": user or {"token": "t"}}],
            "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u"}}],
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


def login(**plugin: object) -> str:
    return config({"exec": {"apiVersion": "client.authentication.k8s.io/v1", **plugin}})


FAILS = {
    "command": "sh",
    "args": ["-c", "echo the session has expired >&2; exit 3"],
    "interactiveMode": "Never",
}


@pytest.mark.parametrize(
    ("text", "command", "words"),
    [
        ("clusters: [{name: a, cluster: 3}]", ["plan"], ["PATH", "an entry of clusters"]),
        (login(**FAILS), ["plan"], ["failed with 3", "the session has expired", "log in again"]),
        (config(), ["sweep"], ["confirmation needs a terminal", "--yes"]),
    ],
    ids=["a broken entry", "a login that fails", "nobody to ask"],
)
async def test_a_kubeconfig_that_cannot_be_used_is_told_with_what_is_wrong(
    tmp_path: Path, text: str, command: list[str], words: list[str]
) -> None:
    path = tmp_path / "config"
    write_kubeconfig(path, text)
    result = await podlife("gc", *command, "--kubeconfig", str(path))
    assert_one_line(result, *(str(path) if word == "PATH" else word for word in words))
